//! 4: what callers hear, and when. 6.1: what is left when a wish was not met.

use std::time::{Duration, Instant};

use truetwin::{
    property::{Evidence, Property, Role, Value},
    twin::{
        input::{ActionResult, Body, Cause, Command, Effect, Input},
        settings::Settings,
        wish::Wish,
        words::{Outcome, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay, wish};

/// How long after its sending a command may begin, as the device is told: `act_by` less the way that it cannot see, 300 ms
/// or a quarter.
fn ttl_ms(bench: &Bench) -> u128 {
    let ttl = |c: Command| if let Command::Set { ttl, .. } = c { Some(ttl.as_millis()) } else { None };
    bench.commands().into_iter().find_map(ttl).expect("a command was sent")
}

#[test]
fn s4_1_act_by_comes_from_the_stage_allowances() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    assert_eq!(ttl_ms(&bench), 2_000 - 300);
}

#[test]
fn s4_1_act_by_is_never_later_than_the_callers_limit() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 1_100);
    assert_eq!(ttl_ms(&bench), 950 - 238);
}

#[test]
fn s4_1_act_by_is_at_most_the_configured_maximum() {
    let start = Instant::now();
    let settings = Settings { act_by_max: Duration::from_millis(1_500), ..Settings::new(start) };
    let mut bench = Bench::with(vec![relay()], settings, start);
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench.set(100, "a", ON, 30_000);
    assert_eq!(ttl_ms(&bench), 1_500 - 300);
}

#[test]
fn s4_1_the_time_to_begin_counts_from_the_sending_not_from_the_receipt() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(900, "a");
    bench.until(2_099);
    assert!(bench.replies("a").is_empty());
    bench.until(2_100);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
}

#[test]
fn s4_2_a_caller_hears_working_while_the_device_is_at_work() {
    let mut bench = Bench::online(Property { expected_ms: 25_000, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let mut report = bench.action("a", ActionResult::Working, Vec::new(), None);
    if let Body::Action { eta, .. } = &mut report.body {
        *eta = Some(Duration::from_secs(20));
    }
    bench.at(5_000, Input::Heard(report));
    bench.until(8_000);
    let (_, settled) = bench.settled("a");
    assert_eq!((settled.outcome, settled.eta.map(|e| e.as_millis())), (Outcome::Working, Some(17_050)));
    bench.until(60_000);
    assert_eq!(bench.check(60_000, "a").outcome, Outcome::TimedOut, "it lives on to its own end");
    assert_eq!(bench.replies("a").len(), 1);
}

#[test]
fn s4_2_without_a_sign_of_starting_it_is_not_working() {
    for say in [None, Some(ActionResult::Received)] {
        let mut bench = Bench::relay();
        bench.set(100, "a", ON, 1_000);
        bench.written(110, "a");
        if let Some(result) = say {
            bench.says(120, "a", result);
        }
        bench.until(1_000);
        assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
        assert_eq!(bench.settled("a").0, 950);
        assert!(bench.withdrawn("a"));
    }
}

#[test]
fn s4_5_one_operation_is_in_flight_on_a_property_and_the_others_wait_in_order() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "z", ON, 30_000);
    bench.toggle(101, "y", 30_000);
    bench.toggle(102, "x", 30_000);
    assert_eq!(bench.sets(), [op("z")]);
    bench.begin(110, "z");
    bench.completed(400, "z", ON);
    assert_eq!(bench.sets(), [op("z"), op("y")]);
    bench.begin(410, "y");
    bench.completed(700, "y", OFF);
    assert_eq!(bench.sets(), [op("z"), op("y"), op("x")]);
    assert_eq!(bench.twin.desired("relay").map(|d| d.op.clone()), Some(op("x")));
}

#[test]
fn s4_5_a_full_queue_refuses_at_once() {
    let mut bench = Bench::relay();
    for n in 0..9 {
        bench.toggle(100, &format!("a{n}"), 30_000);
    }
    bench.toggle(100, "b", 30_000);
    assert_eq!(bench.refusal("b"), (100, Refusal::QueueFull { limit: 8 }));
    for n in 0..33 {
        bench.at(100, Input::Query { op: op(&format!("q{n}")), answer_by: bench.time(8_000) });
    }
    assert_eq!(bench.told("q32").1, Err(Refusal::QueueFull { limit: 32 }));
}

#[test]
fn s4_5_the_queue_is_bounded_before_the_device_has_described_itself() {
    let mut bench = Bench::just_started(vec![relay()]);
    for n in 0..12 {
        let answer_by = bench.time(8_000);
        let input = wish(&format!("a{n}"), "me", Wish::to(format!("p{n}"), ON), answer_by);
        bench.at(100, input);
    }
    assert_eq!(bench.twin.in_flight(), 8);
}

#[test]
fn s4_5_whose_limit_comes_in_the_queue_is_refused_and_nothing_was_sent() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.set(120, "b", OFF, 800);
    bench.until(800);
    assert!(matches!(bench.refusal("b"), (750, Refusal::DeadlineTooShort { .. })));
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s4_7_what_was_not_sent_is_forgotten_when_its_caller_goes() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.toggle(110, "b", 30_000);
    bench.at(120, Input::Cancel { op: op("b") });
    bench.begin(130, "a");
    bench.completed(400, "a", ON);
    bench.answers(620, ON, Some("a"));
    bench.until(60_000);
    assert_eq!(bench.sets(), [op("a")]);
    assert!(bench.replies("b").is_empty());
}

#[test]
fn s4_7_what_has_not_begun_is_withdrawn_and_cancelled_once_the_device_says_so() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.says(120, "a", ActionResult::Received);
    bench.at(130, Input::Cancel { op: op("a") });
    assert!(bench.withdrawn("a"));
    assert_eq!(bench.check(135, "a").outcome, Outcome::Working, "it may have begun");
    bench.refuses(140, "a", ActionResult::Failed, Reason::Withdrawn);
    let known = bench.check(150, "a");
    assert_eq!((known.outcome, known.stage), (Outcome::Cancelled, Stage::WaitingDeviceStart));
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s4_7_what_fails_by_itself_is_not_called_cancelled() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.at(120, Input::Cancel { op: op("a") });
    bench.refuses(140, "a", ActionResult::Failed, Reason::Stuck);
    assert_eq!(bench.check(150, "a").outcome, Outcome::Failed);
}

#[test]
fn s4_7_a_withdrawal_that_came_too_late_is_no_cancellation() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.at(115, Input::Cancel { op: op("a") });
    bench.completed(300, "a", ON);
    assert_eq!(bench.check(310, "a").outcome, Outcome::Converged);
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s4_7_what_has_begun_goes_on_unheard() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.at(150, Input::Cancel { op: op("a") });
    assert!(!bench.withdrawn("a"));
    bench.completed(300, "a", ON);
    assert_eq!(bench.check(310, "a").outcome, Outcome::Converged);
}

#[test]
fn s4_8_a_report_after_the_deadline_is_too_late_even_if_the_tick_is_later() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 1_000);
    bench.written(110, "a");
    let status = vec![bench.status(ON)];
    let report = bench.action("a", ActionResult::Completed, status, None);
    bench.late(950, Input::Heard(report));
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    assert!(bench.has(&Effect::LateSuccess { op: op("a") }), "and found done by the same report");
}

#[test]
fn s4_8_exactly_one_answer_whatever_comes_after_it() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.completed(500, "a", ON);
    bench.refuses(510, "a", ActionResult::Failed, Reason::Stuck);
    bench.at(520, Input::Cancel { op: op("a") });
    bench.at(530, Input::Written { op: op("a") });
    bench.at(540, Input::NotWritten { op: op("a") });
    bench.at(550, Input::ShutDown);
    bench.until(60_000);
    assert_eq!(bench.replies("a").len(), 1);
}

#[test]
fn s4_8_when_the_hub_stops_everybody_is_answered() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.toggle(120, "b", 30_000);
    bench.at(130, Input::Query { op: op("q"), answer_by: bench.time(8_000) });
    bench.at(200, Input::ShutDown);
    assert_eq!(bench.outcome("a"), (Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::HubStopping)));
    assert!(bench.withdrawn("a"));
    assert_eq!(bench.refusal("b").1, Refusal::ShuttingDown);
    assert_eq!(bench.told("q").1, Err(Refusal::ShuttingDown));
    bench.set(300, "c", ON, 8_000);
    assert_eq!(bench.refusal("c").1, Refusal::ShuttingDown);
}

#[test]
fn s4_8_a_question_is_answered_in_time_with_what_is_known() {
    let mut bench = Bench::relay();
    bench.at(100, Input::Query { op: op("q"), answer_by: bench.time(500) });
    bench.until(1_000);
    let (ms, state) = bench.told("q");
    assert_eq!((ms, state.expect("the state").asked_now), (450, false));
    // Without time to ask, at once.
    bench.at(1_000, Input::Query { op: op("r"), answer_by: bench.time(1_040) });
    assert_eq!(bench.told("r").0, 1_000);
}

#[test]
fn s4_8_a_question_that_was_not_written_is_answered_at_once_with_what_is_known() {
    let mut bench = Bench::relay();
    bench.at(100, Input::Query { op: op("q"), answer_by: bench.time(8_000) });
    bench.at(110, Input::NotWritten { op: op("another") });
    bench.at(120, Input::NotWritten { op: op("q") });
    let (ms, state) = bench.told("q");
    assert_eq!((ms, state.expect("the state").asked_now), (120, false));
    bench.until(5_000);
    assert_eq!(bench.told("q").0, 120, "and once");
}

#[test]
fn s4_9_a_relay_has_a_second_for_300_ms() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.begin(110, "a");
    bench.until(1_129);
    assert!(bench.replies("a").is_empty());
    bench.until(1_130);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
}

#[test]
fn s4_9_nothing_is_sent_that_cannot_begin_in_time() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 240);
    assert!(matches!(bench.refusal("a"), (100, Refusal::DeadlineTooShort { .. })));
    assert!(bench.sets().is_empty());
    // Nor later, when its turn comes.
    bench.set(200, "b", ON, 30_000);
    bench.set(210, "c", OFF, 700);
    bench.begin(220, "b");
    bench.refuses(600, "b", ActionResult::Failed, Reason::Stuck);
    assert!(matches!(bench.refusal("c"), (600, Refusal::DeadlineTooShort { .. })));
    assert_eq!(bench.sets(), [op("b")]);
}

#[test]
fn s4_9_what_must_not_be_left_half_way_has_to_fit_before_the_callers_limit() {
    let slow = Property { expected_ms: 10_000, ..relay() };
    for (property, begins) in [
        (slow.clone(), true),
        (Property { repeatable: false, ..slow.clone() }, false),
        (Property { role: Role::Lock, ..slow.clone() }, false),
        (Property { role: Role::Door, ..slow.clone() }, false),
        (Property { role: Role::Heater, ..slow.clone() }, false),
        (Property { role: Role::Blind, ..slow }, true),
    ] {
        let mut bench = Bench::online(property, OFF);
        bench.set(100, "a", ON, 8_100);
        assert_eq!(!bench.sets().is_empty(), begins);
        if !begins {
            let needed = Duration::from_millis(10_350);
            assert_eq!(bench.refusal("a"), (100, Refusal::DeadlineTooShort { needed }));
        }
    }
}

#[test]
fn s4_9_a_device_that_says_it_needs_longer_gets_it_up_to_the_longest_driving() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    for second in 1..400_u64 {
        let mut report = bench.action("a", ActionResult::Working, Vec::new(), None);
        if let Body::Action { eta, .. } = &mut report.body {
            *eta = Some(Duration::from_secs(2));
        }
        bench.at(second * 1_000, Input::Heard(report));
    }
    assert_eq!(bench.check(400_000, "a").outcome, Outcome::TimedOut);
    assert_eq!(bench.check(400_000, "a").elapsed.as_secs(), 300);
}

#[test]
fn s6_1_a_wish_that_was_not_met_is_removed_and_withdrawn() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.until(7_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    assert!(bench.twin.desired("relay").is_none());
    assert!(bench.withdrawn("a"));
    // Also one that was met: a momentary wish lives only while its operation runs.
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    assert!(bench.twin.desired("relay").is_none());
}

#[test]
fn s6_1_found_done_after_all_amends_the_record() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.until(7_000);
    bench.connect(8_000);
    bench.hello(8_010, ON, Some("a"));
    assert!(bench.has(&Effect::LateSuccess { op: op("a") }));
    assert!(bench.check(8_020, "a").late_success);
    assert_eq!(bench.check(8_020, "a").found.map(|f| f.value), Some(Value::Bool(true)));
}

#[test]
fn s6_1_finished_late_and_otherwise_is_no_late_success() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.until(7_000);
    bench.tells(8_000, OFF, Cause::Periodic, Some("a"));
    assert!(!bench.check(8_020, "a").late_success);
}

#[test]
fn s6_1_a_late_completion_on_firmwares_word_alone_needs_its_second_check_too() {
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.until(7_000);
    bench.completed(8_000, "a", ON);
    assert!(!bench.check(8_001, "a").late_success);
    bench.tells(9_000, ON, Cause::Periodic, Some("a"));
    assert!(bench.check(9_001, "a").late_success);
}

#[test]
fn s6_1_an_older_report_does_not_make_firmwares_word_a_late_success() {
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let older = bench.state(None, OFF, Cause::Periodic, None);
    bench.until(7_000);
    bench.completed(8_000, "a", ON);
    bench.at(8_010, Input::Heard(older));
    assert!(!bench.check(8_020, "a").late_success);
}

#[test]
fn s6_1_a_value_in_a_report_about_another_operation_is_no_late_success() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    // Finished, but the value cannot be read.
    bench.answers(900, Value::Integer(1), Some("a"));
    bench.until(7_000);
    // Somebody has switched it off and on again since; all that is heard is a refusal that carries the state.
    bench.set(7_000, "b", OFF, 9_000);
    bench.written(7_010, "b");
    let status = vec![bench.status(ON)];
    let report = bench.action("b", ActionResult::Rejected, status, Some(Reason::Busy));
    bench.at(7_020, Input::Heard(report));
    assert!(!bench.check(7_030, "a").late_success);
    // Nor is a state that does not say what was finished last.
    bench.tells(7_040, ON, Cause::Periodic, None);
    assert!(!bench.check(7_050, "a").late_success);
    bench.tells(7_060, ON, Cause::Periodic, Some("a"));
    assert!(bench.check(7_070, "a").late_success);
}
