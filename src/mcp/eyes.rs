//! What the fleet tells, cut to what its caller may see: the fleet answers for whole devices, and names the sensors that
//! verify them.

use std::time::Instant;

use super::house::House;
use crate::{
    authz::Rights,
    fleet::Fleet,
    names::Thing,
    property::DeviceId,
    twin::words::{Refusal, Reply, Settled, StateReport},
};

/// The state of a thing: of a part, what concerns it; of a device, what of it may be read.
pub(super) async fn state(
    fleet: &Fleet,
    house: &House,
    thing: &Thing,
    fresh: bool,
    answer_by: Instant,
) -> Result<StateReport, Refusal> {
    let permitted = house.rights().look(thing).map_err(|denied| denied.refusal())?;
    let report = fleet.state(&permitted, fresh, answer_by).await.map_err(|refusal| refused(refusal, house.rights()))?;
    Ok(seen(report, thing, house.rights()))
}

fn seen(mut report: StateReport, thing: &Thing, rights: &Rights) -> StateReport {
    let shown = |property: &str| match &thing.property {
        Some(own) => **own == *property,
        None => rights.sees(&thing.device, property),
    };
    report.readings.retain(|(name, _)| shown(name));
    report.moving.retain(|name| shown(name));
    report.reverted.retain(|name| shown(name));
    report.held.retain(|held| shown(&held.property));
    report.amended.retain(|settled| shown(&settled.property));
    report.amended.iter_mut().for_each(|settled| without_unseen_sensor(settled, rights));
    report
}

/// An answer without a sensor that its caller may not see: that it agrees or not stays, what it is and reads does not.
pub(super) fn reply(reply: Reply, rights: &Rights) -> Reply {
    match reply {
        Reply::Settled(mut settled) => {
            without_unseen_sensor(&mut settled, rights);
            Reply::Settled(settled)
        }
        Reply::Refused(refusal) => Reply::Refused(refused(refusal, rights)),
    }
}

/// The same for what became of an operation.
pub(super) fn without_unseen_sensor(settled: &mut Settled, rights: &Rights) {
    let unseen = |device: &DeviceId, property: &str| !rights.sees(device, property);
    if settled.measured.as_ref().is_some_and(|measured| unseen(&measured.device, &measured.property)) {
        settled.measured = None;
    }
}

fn refused(refusal: Refusal, rights: &Rights) -> Refusal {
    if let Refusal::VerifierOffline { device: Some(device) } = &refusal
        && !rights.sees(device, "")
    {
        return Refusal::VerifierOffline { device: None };
    }
    refusal
}
