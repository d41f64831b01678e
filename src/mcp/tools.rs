//! From a checked request to an answer: asks the fleet, and hands the facts to the sentences.

use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json};

use super::{
    arguments::{Refused, Request, parse},
    catalogue::Tool,
    house::{Entry, House},
};
use crate::{
    answer::{self, LIST_ROWS_MAX, Naming, Rendered, Row},
    fleet::{Caller, Fleet},
    names::Lang,
    property::DeviceId,
    twin::words::{Presence, Reply},
};

/// How long a list waits for the last known state of one row, milliseconds: it asks no device, so more would mean that
/// the hub itself hangs, and a row without a state is better than no list.
const ROW_WAIT_MS: u64 = 500;

/// Carries out one call.
pub(super) async fn call(
    fleet: &Fleet,
    house: &House,
    tool: Tool,
    arguments: &Map<String, Json>,
    caller: &Caller,
    answer_by: Instant,
) -> Rendered {
    let lang = house.lang();
    let request = match parse(tool, arguments, house) {
        Ok(request) => request,
        Err(Refused { refusal, device }) => {
            let naming = device.and_then(|id| house.by_id(&id)).map(|e| e.naming(None));
            return answer::refusal(&refusal, naming.as_ref(), lang);
        }
    };
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
            match fleet.set(&device, property, value, answer_by, caller).await {
                Reply::Settled(settled) => answer::operation(&settled, &naming, lang),
                Reply::Refused(refusal) => answer::refusal(&refusal, Some(&naming), lang),
            }
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
