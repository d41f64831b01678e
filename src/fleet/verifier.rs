//! Asks one device on behalf of another (semantics 3.10).
//!
//! Nobody waits: the actor that asks goes on and hears the answer as a message, so two devices may verify each other at
//! once. Questions to one device that come while one is under way are asked together as the next one: an answer that was
//! on its way already could be from before the question.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use ractor::ActorRef;
use tokio::sync::mpsc::Receiver;

use super::{Fleet, Inner, supervisor::FleetMsg};
use crate::{
    device::{Ask, DeviceMsg},
    property::DeviceId,
    twin::{
        input::Found,
        words::{Presence, Refusal, StateReport, Trust},
    },
};

/// Questions that may wait behind the one that is under way to a device; one more is answered as if the device were silent,
/// so that a device that never answers collects nothing.
const WAITING_MAX: usize = 64;

/// For each device that is being asked, the questions that wait for the next turn.
type Waiting = Arc<Mutex<HashMap<DeviceId, Vec<Ask>>>>;

/// Answers questions until the fleet is gone.
pub(super) async fn run(inner: Weak<Inner>, supervisor: ActorRef<FleetMsg>, mut asks: Receiver<Ask>) {
    let waiting = Waiting::default();
    while let Some(ask) = asks.recv().await {
        let Some(inner) = inner.upgrade() else { return };
        let fleet = Fleet { inner, supervisor: supervisor.clone(), stages: None };
        let device = ask.device.clone();
        let mut all = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&device) {
            Some(next) if next.len() < WAITING_MAX => next.push(ask),
            Some(_) => tell(&ask, Found::Silent),
            None => {
                all.insert(device.clone(), Vec::new());
                drop(all);
                tokio::spawn(serve(fleet, waiting.clone(), device, vec![ask]));
            }
        }
    }
}

/// Asks a device until nobody has a question any more.
async fn serve(fleet: Fleet, waiting: Waiting, device: DeviceId, mut asks: Vec<Ask>) {
    while let Some(answer_by) = asks.iter().map(|ask| ask.answer_by).max() {
        let state = fleet.state_of(&device, true, answer_by).await;
        for ask in asks {
            tell(&ask, found(&state, &ask));
        }
        let mut all = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        asks = all.get_mut(&device).map(std::mem::take).unwrap_or_default();
        if asks.is_empty() {
            all.remove(&device);
        }
    }
}

fn found(state: &Result<StateReport, Refusal>, ask: &Ask) -> Found {
    let Ok(report) = state else { return Found::Offline };
    let reading = report.readings.iter().find(|(name, _)| *name == ask.property).map(|(_, reading)| reading);
    match reading {
        Some(reading) if reading.trust == Trust::Now => Found::Value(reading.value.clone()),
        Some(_) | None if report.presence == Presence::Offline => Found::Offline,
        Some(_) | None => Found::Silent,
    }
}

fn tell(ask: &Ask, found: Found) {
    let _actor_gone = ask.from.cast(DeviceMsg::Verified(ask.question.clone(), found));
}
