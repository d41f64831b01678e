//! 2: what is wished, what is reported.

use std::sync::Arc;

use truetwin::{
    property::{Evidence, Kind, Property, Value, ValueError},
    twin::{
        input::{ActionResult, Body, Cause, Command, Effect, Ignored, Input, Status},
        words::{Outcome, Reason, Refusal, Trust},
    },
};

use crate::bench::{Bench, OFF, ON, level, op, relay};

fn reading(bench: &Bench, ms: u64, property: &str) -> Option<Value> {
    let state = bench.twin.state(bench.time(ms));
    state.readings.into_iter().find(|(name, _)| &**name == property).map(|(_, reading)| reading.value)
}

#[test]
fn s2_1_an_assumed_value_is_never_reported() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    assert_eq!(bench.twin.desired("relay").map(|d| (d.value.clone(), d.op.clone())), Some((ON, op("a"))));
    assert_eq!(reading(&bench, 200, "relay"), Some(OFF), "wished and begun is not reported");
    bench.completed(400, "a", ON);
    assert_eq!(reading(&bench, 400, "relay"), Some(ON));
}

#[test]
fn s2_2_a_property_missing_from_a_patch_is_no_news() {
    let mut bench = Bench::unknown(vec![relay(), level()]);
    bench.connect(0);
    bench.hello(0, OFF, None);
    assert_eq!(reading(&bench, 0, "level"), None, "unknown is absence");
    let status = Status { property: "level".into(), value: Value::Number(20.0), evidence: Evidence::Pin };
    let report = bench.report(vec![status], Body::State { op: None, cause: Cause::Periodic, seen: Vec::new() });
    bench.at(10, Input::Heard(report));
    assert_eq!((reading(&bench, 10, "relay"), reading(&bench, 10, "level")), (Some(OFF), Some(Value::Number(20.0))));
}

#[test]
fn s2_3_a_hello_replaces_what_was_known() {
    let mut bench = Bench::unknown(vec![relay(), level()]);
    bench.connect(0);
    bench.hello(0, OFF, None);
    let status = Status { property: "level".into(), value: Value::Number(20.0), evidence: Evidence::Pin };
    let report = bench.report(vec![status], Body::State { op: None, cause: Cause::Periodic, seen: Vec::new() });
    bench.at(10, Input::Heard(report));
    bench.disconnect(20);
    bench.connect(30);
    bench.hello(30, ON, None);
    assert_eq!((reading(&bench, 30, "relay"), reading(&bench, 30, "level")), (Some(ON), None));
}

#[test]
fn s2_4_a_report_that_was_overtaken_changes_no_value() {
    let mut bench = Bench::relay();
    let old = bench.state(None, OFF, Cause::Periodic, None);
    bench.tells(10, ON, Cause::Local, None);
    bench.at(20, Input::Heard(old));
    assert_eq!(reading(&bench, 20, "relay"), Some(ON));
}

#[test]
fn s2_4_a_report_that_was_overtaken_may_still_be_an_operations_result() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    let status = vec![bench.status(ON)];
    let completed = bench.action("a", ActionResult::Completed, status, None);
    // Somebody switches it off at the wall, and that report is faster.
    bench.tells(400, OFF, Cause::Local, Some("a"));
    bench.at(410, Input::Heard(completed));
    assert_eq!(reading(&bench, 410, "relay"), Some(OFF));
    assert_eq!(bench.outcome("a").0, Outcome::Contradicted, "judged on the merged twin, not on the message");
}

#[test]
fn s2_4_a_duplicate_is_dropped() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    let status = vec![bench.status(ON)];
    let completed = bench.action("a", ActionResult::Completed, status, None);
    bench.at(400, Input::Heard(completed.clone()));
    bench.at(410, Input::Heard(completed));
    assert!(bench.has(&Effect::Ignored(Ignored::Duplicate)));
}

#[test]
fn s2_4_a_board_that_starts_again_with_the_same_boot_is_told_and_a_repeated_hello_is_not() {
    let told = |bench: &Bench| bench.has(&Effect::StaleHello { of_seq: 1 });
    let mut bench = Bench::relay();
    bench.tells(10, ON, Cause::Local, None);
    bench.reboot("boot1");
    bench.hello(20, OFF, None);
    assert!(!told(&bench), "said again on the same connection");
    bench.at(30, Input::Disconnected { connection: 1 });
    bench.at(40, Input::Connected { connection: 2 });
    bench.reboot("boot1");
    bench.hello(50, OFF, None);
    assert!(told(&bench));
    assert_eq!(reading(&bench, 50, "relay"), Some(ON), "and changes no value");
}

#[test]
fn s2_4_a_hello_that_was_overtaken_changes_no_value() {
    let mut bench = Bench::relay();
    bench.tells(10, ON, Cause::Local, None);
    bench.reboot("boot1");
    bench.hello(20, OFF, None);
    assert_eq!(reading(&bench, 20, "relay"), Some(ON));
    assert!(bench.has(&Effect::Ignored(Ignored::Duplicate)));
}

#[test]
fn s2_5_a_wish_is_normalised_once_and_so_sent_and_compared() {
    let mut bench = Bench::online(level(), Value::Number(0.0));
    bench.set(100, "a", Value::Integer(50), 8000);
    let sent =
        bench.commands().into_iter().find_map(|c| if let Command::Set { value, .. } = c { Some(value) } else { None });
    assert_eq!(sent, Some(Value::Number(50.0)));
    bench.begin(110, "a");
    // Measured beside a step, within the tolerance.
    bench.completed(400, "a", Value::Number(51.5));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(bench.settled("a").1.wish, Some(Value::Number(50.0)));
}

#[test]
fn s2_5_a_wish_that_does_not_fit_is_refused_and_nothing_sent() {
    let mut bench = Bench::online(level(), Value::Number(0.0));
    bench.set(100, "a", Value::Number(52.0), 8000);
    assert!(matches!(bench.refusal("a").1, Refusal::InvalidValue { error: ValueError::OffStep { .. }, .. }));
    bench.set(100, "b", Value::Integer(105), 8000);
    assert!(matches!(bench.refusal("b").1, Refusal::InvalidValue { error: ValueError::OutOfRange { .. }, .. }));
    bench.set(100, "c", ON, 8000);
    assert!(matches!(bench.refusal("c").1, Refusal::InvalidValue { error: ValueError::WrongKind { .. }, .. }));
    assert!(bench.sets().is_empty());
}

#[test]
fn s2_5_words_are_taken_in_the_devices_spelling() {
    let mode = Property { kind: Kind::Enum, values: vec!["Eco".into(), "Boost".into()], stable_ms: 0, ..relay() };
    let mut bench = Bench::online(mode, Value::Text("Eco".into()));
    bench.converge(100, "a", Value::Text("boost".into()));
    assert_eq!(bench.settled("a").1.wish, Some(Value::Text(Arc::from("Boost"))));
}

#[test]
fn s2_5_a_value_that_cannot_be_read_is_told_to_the_device_and_changes_nothing() {
    let mut bench = Bench::relay();
    bench.tells(10, Value::Integer(1), Cause::Local, None);
    assert_eq!(reading(&bench, 10, "relay"), Some(OFF));
    let told =
        |e: &Effect| matches!(e, Effect::Malformed { of_seq: 2, property, error: Some(_) } if &**property == "relay");
    assert!(bench.effects.iter().any(|(_, e)| told(e)));
}

#[test]
fn s2_7_a_property_that_vanished_in_a_new_session_ends_what_was_in_flight_as_unknown() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.properties = vec![level()];
    bench.connect(200);
    bench.hello(210, Value::Number(0.0), None);
    let (outcome, _, reason) = bench.outcome("a");
    assert_eq!((outcome, reason), (Outcome::Interrupted, Some(Reason::PropertyChanged)));
}

#[test]
fn s2_7_a_tolerance_widened_in_the_middle_makes_nothing_count_as_equal_that_was_not() {
    let mut bench = Bench::online(level(), Value::Number(0.0));
    bench.set(100, "a", Value::Number(80.0), 8000);
    bench.begin(110, "a");
    bench.properties = vec![Property { tolerance: Some(1000.0), ..level() }];
    bench.connect(200);
    bench.hello(210, Value::Number(5.0), Some("a"));
    bench.until(20_000);
    assert_ne!(bench.outcome("a").0, Outcome::Converged, "5 is no 80, whatever the board says of itself now");
    assert!(!bench.check(20_000, "a").late_success);
}

#[test]
fn s2_7_a_tolerance_widened_afterwards_makes_no_late_success() {
    let mut bench = Bench::online(level(), Value::Number(0.0));
    bench.set(100, "a", Value::Number(80.0), 8000);
    bench.begin(110, "a");
    bench.until(7_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    bench.properties = vec![Property { tolerance: Some(1000.0), ..level() }];
    bench.connect(7_100);
    bench.hello(7_110, Value::Number(5.0), Some("a"));
    assert!(!bench.check(7_200, "a").late_success);
}

#[test]
fn s2_8_a_device_that_is_removed_answers_everything_that_waits() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.toggle(120, "b", 8000);
    bench.at(130, Input::Query { op: op("q"), answer_by: bench.time(8_000) });
    bench.at(200, Input::Removed);
    let (outcome, _, reason) = bench.outcome("a");
    assert_eq!((outcome, reason), (Outcome::Removed, None), "the hub goes on");
    assert!(bench.withdrawn("a"));
    assert!(matches!(bench.refusal("b").1, Refusal::UnknownDevice { .. }));
    assert!(matches!(bench.told("q").1, Err(Refusal::UnknownDevice { .. })));
    assert_eq!(bench.twin.in_flight(), 0);
}

#[test]
fn s2_1_a_reading_is_spoken_of_as_present_only_if_it_was_just_asked_for() {
    let mut bench = Bench::relay();
    bench.at(1_000, Input::Query { op: op("q"), answer_by: bench.time(9_000) });
    bench.answers(1_020, ON, None);
    let (_, state) = bench.told("q");
    let state = state.expect("the state");
    assert!(state.asked_now && state.readings[0].1.trust == Trust::Now);
    assert_eq!(bench.twin.state(bench.time(2_000)).readings[0].1.trust, Trust::Old);
}

#[test]
fn s2_1_what_is_remembered_is_bounded_by_the_description_and_the_records() {
    let mut bench = Bench::quick_relay();
    let size = |bench: &Bench| format!("{:?}", bench.twin).len();
    for n in 0..64_u64 {
        bench.converge(1_000 * (n + 1), &format!("a{n:03}"), if n % 2 == 0 { ON } else { OFF });
    }
    let full = size(&bench);
    for n in 64..256_u64 {
        bench.converge(1_000 * (n + 1), &format!("a{n:03}"), if n % 2 == 0 { ON } else { OFF });
        let seen = vec![(format!("invented{n}").into(), op("x"))];
        let report = bench.report(Vec::new(), Body::State { op: None, cause: Cause::Periodic, seen });
        bench.at(1_000 * (n + 1) + 400, Input::Heard(report));
    }
    assert!(size(&bench) < full + 1_000, "{} after {full}", size(&bench));
}
