//! The invariants of semantics 9, after each input, against the truth of the devices and of the disk. Each panics with what it
//! found.

use std::collections::BTreeSet;

use truetwin_proof::{
    property::{Evidence, Value},
    twin::{
        input::{ActionResult, Body, Cause, Command, Effect, Ignored, Input},
        words::{OpId, Outcome, Reason, Reply, Settled, Stage},
    },
};

use crate::{
    house::{House, Moment},
    hub,
    log::{boot_token, number},
    unit::{Call, For, Unit},
};

/// All that are about one input.
pub(crate) fn after_each_input(house: &mut House, moment: &Moment) {
    let unit = moment.unit;
    no_phantom_success(house, moment);
    no_phantom_failure(house, moment);
    one_answer_per_caller_by_its_deadline(house, moment);
    retained_or_old_boot_never_converges(house, moment);
    failing_stage_is_the_one_in_the_table(house, moment);
    devices_never_touch_each_other(house, moment);
    queues_and_memory_stay_bounded(house, moment);
    only_what_was_told_is_corrected(house, moment);
    what_is_late_is_late(house, moment);
    a_revert_is_noticed(house, moment);
    what_is_held_gives_way_to_newer_wishes_alone(house, moment);
    the_actor_never_spins(house, moment);
    claim(house, moment);
    confuse(house, moment);
    retire(house, unit, moment);
}

fn settled(moment: &Moment) -> impl Iterator<Item = (&OpId, &Settled)> {
    moment.effects.iter().filter_map(|effect| {
        if let Effect::Reply { op, reply: Reply::Settled(settled) } = effect {
            return Some((op, settled.as_ref()));
        }
        None
    })
}

/// The operation by the id that the device knows.
fn known(settled: &Settled) -> &OpId {
    settled.joined.as_ref().unwrap_or(&settled.op)
}

fn wished(call: &Call) -> Option<Value> {
    match call.what {
        For::Value(on) => Some(Value::Bool(on)),
        For::Toggle | For::Run | For::Query | For::Nobody => None,
    }
}

/// What is said to be done was so at the device's last word, and the device had finished this operation last; and it was read
/// back after its completion. What is said to be moving had begun.
fn no_phantom_success(house: &House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    let log = unit.thing.log();
    let late = moment.effects.iter().filter_map(|e| if let Effect::LateSuccess { op } = e { Some(op) } else { None });
    let converged = unit.newly_ended.iter().filter(|s| s.outcome == Outcome::Converged).map(|s| &s.op);
    for op in converged.chain(late) {
        let call = &house.calls[op];
        if call.what == For::Run {
            assert!(log.runs.iter().any(|(of, _)| of == op), "{op}: it was never run");
            continue;
        }
        let word = unit.last_word.as_ref().unwrap_or_else(|| panic!("{op}: done, and nothing was heard"));
        if let Some(value) = call.value {
            assert_eq!(value, word.relay, "{op}: at its last word the relay was otherwise");
        }
        if unit.kinds.metered {
            assert_eq!(call.value, unit.measured, "{op}: the meter said otherwise");
        }
        assert!(word.finished.contains(&Some(op.clone())), "{op}: the device had finished {:?} last", word.finished);
        assert_eq!(log.results.get(op), Some(&ActionResult::Completed), "{op}: it was never completed");
    }
    for settled in unit.newly_ended.iter().filter(|s| s.outcome == Outcome::Converged) {
        let call = &house.calls[&settled.op];
        if call.what != For::Run {
            read_back_after_completion(unit, &settled.op, call);
        }
    }
    for (op, settled) in settled(moment) {
        if settled.outcome == Outcome::Working && settled.reason != Some(Reason::Offline) {
            let of = known(settled);
            let fine = house.calls[of].what == For::Run || log.begun.contains(of) || log.results.contains_key(of);
            assert!(fine, "{op}: it has not begun");
        }
        let confirmed = settled.confirmed_by != Evidence::None;
        let success = settled.outcome.is_success();
        assert_eq!(confirmed, success, "{op}: confirmed only if it is done");
        let call = &house.calls[op];
        let wish = wished(call);
        if success && wish.is_some() {
            assert_eq!(settled.wish, wish, "{op}: that is not what this caller wished");
        }
        if settled.outcome == Outcome::Already {
            let relay = unit.last_word.as_ref().map(|word| Value::Bool(word.relay));
            assert_eq!(relay, wish, "{op}: already, and it is otherwise");
        }
        if settled.outcome == Outcome::Superseded {
            assert!(settled.superseded_by.is_some() && settled.superseded_by != wish, "{op}: superseded by itself");
        }
        if let Some(joined) = settled.joined.as_ref().and_then(|joined| house.calls.get(joined)) {
            assert!(call.what != For::Toggle, "{op}: relative wishes never join");
            let taken_in = joined.completed_at.is_none_or(|at| at >= call.asked_at) || joined.ended && !success;
            assert!(taken_in, "{op}: it joined what was completed before it was asked for");
        }
    }
}

/// The second check was asked for after the first had come and the value had held.
fn read_back_after_completion(unit: &Unit, op: &OpId, call: &Call) {
    let spec = unit.kinds.spec;
    let both_in_one = spec.stable_ms == 0 && spec.feedback >= Evidence::Pin;
    let fine = match (call.completed_at, call.read_back) {
        (Some(at), Some(asked)) => both_in_one || asked >= at + u64::from(spec.stable_ms),
        (Some(_), None) => both_in_one,
        (None, read_back) => read_back.is_some(),
    };
    assert!(fine, "{op}: completed at {:?}, the last answered question of {:?}", call.completed_at, call.read_back);
}

/// What is said not to be done was not done, or was undone at the device's last word.
fn no_phantom_failure(house: &House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    let log = unit.thing.log();
    for settled in &unit.newly_ended {
        let op = &settled.op;
        let word = unit.last_word.as_ref();
        let as_wished = word.is_some_and(|w| Some(Value::Bool(w.relay)) == settled.wish);
        let finished = word.is_some_and(|w| w.finished.contains(&Some(op.clone())));
        if [Outcome::Rejected, Outcome::Cancelled].contains(&settled.outcome) {
            assert!(!log.runs.iter().any(|(of, _)| of == op), "{op}: {} and run", settled.outcome);
            assert!(!log.begun.contains(op), "{op}: {} and driven", settled.outcome);
        }
        if settled.outcome == Outcome::Failed {
            assert_eq!(log.results.get(op), Some(&ActionResult::Failed), "{op}");
            assert!(!(as_wished && finished), "{op}: failed, and it is as wished");
        }
        if settled.outcome == Outcome::Contradicted && settled.reason != Some(Reason::SensorDiffers) {
            assert!(!as_wished, "{op}: contradicted, and it is as wished");
        }
    }
    for effect in &moment.effects {
        if let Effect::Reply { op, reply: Reply::Refused(refusal) } = effect {
            assert!(!log.received.contains_key(op), "{op}: {refusal:?}, and the device has it");
        }
    }
}

/// One answer for each caller, at the latest at the first input after its limit; none for one who has gone.
fn one_answer_per_caller_by_its_deadline(house: &House, moment: &Moment) {
    for op in &house.units[moment.unit].active {
        let call = &house.calls[op];
        let of_this =
            |e: &&Effect| matches!(e, Effect::Reply { op: of, .. } | Effect::State { op: of, .. } if of == op);
        let new = u32::try_from(moment.effects.iter().filter(of_this).count()).expect("few");
        let all = call.decided + new;
        assert!(all <= 1, "{op}: {all} answers");
        let went_now = matches!(&moment.input, Input::Cancel { op: of } if of == op);
        assert!(new == 0 || !call.gone || went_now, "{op}: nobody waits");
        assert!(new == 0 || !call.told_by_fleet, "{op}: it was told that the actor crashed");
        // The journal is written first; that has its own limit.
        let deferred = house.units[moment.unit].deferred.iter().any(|deferred| deferred.op == *op);
        if all == 0 && !call.gone && !call.told_by_fleet && !deferred {
            assert!(moment.now < call.answer_by - house.settings.answer_margin, "{op}: no answer by its limit");
        }
    }
    for effect in &moment.effects {
        if let Effect::Reply { op, .. } | Effect::State { op, .. } = effect {
            let active = house.units[moment.unit].active.contains(op);
            assert!(active, "{op}: an answer to nobody");
        }
    }
}

/// Whose limit has come hears of no success that came later (semantics 4.8).
fn what_is_late_is_late(house: &House, moment: &Moment) {
    for (op, settled) in settled(moment) {
        let late = moment.now >= house.calls[op].answer_by - house.settings.answer_margin;
        assert!(!(late && settled.outcome.is_success()), "{op}: {} after its limit", settled.outcome);
    }
}

/// What was delivered with the RETAIN flag or comes from another boot changes nothing.
fn retained_or_old_boot_never_converges(house: &House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    let Input::Heard(report) = &moment.input else { return };
    let hub_boot = unit.hub_boot.map(boot_token);
    if report.retained || hub_boot.as_ref() != Some(&report.boot) {
        let ignored = [Ignored::Retained, Ignored::OldBoot, Ignored::NotGreeted].map(Effect::Ignored);
        assert!(moment.effects.iter().any(|e| ignored.contains(e)), "{report:?}");
        assert!(unit.newly_ended.iter().all(|s| s.outcome == Outcome::TimedOut), "{:?}", unit.newly_ended);
        let claims = |e: &Effect| matches!(e, Effect::LateSuccess { .. } | Effect::Reverted { .. });
        assert!(!moment.effects.iter().any(claims));
        assert_eq!(unit.twin.last_heard(), unit.heard_before, "it proves no presence");
    }
}

/// The stage of an answer is the one to which the evidence had come.
fn failing_stage_is_the_one_in_the_table(house: &House, moment: &Moment) {
    for (op, settled) in settled(moment) {
        // It joined a held wish that is sent again, and that was not sent before this moment.
        let Some(call) = house.calls.get(known(settled)) else {
            assert!(settled.stage <= Stage::WaitingBroker, "{op}: {:?}", settled.stage);
            continue;
        };
        let stage = match (settled.outcome, settled.reason) {
            (Outcome::Converged | Outcome::Already, _) => Stage::Settled,
            // Stored, and nothing sent.
            (Outcome::Working, Some(Reason::Offline)) => Stage::Admission,
            (Outcome::Contradicted, Some(Reason::SensorDiffers)) => Stage::WaitingSensor,
            // The meter is asked once the device's word and its read-back are good.
            _ if settled.stage == Stage::WaitingSensor => {
                assert!(house.units[moment.unit].kinds.metered, "{op}");
                continue;
            }
            (Outcome::SentUnverified, _) => Stage::WaitingDeviceReport,
            // It may have been sent, or sent again, in this very moment.
            (Outcome::Superseded, _) if sends(moment, op) => Stage::WaitingBroker,
            (Outcome::Superseded, _) if call.sent.is_empty() => Stage::Queued,
            (Outcome::Contradicted, _) => Stage::WaitingReadBack,
            (Outcome::TimedOut | Outcome::Working | Outcome::Removed | Outcome::Superseded, _)
            | (Outcome::DeviceCrashed, _)
            | (
                Outcome::Interrupted,
                Some(Reason::DeviceRestarted | Reason::HubStopping | Reason::BrokerDown | Reason::ConnectionLost),
            ) => call.stage_before,
            (Outcome::Rejected | Outcome::Failed | Outcome::Interrupted, _) => call.stage,
            (outcome, _) => panic!("{op}: nobody hears {outcome} from a twin"),
        };
        assert_eq!(settled.stage, stage, "{op}: {} {:?}", settled.outcome, settled.reason);
        let needs_none = matches!(
            settled.outcome,
            Outcome::Converged | Outcome::Already | Outcome::Working | Outcome::Superseded | Outcome::Removed
        );
        assert!(settled.reason.is_none() == needs_none || settled.reason == Some(Reason::Offline));
    }
}

fn sends(moment: &Moment, op: &OpId) -> bool {
    moment.effects.iter().any(|e| matches!(e, Effect::Send(Command::Set { op: of, .. }) if of == op))
}

/// Everything that a twin does is about operations of its own device.
fn devices_never_touch_each_other(house: &House, moment: &Moment) {
    let own = |op: &OpId| house.calls.get(op).is_none_or(|call| call.device == moment.unit);
    let id = &house.units[moment.unit].id;
    for effect in &moment.effects {
        let fine = match effect {
            Effect::Send(Command::Set { op, .. } | Command::Run { op, .. } | Command::Withdraw { op }) => own(op),
            Effect::Reply { op, reply: Reply::Settled(settled) } => {
                assert_eq!(settled.op, *op, "an operation is told to the caller of another");
                own(op) && settled.device == *id
            }
            Effect::Reply { op, .. } | Effect::State { op, .. } => own(op),
            Effect::Owed { correction, .. } => own(&correction.operation) && correction.device == *id,
            Effect::Send(Command::Welcome { .. } | Command::GetState { .. })
            | Effect::Ask { .. }
            | Effect::StageLeft { .. }
            | Effect::Ended { .. }
            | Effect::LateSuccess { .. }
            | Effect::Reverted { .. }
            | Effect::LocalOverride { .. }
            | Effect::Presence(_)
            | Effect::Described(_)
            | Effect::Malformed { .. }
            | Effect::StaleHello { .. }
            | Effect::Ignored(_) => true,
        };
        assert!(fine, "{id}: {effect:?}");
    }
}

/// One in flight and eight of each caller behind it; and as much waits for the disk at the most.
fn queues_and_memory_stay_bounded(house: &House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    let most = crate::house::CALLERS * house.settings.queued_max + 3;
    assert!(unit.twin.in_flight() <= most, "{} in flight", unit.twin.in_flight());
    let wait = unit.answers.len() + unit.deferred.len();
    assert!(wait <= 8 * most, "{wait} wait for the disk");
}

/// What is owed is owed to one who was told something, under the id of its own call.
fn only_what_was_told_is_corrected(house: &House, moment: &Moment) {
    for effect in &moment.effects {
        let Effect::Owed { correction, .. } = effect else { continue };
        let op = &correction.operation;
        let call = &house.calls[op];
        let now = moment.effects.iter().any(|e| matches!(e, Effect::Reply { op: of, .. } if of == op));
        assert!(now || call.told_by_fleet || call.decided > 0, "{op}: it was told nothing");
        assert_eq!(correction.settled.op, *op);
        assert_ne!(correction.settled.outcome, Outcome::Working);
    }
}

/// After each input the next wake-up lies ahead.
fn the_actor_never_spins(house: &House, moment: &Moment) {
    let deadline = house.units[moment.unit].twin.deadline();
    assert!(deadline.is_none_or(|at| at > moment.now), "due at once after {:?}", moment.input);
}

/// What was confirmed last is what the next word must still show; if not, that is told (semantics 3.7).
fn a_revert_is_noticed(house: &mut House, moment: &Moment) {
    let (boot, seq, cause) = match &moment.input {
        Input::Heard(report) => {
            let cause = if let Body::State { cause, .. } = &report.body { *cause } else { Cause::Command };
            (number(&report.boot), report.seq, cause)
        }
        Input::Greeted { hello, .. } => (number(&hello.boot), hello.seq, hello.cause),
        _ => return,
    };
    let unit = &mut house.units[moment.unit];
    let Some((op, value, at)) = &unit.claimed else { return };
    let newest = unit.last_word.as_ref().filter(|word| word.seq == seq && unit.hub_boot == Some(boot));
    let Some(word) = newest.filter(|word| word.relay != *value) else { return };
    let told = moment.effects.iter().any(|e| matches!(e, Effect::Reverted { .. }));
    if told {
        unit.claimed = None;
        return;
    }
    let ignored = moment.effects.iter().any(|e| matches!(e, Effect::Ignored(_)));
    let watched = house.now.saturating_sub(*at) < 590_000;
    let in_flight = unit.active.iter().map(|op| &house.calls[op]).any(|call| {
        let overtaken = call.told.contains(&Outcome::Superseded);
        !call.ended && !overtaken && !call.sent.is_empty() && !matches!(call.what, For::Run | For::Query)
    });
    if cause == Cause::Local && !ignored {
        unit.claimed = None;
        return;
    }
    if ignored || in_flight || !watched {
        return;
    }
    panic!("{op}: confirmed as {value}, reads {}, and nobody says so", word.relay);
}

/// A set point gives way to a newer one, to a hand at the device, or to the one before it if its caller was refused: never to what
/// the hub itself had wished earlier, nor because it has not come true yet (semantics 6.2).
fn what_is_held_gives_way_to_newer_wishes_alone(house: &mut House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    if moment.effects.iter().any(|e| matches!(e, Effect::LocalOverride { .. })) {
        let alone = unit.last_word.as_ref().is_some_and(|word| word.alone);
        assert!(alone, "{}: taken for a hand at the device, and a command had brought it about", unit.id);
    }
    let is = unit.twin.held().get("relay").map(|held| held.kept().op);
    if let Some(call) = is.as_ref().and_then(|op| house.calls.get(op)) {
        let refused = call.refused && call.run == house.run;
        assert!(!refused, "{is:?}: refused, and held");
    }
    if let (Some(was), Some(is)) = (&unit.held_op, &is)
        && let (Some(old), Some(new)) = (house.calls.get(was), house.calls.get(is))
    {
        let now = |e: &Effect| matches!(e, Effect::Reply { op, reply: Reply::Refused(_) } if op == was);
        let refused = old.refused || moment.effects.iter().any(now);
        // Relative wishes come to their turns in any order.
        let in_turn = new.what == For::Toggle || new.asked_at >= old.asked_at;
        assert!(refused || in_turn, "{is}: held after {was}, which is newer");
    }
    house.units[moment.unit].held_op = is;
}

fn claim(house: &mut House, moment: &Moment) {
    let now = house.now;
    let unit = &mut house.units[moment.unit];
    let sent = moment.effects.iter().any(|e| matches!(e, Effect::Send(Command::Set { .. })));
    for settled in unit.newly_ended.iter().filter(|s| s.outcome == Outcome::Converged && !sent) {
        let call = &house.calls[&settled.op];
        if let (Some(value), false) = (call.value, call.what == For::Run) {
            unit.claimed = Some((settled.op.clone(), value, now));
        }
    }
}

/// The stage that is said beside the one in which the fault really was.
fn confuse(house: &mut House, moment: &Moment) {
    let unit = &house.units[moment.unit];
    let log = unit.thing.log();
    let mut seen = Vec::new();
    for settled in &unit.newly_ended {
        let op = &settled.op;
        let not_known = matches!(
            settled.outcome,
            Outcome::TimedOut | Outcome::Rejected | Outcome::Failed | Outcome::Contradicted | Outcome::SentUnverified
        );
        if !not_known {
            continue;
        }
        let call = &house.calls[op];
        let as_wished = call.value.is_some_and(|value| value == log.relay);
        let was = match log.results.get(op) {
            _ if settled.reason == Some(Reason::SensorDiffers) => Stage::WaitingSensor,
            _ if !log.received.contains_key(op) && !call.really_sent => Stage::WaitingBroker,
            _ if !log.received.contains_key(op) => Stage::WaitingDeviceAck,
            Some(ActionResult::Rejected) if !log.begun.contains(op) && settled.reason == Some(Reason::Expired) => {
                Stage::WaitingDeviceStart
            }
            Some(ActionResult::Rejected) => Stage::WaitingDeviceAck,
            // Its completion was heard: it is the read-back that is missing.
            Some(ActionResult::Completed) if call.completed_at.is_some() && call.what != For::Run => {
                Stage::WaitingReadBack
            }
            Some(ActionResult::Completed) if as_wished || call.what == For::Run => Stage::WaitingDeviceReport,
            Some(ActionResult::Completed) => Stage::WaitingReadBack,
            _ if !log.begun.contains(op) => Stage::WaitingDeviceStart,
            Some(_) | None => Stage::WaitingDeviceReport,
        };
        seen.push((settled.stage, was));
    }
    for pair in seen {
        *house.tally.confusion.entry(pair).or_default() += 1;
    }
}

/// Calls that nothing more can happen to are looked at no more.
fn retire(house: &mut House, unit: usize, moment: &Moment) {
    let answered: BTreeSet<&OpId> = moment
        .effects
        .iter()
        .filter_map(|e| if let Effect::Reply { op, .. } | Effect::State { op, .. } = e { Some(op) } else { None })
        .collect();
    let mut retired = Vec::new();
    for op in &house.units[unit].active {
        let call = &house.calls[op];
        // Its answer is carried out after this look.
        let told = call.decided > 0 || call.gone || call.told_by_fleet;
        if told && !answered.contains(op) && (call.ended || call.sent.is_empty()) && !house.units[unit].twin.is_open(op)
        {
            retired.push(op.clone());
        }
    }
    for op in retired {
        house.units[unit].active.retain(|other| *other != op);
        let call = house.calls.get_mut(&op).expect("a call");
        call.active = false;
        count(&mut house.tally, call);
    }
}

/// Counts a call as an operation, if it was one.
pub(crate) fn count(tally: &mut crate::tally::Tally, call: &Call) {
    if !call.refused
        && matches!(call.what, For::Value(_) | For::Toggle | For::Run)
        && call.told.iter().any(|o| hub::is_end(*o))
        || !call.sent.is_empty()
    {
        tally.operations += 1;
        tally.troubled += u64::from(!call.met.is_empty());
    }
}
