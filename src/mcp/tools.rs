//! From a checked request to an answer: asks the fleet, and hands the facts to the sentences.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value as Json};

use super::{
    Confirmer, Form, Kept, Observer, Person, Progress,
    arguments::{Refused, Request, parse},
    catalogue::Tool,
    confirm::{self, Gate},
    eyes,
    house::{Entry, House},
    noted::Noting,
    together::{self, Latest},
};
use crate::{
    answer::{self, LIST_ROWS_MAX, Rendered, Row},
    fleet::{Caller, Fleet},
    names::Thing,
    property::DeviceId,
    twin::words::{OpId, Presence, Refusal, Reply},
};

/// How long a list waits for the last known state of one row, milliseconds: it asks no device, so more would mean that
/// the hub itself hangs, and a row without a state is better than no list.
const ROW_WAIT_MS: u64 = 500;

/// Why devices that had not greeted cannot be had.
pub(super) type Silent = HashMap<DeviceId, Refusal>;

/// What a call works with.
pub(super) struct Desk<'a> {
    /// The devices.
    pub(super) fleet: &'a Fleet,
    /// Who counts.
    pub(super) observer: &'a dyn Observer,
    /// What callers last asked of several things at once.
    pub(super) latest: &'a Latest,
    /// Where it is told how far the call is.
    pub(super) progress: Option<&'a Progress>,
    /// What this call turns out to be about.
    pub(super) noting: &'a Noting,
    /// What has to be agreed to.
    pub(super) confirmer: &'a Confirmer,
    /// How the person is asked.
    pub(super) person: &'a Person,
    /// Who asks.
    pub(super) caller: &'a Caller,
    /// Whether that may be several people ([`super::Guest`]).
    pub(super) several: bool,
    /// How long its calls may take; what was agreed to begins anew.
    pub(super) answer_within: Duration,
}

/// Carries out one call. `house` gives the house as it is now.
///
/// # Errors
/// What the client has to put to the person before it calls again.
pub(super) async fn call(
    desk: &Desk<'_>,
    house: impl Fn() -> Arc<Kept>,
    tool: Tool,
    arguments: &Map<String, Json>,
    caller: &Caller,
    answer_by: Instant,
) -> Result<Rendered, Form> {
    let mut kept = house();
    let mut parsed = parse(tool, arguments, &kept.house);
    if let Ok(Request::Unheard { thing }) = &parsed {
        desk.noting.aims(&Request::Unheard { thing: thing.clone() });
        if let Some(refusal) = unheard(desk.fleet, &kept.house, thing, answer_by, caller).await {
            desk.noting.replied([&Reply::Refused(refusal.clone())]);
            return Ok(answer::refusal(&refusal, Some(&kept.house.naming_of(thing)), kept.house.lang()));
        }
        // It has greeted meanwhile.
        kept = house();
        parsed = parse(tool, arguments, &kept.house);
    }
    Ok(match parsed {
        Ok(Request::Confirm { code }) => match confirm::confirmed(desk, &kept.house, &code) {
            Ok((request, agreed)) => {
                desk.noting.aims(&request);
                let silent = silent(desk, &kept.house, &request, answer_by).await;
                kept = house();
                match confirm::gate_again(desk, &kept.house, &request, &agreed, answer_by).await {
                    Some(asked_anew) => *asked_anew,
                    None => carry_out(desk, &kept.house, request, &silent, answer_by).await,
                }
            }
            Err(answer) => *answer,
        },
        Ok(request) => {
            desk.noting.aims(&request);
            let silent = silent(desk, &kept.house, &request, answer_by).await;
            kept = house();
            match confirm::gate(desk, &kept.house, &request, answer_by).await {
                Gate::Open(None) => carry_out(desk, &kept.house, request, &silent, answer_by).await,
                Gate::Open(Some((since, agreed))) => {
                    let answer_by = since + desk.answer_within;
                    kept = house();
                    match confirm::gate_again(desk, &kept.house, &request, &agreed, answer_by).await {
                        Some(asked_anew) => *asked_anew,
                        None => carry_out(desk, &kept.house, request, &silent, answer_by).await,
                    }
                }
                Gate::Shut(answer) => *answer,
                Gate::Ask(form) => return Err(form),
            }
        }
        Err(Refused { refusal, about }) => {
            desk.observer.refused(refusal.word());
            desk.noting.refused(refusal.word(), about.as_ref());
            let house = &kept.house;
            let naming = about.map(|(device, property)| house.naming(&device, property.as_deref()));
            answer::refusal(&refusal, naming.as_ref(), house.lang())
        }
    })
}

/// Why members of a group or a scene cannot be had that had not greeted this hub: each was waited for, side by side. What
/// such a one is, and what its owner wants asked about it, is known only then, so nothing is sent to it before.
async fn silent(desk: &Desk<'_>, house: &House, request: &Request, answer_by: Instant) -> Silent {
    let Request::Together(wanted) = request else { return Silent::new() };
    let unknown = wanted.members.iter().filter(|part| !house.greeted(&part.device));
    let things: BTreeMap<_, _> = unknown.map(|part| (&part.device, &part.wish.property)).collect();
    let waiting = things.into_iter().map(async |(device, property)| {
        let thing = Thing { device: device.clone(), property: Some(property.clone()) };
        (device.clone(), unheard(desk.fleet, house, &thing, answer_by, desk.caller).await)
    });
    let all = futures_util::future::join_all(waiting).await;
    all.into_iter().filter_map(|(device, refusal)| Some((device, refusal?))).collect()
}

/// Waits for a device that has not greeted this hub yet, as the twin does for any wish (semantics 5.5), and says why it
/// was not to be had. `None`: it has greeted.
async fn unheard(fleet: &Fleet, house: &House, thing: &Thing, answer_by: Instant, caller: &Caller) -> Option<Refusal> {
    let permitted = match house.rights().wait_for(thing) {
        Ok(permitted) => permitted,
        Err(denied) => return Some(denied.refusal()),
    };
    match fleet.set(caller, permitted, answer_by).await {
        Reply::Refused(Refusal::UnknownProperty { .. }) => None,
        Reply::Refused(refusal) => Some(refusal),
        // It went away, or its actor restarted, while it was waited for; nothing was sent either way.
        Reply::Settled(_) => Some(Refusal::Offline { last_heard: None }),
    }
}

async fn carry_out(desk: &Desk<'_>, house: &House, request: Request, silent: &Silent, answer_by: Instant) -> Rendered {
    let (fleet, caller, lang) = (desk.fleet, desk.caller, house.lang());
    match request {
        // A confirmation stands for what it confirms; there is none of a confirmation.
        Request::Confirm { .. } => answer::refusal(&Refusal::CodeWrong { left: 0 }, None, lang),
        Request::Ping => answer::pong(&format!("truetwin {}", env!("CARGO_PKG_VERSION")), lang),
        Request::Find { room, query } => find(fleet, house, room.as_deref(), query.as_deref(), answer_by).await,
        Request::State { thing, fresh } => {
            let naming = house.naming_of(&thing);
            match eyes::state(fleet, house, &thing, fresh, answer_by).await {
                Ok(report) => {
                    let description = house.entry(&thing).and_then(|e| e.description.as_deref());
                    answer::state(&report, description, &naming, lang)
                }
                Err(refusal) => {
                    desk.noting.replied([&Reply::Refused(refusal.clone())]);
                    answer::refusal(&refusal, Some(&naming), lang)
                }
            }
        }
        Request::Set { device, wish } => {
            let naming = house.naming(&device, Some(&wish.property));
            let reply = match house.rights().set(&device, wish) {
                Ok(_) if !house.greeted(&device) => Reply::Refused(Refusal::Offline { last_heard: None }),
                Ok(permitted) => fleet.set(caller, permitted, answer_by).await,
                Err(denied) => Reply::Refused(denied.refusal()),
            };
            desk.noting.replied([&reply]);
            answer::reply(&eyes::reply(reply, house.rights()), &naming, lang)
        }
        Request::Run { device, action } => {
            let naming = house.naming(&device, Some(&action));
            let reply = match house.rights().run(&device, action) {
                Ok(_) if !house.greeted(&device) => Reply::Refused(Refusal::Offline { last_heard: None }),
                Ok(permitted) => fleet.run(caller, permitted, Vec::new(), answer_by).await,
                Err(denied) => Reply::Refused(denied.refusal()),
            };
            desk.noting.replied([&reply]);
            answer::reply(&eyes::reply(reply, house.rights()), &naming, lang)
        }
        Request::Together(wanted) => {
            let told =
                together::carry_out(&fleet.quiet(), house, wanted, silent, caller, answer_by, desk.progress).await;
            desk.noting.replied(told.replies());
            desk.latest.keep(caller, told.clone());
            told.render(lang)
        }
        Request::Unheard { thing } => {
            answer::refusal(&Refusal::Offline { last_heard: None }, Some(&house.naming_of(&thing)), lang)
        }
        // Without a session callers of one name cannot be told apart, and another's operation is not theirs to hear of.
        Request::Check { operation: None, thing: None } if caller.is_shared() => {
            let allowed = "a device, or the id of an operation".to_owned();
            answer::refusal(&Refusal::MissingArgument { parameter: "device", allowed }, None, house.lang())
        }
        Request::Check { operation, thing } => {
            let (asked, rights) = (thing.as_ref().map(|thing| house.naming_of(thing)), house.rights());
            let is_latest = operation.is_none() && thing.is_none();
            let found = fleet.check(operation.as_ref(), thing.as_ref(), caller, rights).await;
            found.iter().for_each(|reply| desk.noting.checked(reply));
            match found.map(|reply| eyes::reply(reply, rights)) {
                Some(Reply::Settled(settled)) => {
                    // The latest of a group or a scene stands for the whole of it.
                    if let Some(told) = desk.latest.of(caller, &settled.op).filter(|_| is_latest) {
                        return told.brought_up_to_date(fleet, caller, rights).await.render(lang);
                    }
                    let naming = house.naming(&settled.device, Some(&settled.property));
                    answer::operation(&settled, &naming, lang)
                }
                Some(Reply::Refused(refusal)) => answer::refusal(&refusal, asked.as_ref(), lang),
                None => answer::nothing_known(operation.as_ref().map(OpId::as_str), asked.as_ref(), lang),
            }
        }
    }
}

async fn find(fleet: &Fleet, house: &House, room: Option<&str>, query: Option<&str>, answer_by: Instant) -> Rendered {
    let matching: Vec<&Entry> = house.listed().filter(|e| matches(e, room, query)).collect();
    let cards = fleet.cards();
    let row_by = answer_by.min(Instant::now() + Duration::from_millis(ROW_WAIT_MS));
    let mut rows = Vec::with_capacity(LIST_ROWS_MAX);
    for entry in matching.iter().take(LIST_ROWS_MAX) {
        let report = eyes::state(fleet, house, &entry.thing, false, row_by).await.ok();
        let card = cards.iter().find(|c| c.name.device == entry.thing.device);
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
    let rooms = entry.place.iter().flat_map(|r| [r.en.as_str(), r.zh.as_str()]);
    let mut texts =
        [entry.label.en.as_str(), entry.label.zh.as_str(), entry.thing.device.as_str()].into_iter().chain(rooms);
    in_room && texts.any(|t| t.to_lowercase().contains(&query))
}
