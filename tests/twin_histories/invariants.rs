//! The invariants of semantics 9 that one twin keeps, checked after each input of each history against the truth of the
//! board. Each panics with what it found.

use std::{collections::BTreeSet, time::Duration};

use truetwin::{
    property::{Evidence, Value},
    twin::{
        input::{ActionResult, Command, Effect, Ignored, Input},
        words::{OpId, Outcome, Reason, Reply, Settled, Stage},
    },
};

use crate::world::{Caller, Moment, World};

/// All of them.
pub(crate) fn check_all(world: &World, moment: &Moment) {
    no_phantom_success(world, moment);
    no_phantom_failure(world, moment);
    one_answer_per_caller_by_its_deadline(world, moment);
    no_drive_begins_after_act_by(world);
    no_op_is_carried_out_twice(world);
    non_repeatable_action_runs_at_most_once(world);
    retained_or_old_boot_never_converges(world, moment);
    failing_stage_is_the_one_in_the_table(world, moment);
    of_an_exclusive_group_one_is_in_flight(world);
    queues_and_memory_stay_bounded(world);
    only_what_was_told_is_corrected(world, moment);
    the_actor_never_spins(world, moment);
}

/// What is said to be done was so at the board's last word, and the board had finished this operation last. What is said
/// to be moving had begun.
fn no_phantom_success(world: &World, moment: &Moment) {
    let late = moment.effects.iter().filter_map(|e| if let Effect::LateSuccess { op } = e { Some(op) } else { None });
    let converged = world.newly_ended.iter().filter(|s| s.outcome == Outcome::Converged).map(|s| &s.op);
    for op in converged.chain(late) {
        let caller = &world.callers[op];
        if caller.runs {
            assert!(world.board.runs.iter().any(|(of, _)| of == op), "{op}: it was never run");
            continue;
        }
        let word = world.word(op).unwrap_or_else(|| panic!("{op}: done, and nothing was heard"));
        assert_eq!(caller.value, Some(Value::Bool(word.relay)), "{op}: at its last word the relay was otherwise");
        if world.metered && !caller.other {
            assert_eq!(caller.value, world.measured.map(Value::Bool), "{op}: the meter said otherwise");
        }
        assert!(word.finished.contains(&Some(op.clone())), "{op}: the board had finished {:?} last", word.finished);
        assert_eq!(world.output(op).results.get(op), Some(&ActionResult::Completed), "{op}: it was never completed");
        assert!(caller.sent.first().is_some_and(|(at, _, _)| *at <= world.output(op).received[op]));
    }
    for (op, settled) in settled(moment) {
        if settled.outcome == Outcome::Working && settled.reason != Some(Reason::Offline) {
            let caller = &world.callers[known(settled)];
            assert!(
                caller.runs || world.output(known(settled)).drives.iter().any(|d| d.op == *known(settled)),
                "{op}: it has not begun"
            );
        }
        let confirmed = settled.confirmed_by != Evidence::None;
        let success = [Outcome::Converged, Outcome::Already].contains(&settled.outcome);
        assert_eq!(confirmed, success, "{op}: confirmed only if it is done");
        let wish = &world.callers[op].wish;
        if success && wish.is_some() {
            assert_eq!(settled.wish, *wish, "{op}: that is not what this caller wished");
        }
        if settled.outcome == Outcome::Already {
            let relay = world.word(op).map(|word| Value::Bool(word.relay));
            assert_eq!(relay, *wish, "{op}: already, and it is otherwise");
        }
        if settled.outcome == Outcome::Superseded {
            assert!(settled.superseded_by.is_some() && settled.superseded_by != *wish, "{op}: superseded by itself");
        }
    }
}

/// What is said not to be done was not done, or was undone at the board's last word.
fn no_phantom_failure(world: &World, moment: &Moment) {
    for settled in &world.newly_ended {
        let op = &settled.op;
        let word = world.word(op);
        let as_wished = word.is_some_and(|w| Some(Value::Bool(w.relay)) == settled.wish);
        let finished = word.is_some_and(|w| w.finished.contains(&Some(op.clone())));
        if [Outcome::Rejected, Outcome::Cancelled].contains(&settled.outcome) {
            assert!(!world.board.runs.iter().any(|(of, _)| of == op), "{op}: {} and run", settled.outcome);
            assert!(!world.output(op).drives.iter().any(|d| d.op == *op), "{op}: {} and driven", settled.outcome);
        }
        if settled.outcome == Outcome::Failed {
            assert_eq!(world.output(op).results.get(op), Some(&ActionResult::Failed), "{op}");
            assert!(!(as_wished && finished), "{op}: failed, and it is as wished");
        }
        if settled.outcome == Outcome::Contradicted && settled.reason != Some(Reason::SensorDiffers) {
            assert!(!as_wished, "{op}: contradicted, and it is as wished");
        }
    }
    for effect in &moment.effects {
        if let Effect::Reply { op, reply: Reply::Refused(refusal) } = effect {
            assert!(!world.output(op).received.contains_key(op), "{op}: {refusal:?}, and the board has it");
        }
    }
}

/// One answer for each caller, at the latest at the first input after its limit; none for one who has gone.
fn one_answer_per_caller_by_its_deadline(world: &World, moment: &Moment) {
    for (op, caller) in &world.callers {
        let of_this =
            |e: &&Effect| matches!(e, Effect::Reply { op: of, .. } | Effect::State { op: of, .. } if of == op);
        let new = moment.effects.iter().filter(of_this).count();
        let all = caller.replies.len() + caller.states + new;
        assert!(all <= 1, "{op}: {all} answers");
        let went_now = matches!(&moment.input, Input::Cancel { op: of } if of == op);
        assert!(new == 0 || !caller.gone || went_now, "{op}: nobody waits");
        assert!(new == 0 || !caller.told_by_fleet, "{op}: it was told that the actor crashed");
        let margin = world.settings.answer_margin;
        if all == 0 && !caller.gone && !caller.told_by_fleet {
            assert!(moment.now < caller.answer_by - margin, "{op}: no answer by its limit");
        }
    }
}

/// No drive begins later than its `act_by`, but for what a board cannot tell from its clock's offset: the least transit of
/// its session. And `act_by` is not later than its caller's limit.
fn no_drive_begins_after_act_by(world: &World) {
    for drive in world.board.drives.iter().chain(world.other.iter().flat_map(|other| &other.drives)) {
        let caller = &world.callers[&drive.op];
        let (sent_at, ttl, _) = caller.sent.iter().rfind(|(at, _, _)| *at <= drive.at).expect("it was sent");
        let act_by = world.time(*sent_at) + *ttl;
        assert!(world.time(drive.at) <= act_by + Duration::from_millis(drive.skew), "{}: begun too late", drive.op);
        // Nobody was told that it is not known to be done, and then it began. Who was told that it is at work may see it
        // begin again after a reboot.
        let at_work = |(_, reply): &(_, Reply)| matches!(reply, Reply::Settled(s) if s.outcome == Outcome::Working);
        let in_time = act_by <= caller.answer_by - world.settings.answer_margin;
        assert!(in_time || caller.gone || caller.replies.iter().any(at_work), "{}: may outlive its caller", drive.op);
    }
}

/// Each operation is sent once in each session, and driven once in each run of the board; never in more than two runs
/// (semantics 5.3, 5.4).
fn no_op_is_carried_out_twice(world: &World) {
    for (op, caller) in &world.callers {
        let sessions: Vec<&str> = caller.sent.iter().filter_map(|(_, _, session)| session.as_deref()).collect();
        let different: BTreeSet<&&str> = sessions.iter().collect();
        assert_eq!(sessions.len(), different.len(), "{op}: sent twice in one session");
        let drives: Vec<u32> = world.output(op).drives.iter().filter(|d| d.op == *op).map(|d| d.boot).collect();
        let runs: BTreeSet<&u32> = drives.iter().collect();
        assert!(runs.len() == drives.len() && runs.len() <= 2, "{op}: driven in the runs {drives:?}");
    }
}

/// What must not be repeated is run once, whatever happens to the connection and the board.
fn non_repeatable_action_runs_at_most_once(world: &World) {
    for (op, caller) in world.callers.iter().filter(|(_, caller)| caller.runs) {
        assert!(caller.sent.len() <= 1 || !caller.written, "{op}: sent {} times", caller.sent.len());
        let runs = world.board.runs.iter().filter(|(of, _)| of == op).count();
        assert!(runs <= 1, "{op}: run {runs} times");
    }
}

/// What was delivered with the RETAIN flag or comes from another boot changes nothing.
fn retained_or_old_boot_never_converges(world: &World, moment: &Moment) {
    let Input::Heard(report) = &moment.input else { return };
    let hub_boot = world.hub_boot.map(crate::board::boot_token);
    if report.retained || hub_boot.as_ref() != Some(&report.boot) {
        let ignored = [Ignored::Retained, Ignored::OldBoot, Ignored::NotGreeted].map(Effect::Ignored);
        assert!(moment.effects.iter().any(|e| ignored.contains(e)), "{report:?}");
        assert!(world.newly_ended.iter().all(|s| s.outcome == Outcome::TimedOut), "{:?}", world.newly_ended);
        let claims = |e: &Effect| matches!(e, Effect::LateSuccess { .. } | Effect::Reverted { .. });
        assert!(!moment.effects.iter().any(claims));
        assert_eq!(world.twin.last_heard(), world.heard_before, "it proves no presence");
    }
}

/// The stage of an answer is the one to which the evidence had come.
fn failing_stage_is_the_one_in_the_table(world: &World, moment: &Moment) {
    for (op, settled) in settled(moment) {
        // It joined a held wish that is sent again, and that was not sent before this moment.
        let Some(caller) = world.callers.get(known(settled)) else {
            assert!(settled.stage <= Stage::WaitingBroker, "{op}: {:?}", settled.stage);
            continue;
        };
        let stage = match (settled.outcome, settled.reason) {
            (Outcome::Converged | Outcome::Already, _) => Stage::Settled,
            // Stored, and nothing sent.
            (Outcome::Working, Some(Reason::Offline)) => Stage::Admission,
            (Outcome::Contradicted, Some(Reason::SensorDiffers)) => Stage::WaitingSensor,
            // The meter is asked once the board's word and its read-back are good.
            _ if settled.stage == Stage::WaitingSensor => {
                assert!(world.metered, "{op}");
                continue;
            }
            (Outcome::SentUnverified, _) => Stage::WaitingDeviceReport,
            // It may have been sent in this very moment.
            (Outcome::Superseded, _) if caller.sent.is_empty() && !sends(moment, op) => Stage::Queued,
            (Outcome::Contradicted, _) => Stage::WaitingReadBack,
            (Outcome::TimedOut | Outcome::Working | Outcome::Removed | Outcome::Superseded, _)
            | (Outcome::DeviceCrashed, _)
            | (
                Outcome::Interrupted,
                Some(Reason::DeviceRestarted | Reason::HubStopping | Reason::BrokerDown | Reason::ConnectionLost),
            ) => caller.stage_before,
            (Outcome::Rejected | Outcome::Failed | Outcome::Interrupted, _) => caller.stage,
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

/// Of two outputs that exclude each other one has something in flight (semantics 4.5). What was superseded and lives on
/// counts as ended here, for its callers have heard so.
fn of_an_exclusive_group_one_is_in_flight(world: &World) {
    let sent =
        |caller: &&Caller| !caller.ended && !caller.runs && caller.stage > Stage::Queued && !caller.sent.is_empty();
    let open: BTreeSet<bool> = world.callers.values().filter(sent).map(|caller| caller.other).collect();
    assert!(open.len() <= 1, "both outputs have something in flight");
}

/// One in flight and eight of each caller behind it.
fn queues_and_memory_stay_bounded(world: &World) {
    assert!(world.twin.in_flight() <= 3 * world.settings.queued_max + 1);
}

/// What is owed is owed to one who was told something, under the id of its own call.
fn only_what_was_told_is_corrected(world: &World, moment: &Moment) {
    for effect in &moment.effects {
        let Effect::Owed { correction, .. } = effect else { continue };
        let caller = &world.callers[&correction.operation];
        let op = &correction.operation;
        let now = moment.effects.iter().any(|e| matches!(e, Effect::Reply { op: of, .. } if of == op));
        assert!(
            now || caller.told_by_fleet || !caller.replies.is_empty(),
            "{}: it was told nothing",
            correction.operation
        );
        assert_eq!(correction.settled.op, correction.operation);
        assert_ne!(correction.settled.outcome, Outcome::Working);
    }
}

fn sends(moment: &Moment, op: &OpId) -> bool {
    moment.effects.iter().any(|e| matches!(e, Effect::Send(Command::Set { op: of, .. }) if of == op))
}

/// The operation by the id that the board knows.
fn known(settled: &Settled) -> &OpId {
    settled.joined.as_ref().unwrap_or(&settled.op)
}

/// After each input the next wake-up lies ahead.
fn the_actor_never_spins(world: &World, moment: &Moment) {
    assert!(
        world.twin.deadline().is_none_or(|at| at > moment.now),
        "due at once after {:?}: {:?}",
        moment.input,
        world.twin
    );
}

/// What a twin holds altogether, as text: a bound on its memory.
pub(crate) fn size(world: &World) -> usize {
    format!("{:?}", world.twin).len()
}

fn settled(moment: &Moment) -> impl Iterator<Item = (&OpId, &Settled)> {
    moment.effects.iter().filter_map(|effect| {
        if let Effect::Reply { op, reply: Reply::Settled(settled) } = effect {
            return Some((op, settled.as_ref()));
        }
        None
    })
}
