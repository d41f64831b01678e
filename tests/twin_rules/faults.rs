//! One test for each row of the fault table that is due; `tests/rules.rs` reads their names.

use truetwin::{
    property::{Evidence, Property, Value},
    twin::{
        input::{ActionResult, Cause, Command, Effect, Input},
        words::{Outcome, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

#[test]
fn fault_none() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    assert!(bench.replies("a").is_empty(), "the value has not held yet");
    bench.answers(620, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    let (ms, settled) = bench.settled("a");
    assert_eq!((ms, settled.confirmed_by), (620, Evidence::Pin));
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn fault_offline_known() {
    let mut bench = Bench::relay();
    bench.disconnect(1_000);
    bench.set(100_000, "a", ON, 108_000);
    let (ms, refusal) = bench.refusal("a");
    assert_eq!(ms, 100_000, "in milliseconds");
    assert!(matches!(refusal, Refusal::Offline { last_heard: Some(_) }));
    assert!(bench.sets().is_empty());
}

#[test]
fn fault_frozen_socket_open_nothing_answers() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(110, "a");
    bench.until(20_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout)));
    assert!(bench.withdrawn("a"), "still, also after thawing");
    let ttl = bench.commands().iter().find_map(|c| if let Command::Set { ttl, .. } = c { Some(*ttl) } else { None });
    assert_eq!(
        ttl.map(|ttl| ttl.as_millis()),
        Some(1700),
        "and its time limit ends it anyway, before the caller hears"
    );
}

#[test]
fn fault_command_lost() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(110, "a");
    // The board is well, it only never had the command.
    bench.answers(1_700, OFF, None);
    bench.until(20_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout)));
    assert_eq!(bench.settled("a").1.found.map(|f| f.value), Some(OFF));
}

#[test]
fn fault_acknowledgement_lost_rest_arrives() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(110, "a");
    bench.completed(400, "a", ON);
    bench.answers(620, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn fault_device_busy_or_refuses() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(110, "a");
    bench.refuses(120, "a", ActionResult::Rejected, Reason::Busy);
    assert_eq!(bench.outcome("a"), (Outcome::Rejected, Stage::WaitingDeviceAck, Some(Reason::Busy)));
}

#[test]
fn fault_task_never_starts_after_the_acknowledgement() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(110, "a");
    bench.says(120, "a", ActionResult::Received);
    bench.until(20_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceStart, Some(Reason::Timeout)));
    assert!(bench.withdrawn("a"));
}

#[test]
fn fault_slow_within_allowance() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(1_100, "a", ON);
    bench.answers(1_310, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn fault_slow_beyond_the_caller_within_allowance() {
    let mut bench = Bench::online(Property { expected_ms: 25_000, stable_ms: 0, ..relay() }, OFF);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.until(8000);
    assert_eq!(bench.outcome("a"), (Outcome::Working, Stage::WaitingDeviceReport, None));
    assert_eq!(bench.settled("a").0, 7_950, "before its caller's limit, by the margin");
    assert!(!bench.withdrawn("a"), "a blind that takes 25 s is not stopped because a voice box must be answered");
    bench.completed(24_000, "a", ON);
    assert_eq!(bench.check(24_001, "a").outcome, Outcome::Converged);
    assert_eq!(bench.replies("a").len(), 1);
}

#[test]
fn fault_could_begin_later_than_act_by_only_says_nothing() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.says(120, "a", ActionResult::Received);
    bench.until(30_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceStart, Some(Reason::Timeout)));
}

#[test]
fn fault_could_begin_later_than_act_by_only_says_so() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.says(120, "a", ActionResult::Received);
    bench.refuses(2_150, "a", ActionResult::Rejected, Reason::Expired);
    assert_eq!(bench.outcome("a"), (Outcome::Rejected, Stage::WaitingDeviceStart, Some(Reason::Expired)));
}

#[test]
fn fault_stuck_device_notices() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.refuses(400, "a", ActionResult::Failed, Reason::Stuck);
    assert_eq!(bench.outcome("a"), (Outcome::Failed, Stage::WaitingDeviceReport, Some(Reason::Stuck)));
    // The same stage if the board leaves `executing` out.
    bench.set(1_000, "b", ON, 8000);
    bench.written(1_010, "b");
    bench.refuses(1_020, "b", ActionResult::Failed, Reason::Stuck);
    assert_eq!(bench.outcome("b"), (Outcome::Failed, Stage::WaitingDeviceReport, Some(Reason::Stuck)));
}

#[test]
fn fault_completion_report_lost_read_back_works() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    // Three quarters of the 1 s of driving are gone at 880.
    bench.until(879);
    assert_eq!(bench.questions(), 0);
    bench.answers(890, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn fault_everything_after_driving_lost() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.until(5_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout)));
    bench.tells(6_000, ON, Cause::Periodic, Some("a"));
    assert!(bench.has(&Effect::LateSuccess { op: op("a") }));
    let late = bench.check(6_001, "a");
    assert!(late.late_success && late.outcome == Outcome::TimedOut && late.confirmed_by == Evidence::Pin);
}

#[test]
fn fault_firmware_says_completed_read_back_differs() {
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, ..relay() }, OFF);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    bench.answers(620, OFF, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers)));
    assert_eq!(bench.settled("a").1.found.map(|f| f.value), Some(OFF), "the actual value");
    // And if the report itself says otherwise, at once.
    bench.set(1_000, "b", ON, 8000);
    bench.begin(1_010, "b");
    bench.completed(1_400, "b", OFF);
    assert_eq!(bench.outcome("b"), (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers)));
}

#[test]
fn fault_reverts_within_stable_for() {
    // Found at the read-back.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    bench.answers(620, OFF, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers)));
    // Or told before it.
    bench.set(1_000, "b", ON, 8000);
    bench.begin(1_010, "b");
    bench.completed(1_400, "b", ON);
    bench.tells(1_450, OFF, Cause::Unknown, Some("b"));
    assert_eq!(bench.outcome("b"), (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::DidNotHold)));
    assert_eq!(bench.settled("b").0, 1_450, "at once");
}

#[test]
fn fault_reverts_after_the_answer() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.tells(60_000, OFF, Cause::Periodic, Some("a"));
    let reverted = Effect::Reverted { op: op("a"), property: "relay".into() };
    assert!(bench.has(&reverted));
    assert!(bench.check(60_001, "a").reverted);
    assert_eq!(bench.twin.state(bench.time(60_001)).reverted, ["relay".into()]);
}

#[test]
fn fault_answers_with_a_wrong_type_or_an_unknown_word() {
    // A wrong type, in the report and in the answer to the question.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", Value::Text("on".into()));
    bench.answers(1_000, Value::Text("on".into()), Some("a"));
    bench.until(5_000);
    let unreadable = (Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::UnreadableReport));
    assert_eq!(bench.outcome("a"), unreadable);
    assert!(bench.effects.iter().any(|(_, e)| matches!(e, Effect::Malformed { .. })), "the device is told");
    // A word that nobody knows.
    bench.set(6_000, "b", ON, 14_000);
    bench.begin(6_010, "b");
    bench.says(6_400, "b", ActionResult::Unknown);
    bench.until(10_000);
    assert_eq!(bench.outcome("b"), unreadable);
    // Bytes that nobody can read.
    bench.set(11_000, "c", ON, 19_000);
    bench.begin(11_010, "c");
    bench.at(11_400, Input::Unreadable);
    bench.until(15_000);
    assert_eq!(bench.outcome("c"), unreadable);
}

#[test]
fn fault_late_drives_after_the_answer_although_told_not_to_a_lying_board() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.until(5_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout)));
    assert!(bench.withdrawn("a"));
    bench.completed(20_000, "a", ON);
    assert!(bench.has(&Effect::LateSuccess { op: op("a") }));
}

#[test]
fn fault_reboot_before_driving_repeatable() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.says(120, "a", ActionResult::Received);
    bench.reboot("boot2");
    bench.disconnect(300);
    bench.connect(2_000);
    bench.hello(2_010, OFF, None);
    bench.begin(2_020, "a");
    bench.completed(2_300, "a", ON);
    bench.answers(2_600, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn fault_reboot_after_driving_before_the_report() {
    // A board that keeps what it has finished says so in its hello.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.disconnect(300);
    bench.connect(2_000);
    bench.hello(2_010, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    assert_eq!(bench.sets(), [op("a")]);
    // Another is told once more; what is so already moves nothing.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.disconnect(300);
    bench.connect(2_000);
    bench.hello(2_010, ON, None);
    bench.begin(2_020, "a");
    bench.completed(2_050, "a", ON);
    bench.answers(2_300, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    assert_eq!(bench.sets(), [op("a"), op("a")]);
}

#[test]
fn fault_brown_out_on_each_driving() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.disconnect(300);
    bench.connect(2_000);
    bench.hello(2_010, OFF, None);
    bench.begin(2_020, "a");
    bench.reboot("boot3");
    bench.disconnect(2_300);
    bench.connect(4_000);
    bench.hello(4_010, OFF, None);
    let ended = (Outcome::DeviceCrashed, Stage::WaitingDeviceReport, Some(Reason::DeviceRestarted));
    assert_eq!(bench.outcome("a"), ended);
    assert_eq!(bench.settled("a").1.found.map(|found| found.value), Some(OFF), "it is at its safe level");
    assert!(bench.withdrawn("a"));
}
