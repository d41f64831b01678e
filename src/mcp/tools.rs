//! From a checked request to an answer: asks the fleet, and hands the facts to the sentences.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value as Json};

use super::{
    Kept, Observer,
    arguments::{Refused, Request, parse},
    catalogue::Tool,
    house::{Entry, House},
};
use crate::{
    answer::{self, LIST_ROWS_MAX, Naming, Rendered, Row},
    fleet::{Caller, Fleet},
    names::Lang,
    property::{DeviceId, Value},
    twin::{
        wish::Wish,
        words::{Presence, Refusal, Reply},
    },
};

/// How long a list waits for the last known state of one row, milliseconds: it asks no device, so more would mean that
/// the hub itself hangs, and a row without a state is better than no list.
const ROW_WAIT_MS: u64 = 500;

/// What no property is called (a name has 1 to 32 bytes): a wish on it is never sent.
const NO_PROPERTY: &str = "";

/// Carries out one call. `house` gives the house as it is now.
pub(super) async fn call(
    fleet: &Fleet,
    observer: &dyn Observer,
    house: impl Fn() -> Arc<Kept>,
    tool: Tool,
    arguments: &Map<String, Json>,
    caller: &Caller,
    answer_by: Instant,
) -> Rendered {
    let mut kept = house();
    let mut parsed = parse(tool, arguments, &kept.house);
    if let Ok(Request::SwitchUnheard { device }) = &parsed {
        if let Some(refusal) = unheard(fleet, device, answer_by, caller).await {
            return answer::refusal(&refusal, Some(&naming(&kept.house, device, None)), kept.house.lang());
        }
        // It has greeted meanwhile.
        kept = house();
        parsed = parse(tool, arguments, &kept.house);
    }
    let house = &kept.house;
    match parsed {
        Ok(request) => carry_out(fleet, house, request, caller, answer_by).await,
        Err(Refused { refusal, device }) => {
            observer.refused(refusal.word());
            let naming = device.and_then(|id| house.by_id(&id)).map(|e| e.naming(None));
            answer::refusal(&refusal, naming.as_ref(), house.lang())
        }
    }
}

/// Waits for a device that has not greeted this hub yet, as the twin does for any wish (semantics 5.5), and says why it
/// was not to be had. `None`: it has greeted. The wish that asks is on a property that cannot be, so nothing is sent.
async fn unheard(fleet: &Fleet, device: &DeviceId, answer_by: Instant, caller: &Caller) -> Option<Refusal> {
    match fleet.set(caller, device, Wish::to(NO_PROPERTY, Value::Bool(true)), answer_by).await {
        Reply::Refused(Refusal::UnknownProperty { .. }) => None,
        Reply::Refused(refusal) => Some(refusal),
        // It went away, or its actor restarted, while it was waited for; nothing was sent either way.
        Reply::Settled(_) => Some(Refusal::Offline { last_heard: None }),
    }
}

async fn carry_out(fleet: &Fleet, house: &House, request: Request, caller: &Caller, answer_by: Instant) -> Rendered {
    let lang = house.lang();
    match request {
        Request::Ping => answer::pong(&format!("truetwin {}", env!("CARGO_PKG_VERSION")), lang),
        Request::Find { room, query } => find(fleet, house, room.as_deref(), query.as_deref(), answer_by).await,
        Request::State { device, fresh } => {
            let naming = naming(house, &device, None);
            match fleet.state(&device, fresh, answer_by).await {
                Ok(report) => {
                    let description = house.by_id(&device).and_then(|e| e.description.as_deref());
                    answer::state(&report, description, &naming, lang)
                }
                Err(refusal) => answer::refusal(&refusal, Some(&naming), lang),
            }
        }
        Request::Switch { device, property, value } => {
            let naming = naming(house, &device, Some(&property));
            match fleet.set(caller, &device, Wish::to(property, value), answer_by).await {
                Reply::Settled(settled) => answer::operation(&settled, &naming, lang),
                Reply::Refused(refusal) => answer::refusal(&refusal, Some(&naming), lang),
            }
        }
        Request::SwitchUnheard { device } => {
            answer::refusal(&Refusal::Offline { last_heard: None }, Some(&naming(house, &device, None)), lang)
        }
        // Without a session callers of one name cannot be told apart, and another's operation is not theirs to hear of.
        Request::Check { operation: None, device: None } if caller.is_shared() => {
            let allowed = "a device, or the id of an operation".to_owned();
            answer::refusal(&Refusal::MissingArgument { parameter: "device", allowed }, None, house.lang())
        }
        Request::Check { operation, device } => {
            let asked = device.as_ref().map(|d| naming(house, d, None));
            match fleet.check(operation.as_ref(), device.as_ref(), caller).await {
                Some(Reply::Settled(settled)) => {
                    let naming = naming(house, &settled.device, Some(&settled.property));
                    answer::operation(&settled, &naming, lang)
                }
                Some(Reply::Refused(refusal)) => answer::refusal(&refusal, asked.as_ref(), lang),
                None => answer::nothing_known(asked.as_ref(), lang),
            }
        }
    }
}

/// What a device is called; one that has left the house since goes by its id.
fn naming(house: &House, device: &DeviceId, property: Option<&str>) -> Naming {
    house.by_id(device).map_or_else(
        || Naming::new(device.as_str(), device.as_str(), None, house.lang()),
        |entry| entry.naming(property),
    )
}

async fn find(fleet: &Fleet, house: &House, room: Option<&str>, query: Option<&str>, answer_by: Instant) -> Rendered {
    let matching: Vec<&Entry> = house.entries().iter().filter(|e| matches(e, room, query)).collect();
    let cards = fleet.cards();
    let row_by = answer_by.min(Instant::now() + Duration::from_millis(ROW_WAIT_MS));
    let mut rows = Vec::with_capacity(LIST_ROWS_MAX);
    for entry in matching.iter().take(LIST_ROWS_MAX) {
        let report = fleet.state(&entry.id, false, row_by).await.ok();
        let card = cards.iter().find(|c| c.name.device == entry.id);
        let online = card.is_some_and(|c| c.presence != Presence::Offline);
        rows.push(Row::new(&entry.naming(None), entry.room(), online, report.as_ref(), entry.description.as_deref()));
    }
    let more = matching.len() - rows.len();
    answer::list(rows, more, !house.entries().is_empty(), house.lang())
}

/// Whether a device is in the room and one of its names, its room or its id contains the query.
pub(super) fn matches(entry: &Entry, room: Option<&str>, query: Option<&str>) -> bool {
    let in_room = room.is_none_or(|r| entry.room() == Some(r));
    let Some(query) = query.map(str::to_lowercase) else { return in_room };
    let name = &entry.name;
    let rooms = name.room.iter().flat_map(|r| [r.get(Lang::En), r.get(Lang::Zh)]);
    let mut texts = [name.label.en.as_str(), name.label.zh.as_str(), entry.id.as_str()].into_iter().chain(rooms);
    in_room && texts.any(|t| t.to_lowercase().contains(&query))
}
