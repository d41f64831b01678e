//! What becomes of an operation when its device goes away and comes back (semantics 5.3, 5.4).

use truetwin::{
    property::Property,
    twin::{
        input::{ActionResult, Body, Cause, Command, Input},
        words::{Outcome, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

/// How late each sending of an operation may begin, milliseconds.
fn limits(bench: &Bench) -> Vec<u128> {
    let ttl = |c: Command| if let Command::Set { ttl, .. } = c { Some(ttl.as_millis()) } else { None };
    bench.commands().into_iter().filter_map(ttl).collect()
}

#[test]
fn s5_3_what_was_not_acknowledged_is_sent_again_in_the_new_session() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.disconnect(200);
    bench.connect(1_400);
    bench.hello(1_410, OFF, None);
    assert_eq!(bench.sets(), [op("a"), op("a")], "the same operation, so a device that has it knows it again");
    assert_eq!(limits(&bench), [1_700, 1_700]);
    bench.begin(1_420, "a");
    bench.completed(1_700, "a", ON);
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s5_3_what_cannot_begin_in_time_any_more_is_not_sent_again() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 2_000);
    bench.written(110, "a");
    bench.disconnect(200);
    bench.connect(1_890);
    bench.hello(1_900, OFF, None);
    bench.until(20_000);
    assert_eq!(bench.sets(), [op("a")]);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout)));
}

#[test]
fn s5_3_a_second_sending_may_begin_no_later_than_its_caller_hears() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 2_500);
    bench.written(110, "a");
    bench.connect(1_400);
    bench.hello(1_450, OFF, None);
    assert_eq!(limits(&bench), [1_700, 750]);
}

#[test]
fn s5_3_what_must_not_be_repeated_waits_on_and_is_asked_for() {
    let mut bench = Bench::online(Property { repeatable: false, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.connect(300);
    bench.hello(310, OFF, None);
    let asked = bench.questions();
    bench.answers(700, ON, Some("a"));
    assert_eq!(bench.sets(), [op("a")]);
    assert_eq!(bench.questions(), asked + 1);
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s5_3_what_was_acknowledged_waits_for_the_outbox_and_is_asked_for_once() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.disconnect(200);
    bench.connect(2_400);
    bench.hello(2_410, OFF, None);
    assert_eq!(bench.questions(), 0, "its outbox comes first");
    bench.until(2_710);
    assert_eq!((bench.questions(), bench.sets().len()), (1, 1));
    bench.answers(2_720, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s5_3_a_completion_from_the_outbox_needs_its_read_back() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.disconnect(200);
    bench.connect(1_400);
    bench.hello(1_410, OFF, None);
    bench.completed(1_450, "a", ON);
    assert!(bench.replies("a").is_empty());
    bench.answers(1_700, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s5_3_a_device_that_stays_away_is_waited_for_no_longer_than_a_moment() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.disconnect(200);
    bench.until(30_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout)));
    assert_eq!(bench.settled("a").0, 3_700);
    assert_eq!(bench.questions(), 0, "nobody is there to be asked");
}

#[test]
fn s5_3_a_connection_that_flaps_keeps_no_operation_alive_for_ever() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    for n in 0..300 {
        bench.disconnect(1_000 + n * 2_000);
        bench.connect(2_000 + n * 2_000);
    }
    assert_eq!(bench.check(602_000, "a").outcome, Outcome::TimedOut);
}

#[test]
fn s5_3_what_never_reached_a_device_that_has_gone_waits_for_it_again() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.disconnect(110);
    bench.at(120, Input::NotWritten { op: op("a") });
    bench.connect(1_000);
    bench.hello(1_010, OFF, None);
    assert_eq!(bench.sets(), [op("a"), op("a")]);
    bench.set(5_000, "b", ON, 20_000);
    bench.disconnect(5_001);
    bench.at(5_002, Input::NotWritten { op: op("b") });
    bench.until(20_000);
    assert!(matches!(bench.refusal("b"), (7_502, Refusal::Offline { .. })), "no longer than that: nothing was sent");
}

#[test]
fn s5_3_a_sending_that_nobody_said_was_not_written_may_have_been() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    // The device has it, and its word and the notice of the writing went with the connection.
    bench.connect(150);
    bench.hello(160, OFF, None);
    assert_eq!(bench.sets(), [op("a"), op("a")]);
    bench.at(170, Input::BusDown);
    bench.at(171, Input::NotWritten { op: op("a") });
    assert_eq!(bench.outcome("a"), (Outcome::Interrupted, Stage::WaitingBroker, Some(Reason::BrokerDown)));
    // Nor is it refused for a device that goes once more.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.connect(150);
    bench.hello(160, OFF, None);
    bench.disconnect(170);
    bench.at(171, Input::NotWritten { op: op("a") });
    bench.until(20_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingBroker, Some(Reason::Timeout)));
}

#[test]
fn s5_4_a_reboot_before_the_acknowledgement_sends_the_same_operation_again() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.reboot("boot2");
    bench.connect(1_500);
    bench.hello(1_510, OFF, None);
    assert_eq!(bench.sets(), [op("a"), op("a")]);
}

#[test]
fn s5_4_what_does_not_repeat_is_not_sent_again_though_it_was_not_acknowledged() {
    let mut bench = Bench::online(Property { repeatable: false, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.reboot("boot2");
    bench.connect(1_500);
    bench.hello(1_510, OFF, None);
    assert_eq!(bench.outcome("a"), (Outcome::Interrupted, Stage::WaitingDeviceAck, Some(Reason::DeviceRestarted)));
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s5_4_an_equal_value_of_a_new_run_is_no_evidence_of_the_operation() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", OFF, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    assert!(bench.replies("a").is_empty(), "it fell to its safe level, which is what was wished by chance");
    assert_eq!(bench.sets(), [op("a"), op("a")]);
}

#[test]
fn s5_4_after_a_reboot_the_stages_begin_anew() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 2_500);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    bench.written(520, "a");
    bench.until(20_000);
    // Not `working`: in this run it has not begun.
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout)));
}

#[test]
fn s5_4_a_refusal_in_the_second_run_does_not_say_what_the_first_did() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    bench.written(520, "a");
    bench.refuses(530, "a", ActionResult::Rejected, Reason::Busy);
    assert_eq!(bench.outcome("a"), (Outcome::Interrupted, Stage::WaitingDeviceAck, Some(Reason::Busy)));
}

#[test]
fn s5_4_two_reboots_in_one_operation_are_a_crash() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    for (n, boot) in ["boot2", "boot3"].into_iter().enumerate() {
        let at = 1_000 * (n as u64 + 1);
        bench.begin(at - 800, "a");
        bench.reboot(boot);
        bench.connect(at);
        bench.hello(at + 10, OFF, None);
    }
    assert_eq!(bench.outcome("a"), (Outcome::DeviceCrashed, Stage::WaitingDeviceReport, Some(Reason::DeviceRestarted)));
    assert_eq!(bench.sets(), [op("a"), op("a")], "sent again once");
}

#[test]
fn s5_4_a_report_of_the_run_before_counts_for_nothing() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let status = vec![bench.status(ON)];
    let late = bench.action("a", ActionResult::Completed, status, None);
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    bench.at(520, Input::Heard(late));
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s5_4_what_its_caller_gave_up_is_not_sent_again() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.at(120, Input::Cancel { op: op("a") });
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    assert_eq!(bench.sets(), [op("a")]);
    assert_eq!(bench.check(600, "a").outcome, Outcome::Interrupted);
}

#[test]
fn s5_4_a_hello_of_the_new_run_that_contradicts_is_a_contradiction() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Contradicted);
    bench.tells(600, OFF, Cause::Periodic, Some("a"));
}

#[test]
fn s4_4_a_reboot_repeats_nothing_for_a_wish_behind_which_relative_ones_wait() {
    let mut bench = Bench::relay();
    bench.set(100, "old", ON, 8_000);
    bench.begin(110, "old");
    bench.completed(400, "old", ON);
    bench.connect(450);
    bench.set(460, "new", OFF, 8_000);
    bench.toggle(470, "other", 8_000);
    bench.reboot("boot2");
    bench.hello(500, OFF, None);
    assert_eq!(bench.outcome("old"), (Outcome::Superseded, Stage::WaitingReadBack, None));
    assert_eq!(bench.sets(), [op("old"), op("new")]);
    bench.begin(510, "new");
    bench.completed(800, "new", OFF);
    bench.answers(1_000, OFF, Some("new"));
    assert_eq!(bench.value_of("other"), ON, "it moves from where the newer wish led");
}

#[test]
fn s5_4_how_long_the_run_before_would_have_taken_is_not_said_of_the_next() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let eta = Some(std::time::Duration::from_secs(5));
    let body = Body::Action { op: op("a"), result: ActionResult::Working, reason: None, eta, clamped: false };
    let report = bench.report(Vec::new(), body);
    bench.at(140, Input::Heard(report));
    assert!(bench.check(150, "a").eta.is_some());
    bench.reboot("boot2");
    bench.connect(200);
    bench.hello(210, OFF, None);
    assert_eq!(bench.check(220, "a").eta, None);
}

/// Found by the simulator, seed 106074: the actor crashed over the news of a connection, and the end of the one before took the
/// device away from its successor for ever.
#[test]
fn s5_8_a_connection_that_opens_as_the_actor_crashes_is_its_successors() {
    let mut bench = Bench::relay();
    let mut memory = bench.twin.memory(bench.time(100));
    let before = memory.connection.expect("it is connected");
    memory.happens(&Input::Connected { connection: before + 1 });
    bench.at(100, Input::Restored(memory));
    bench.hello(200, OFF, None);
    bench.at(300, Input::Disconnected { connection: before });
    assert_eq!(bench.twin.presence(), truetwin::twin::words::Presence::Online);
    let mut memory = bench.twin.memory(bench.time(400));
    memory.happens(&Input::Disconnected { connection: before + 1 });
    assert_eq!((memory.connection, memory.session), (None, None));
}
