//! Which parts of a command could do harm, by what is known of the things that it moves, and what they demand together.

use std::time::Instant;

use crate::{
    answer::Wanted,
    authz::{Right, confirm::Demand},
    mcp::{arguments::Request, eyes, house::House, tools::Desk},
    names::Thing,
    property::{Confirm, DeviceId, Movement, PropertyName, Value},
    twin::{
        wish::{Target, Wish},
        words::Trust,
    },
};

/// One thing of a command that could do harm.
pub(super) struct Danger {
    pub(super) device: DeviceId,
    pub(super) name: PropertyName,
    pub(super) wanted: Wanted,
    pub(super) how: Confirm,
    pub(super) press: Option<(DeviceId, PropertyName)>,
}

/// One thing that a command moves.
#[derive(Clone, Copy)]
enum Part<'a> {
    Wish(&'a DeviceId, &'a Wish),
    Action(&'a DeviceId, &'a PropertyName),
}

fn wishes(request: &Request) -> impl Iterator<Item = Part<'_>> {
    let (one, many) = match request {
        Request::Set { device, wish } => (Some(Part::Wish(device, wish)), None),
        Request::Run { device, action } => (Some(Part::Action(device, action)), None),
        Request::Together(together) => (None, Some(&together.members)),
        Request::Find { .. }
        | Request::State { .. }
        | Request::Unheard { .. }
        | Request::Check { .. }
        | Request::Confirm { .. }
        | Request::Ping => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten().map(|part| Part::Wish(&part.device, &part.wish)))
}

/// What a command is on, or the first of several.
pub(super) fn first_of(request: &Request) -> Option<(DeviceId, Option<PropertyName>)> {
    wishes(request).next().map(|part| match part {
        Part::Wish(device, wish) => (device.clone(), Some(wish.property.clone())),
        Part::Action(device, action) => (device.clone(), Some(action.clone())),
    })
}

/// All of a command that could do harm.
pub(super) async fn dangers(desk: &Desk<'_>, house: &House, request: &Request, answer_by: Instant) -> Vec<Danger> {
    let mut all = Vec::new();
    for part in wishes(request) {
        let now = match part {
            Part::Wish(device, wish) if depends_on_now(house, device, wish) => {
                value_now(desk, house, device, &wish.property, answer_by).await
            }
            Part::Wish(..) | Part::Action(..) => None,
        };
        all.extend(danger(house, part, now.as_ref()));
    }
    all
}

fn danger(house: &House, part: Part<'_>, now: Option<&Value>) -> Option<Danger> {
    let (device, name, wanted) = match part {
        Part::Wish(device, wish) => (device, &wish.property, wanted(&wish.target)),
        Part::Action(device, action) => (device, action, Wanted::Action),
    };
    let danger = |how, press| {
        let (device, name) = (device.clone(), name.clone());
        Some(Danger { device, name, wanted: wanted.clone(), how, press })
    };
    let right = match part {
        Part::Wish(..) => house.rights().of(device, Some(name)),
        Part::Action(..) => house.rights().of(device, None),
    };
    if right != Right::Write {
        // It is refused in any case; asking would tell that there is something.
        return None;
    }
    // What it is nobody knows before it has greeted; until then nothing is sent to it.
    let description = house.thing(device, name)?.description.as_ref()?;
    let (how, owner) = match part {
        Part::Wish(_, wish) => {
            let property = description.property(name)?;
            (property.confirmation(movement(&wish.target), now)?, &property.terms.confirmation)
        }
        Part::Action(..) => {
            let action = description.action(name)?;
            (action.needs_confirmation()?, &action.confirmation)
        }
    };
    danger(how, owner.press.clone())
}

fn movement(target: &Target) -> Movement<'_> {
    match target {
        Target::To(value) => Movement::To(value),
        Target::By(amount) => Movement::By(*amount),
        Target::Toggle => Movement::Toggle,
    }
}

fn wanted(target: &Target) -> Wanted {
    match target {
        Target::To(value) => Wanted::To(value.clone()),
        Target::By(amount) => Wanted::By(*amount),
        Target::Toggle => Wanted::Other,
    }
}

fn depends_on_now(house: &House, device: &DeviceId, wish: &Wish) -> bool {
    let description = house.thing(device, &wish.property).and_then(|entry| entry.description.as_ref());
    description.and_then(|d| d.property(&wish.property)).is_some_and(|p| p.depends_on_now(movement(&wish.target)))
}

/// What a property is at, if the device says so now.
async fn value_now(
    desk: &Desk<'_>,
    house: &House,
    device: &DeviceId,
    property: &PropertyName,
    answer_by: Instant,
) -> Option<Value> {
    let thing = Thing { device: device.clone(), property: Some(property.clone()) };
    let report = eyes::state(desk.fleet, house, &thing, true, answer_by).await.ok()?;
    let (_, reading) = report.readings.into_iter().find(|(name, _)| name == property)?;
    Some(reading.value).filter(|_| reading.trust == Trust::Now)
}

/// Those of them that are dangers whatever is so now.
pub(super) fn dangers_unseen(house: &House, request: &Request) -> Vec<Danger> {
    wishes(request).filter_map(|part| danger(house, part, None)).collect()
}

/// What all the dangers of a command demand together.
pub(super) fn demand(dangers: &[Danger]) -> Demand {
    let asked = dangers.iter().map(|danger| (danger.device.clone(), danger.name.clone())).collect();
    let mut demand = Demand { asked, ..Demand::default() };
    for danger in dangers {
        match danger.how {
            Confirm::None | Confirm::Ask => {}
            Confirm::SpokenCode => {
                demand.spoken = true;
                demand.things.push((danger.device.clone(), danger.name.clone()));
            }
            // Without a button nothing could ever be pressed: the configuration has one.
            Confirm::Press => {
                let button = danger.press.clone().unwrap_or_else(|| (danger.device.clone(), danger.name.clone()));
                if !demand.presses.contains(&button) {
                    demand.presses.push(button);
                }
            }
        }
    }
    demand
}
