//! Independent measurements (semantics 3.10).

use truetwin::{
    property::{DeviceId, Evidence, Predicate, Property, Terms, Value, Verify},
    twin::{
        input::{Effect, Found, Input},
        words::{Outcome, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

/// A relay whose load a power meter sees: at least 5 W when it is on.
fn metered() -> Bench {
    let expect = vec![(Some(ON), Predicate::AtLeast(5.0)), (Some(OFF), Predicate::ChangesBy(-3.0))];
    let verify = Verify { device: meter(), property: "watts".into(), expect, within_ms: 2_000, sensitive: false };
    let terms = Terms { verify: Some(verify), ..Terms::default() };
    Bench::online(Property { stable_ms: 0, terms, ..relay() }, OFF)
}

fn meter() -> DeviceId {
    DeviceId::new("meter").expect("an id")
}

fn asks(bench: &Bench) -> usize {
    bench.effects.iter().filter(|(_, e)| matches!(e, Effect::Ask { .. })).count()
}

/// The meter answers the last question.
fn measures(bench: &mut Bench, ms: u64, found: Found) {
    bench.until(ms);
    let ask = |(_, e): &(u64, Effect)| if let Effect::Ask { question, .. } = e { Some(question.clone()) } else { None };
    let question = bench.effects.iter().rev().find_map(ask).expect("the meter was asked");
    bench.at(ms, Input::Verified { question, found });
}

fn watts(value: f64) -> Found {
    Found::Value(Value::Number(value))
}

/// Up to the completion of a wish for `wish`, measured `before`.
fn completed(wish: Value, before: f64) -> Bench {
    let mut bench = metered();
    bench.set(100, "a", wish.clone(), 30_000);
    measures(&mut bench, 110, watts(before));
    bench.begin(120, "a");
    bench.completed(400, "a", wish);
    bench
}

#[test]
fn s3_10_a_baseline_is_asked_before_the_command_goes_out() {
    let mut bench = metered();
    bench.set(100, "a", ON, 30_000);
    assert!(bench.sets().is_empty());
    let asked = bench.effects.iter().any(
        |(_, e)| matches!(e, Effect::Ask { device, property, .. } if *device == meter() && &**property == "watts"),
    );
    assert!(asked);
    measures(&mut bench, 150, watts(0.0));
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s3_10_a_verifier_that_cannot_be_asked_is_a_refusal_and_nothing_moves() {
    for found in [Found::Offline, Found::Silent] {
        let mut bench = metered();
        bench.set(100, "a", ON, 30_000);
        measures(&mut bench, 150, found);
        assert_eq!(bench.refusal("a"), (150, Refusal::VerifierOffline { device: Some(meter()) }));
        assert!(bench.sets().is_empty());
    }
    let mut bench = metered();
    bench.set(100, "a", ON, 30_000);
    bench.until(30_000);
    assert_eq!(
        bench.refusal("a"),
        (1_100, Refusal::VerifierOffline { device: Some(meter()) }),
        "nor one that nobody hears"
    );
    assert!(bench.sets().is_empty());
}

#[test]
fn s3_10_what_the_sensor_sees_after_completion_is_the_evidence() {
    let mut bench = completed(ON, 0.0);
    assert!(bench.replies("a").is_empty());
    assert_eq!(bench.check(410, "a").stage, Stage::WaitingSensor);
    measures(&mut bench, 500, watts(40.0));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    let settled = bench.settled("a").1;
    assert_eq!(settled.confirmed_by, Evidence::Sensor);
    assert_eq!(settled.measured.and_then(|m| m.value), Some(Value::Number(40.0)));
}

#[test]
fn s3_10_a_measurement_that_comes_later_counts_and_is_asked_for_again() {
    let mut bench = completed(ON, 0.0);
    measures(&mut bench, 450, watts(0.0));
    assert!(bench.replies("a").is_empty(), "a meter may lag");
    bench.until(1_000);
    measures(&mut bench, 1_010, watts(40.0));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_10_a_sensor_that_disagrees_is_a_contradiction_with_its_value() {
    let mut bench = completed(ON, 0.0);
    for ms in [450, 950, 1_450, 1_950, 2_450] {
        measures(&mut bench, ms, watts(0.2));
    }
    bench.until(20_000);
    let ended = (Outcome::Contradicted, Stage::WaitingSensor, Some(Reason::SensorDiffers));
    assert_eq!(bench.outcome("a"), ended);
    let measured = bench.settled("a").1.measured.expect("a measurement");
    assert_eq!((measured.value, measured.agrees), (Some(Value::Number(0.2)), false));
    assert!(asks(&bench) <= 7, "a bounded number of questions");
}

#[test]
fn s3_10_a_sensor_that_fell_silent_is_no_contradiction() {
    let mut bench = completed(ON, 0.0);
    bench.until(20_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingSensor, Some(Reason::Timeout)));
}

#[test]
fn s3_10_a_change_is_judged_against_the_baseline() {
    let mut bench = completed(OFF, 40.0);
    measures(&mut bench, 500, watts(38.0));
    assert!(bench.replies("a").is_empty());
    bench.until(1_000);
    measures(&mut bench, 1_010, watts(0.0));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_10_an_answer_to_the_baselines_question_is_no_measurement_after_completion() {
    let mut bench = metered();
    bench.set(100, "a", ON, 30_000);
    let first = bench
        .effects
        .iter()
        .find_map(|(_, e)| if let Effect::Ask { question, .. } = e { Some(question.clone()) } else { None });
    measures(&mut bench, 110, watts(0.0));
    bench.begin(120, "a");
    bench.completed(400, "a", ON);
    bench.at(410, Input::Verified { question: first.expect("asked"), found: watts(40.0) });
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s3_10_the_sensor_does_not_save_what_reads_back_otherwise() {
    let mut bench = metered();
    bench.set(100, "a", ON, 30_000);
    measures(&mut bench, 110, watts(0.0));
    bench.begin(120, "a");
    bench.completed(400, "a", OFF);
    assert_eq!(bench.outcome("a"), (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers)));
    // And while the sensor is awaited the value must stay.
    let mut bench = completed(ON, 0.0);
    bench.tells(450, OFF, truetwin::twin::input::Cause::Unknown, Some("a"));
    assert_eq!(bench.outcome("a").2, Some(Reason::DidNotHold));
}

#[test]
fn s3_10_a_wish_that_is_not_named_is_not_verified() {
    let verify = Verify {
        device: meter(),
        property: "watts".into(),
        expect: vec![(Some(OFF), Predicate::AtMost(1.0))],
        within_ms: 9,
        sensitive: false,
    };
    let terms = Terms { verify: Some(verify), ..Terms::default() };
    let mut bench = Bench::online(Property { stable_ms: 0, terms, ..relay() }, OFF);
    bench.converge(100, "a", ON);
    assert_eq!(asks(&bench), 0);
}

#[test]
fn fault_pin_right_sensor_disagrees_load_without_power() {
    let mut bench = completed(ON, 0.0);
    measures(&mut bench, 450, watts(0.0));
    bench.until(20_000);
    let ended = (Outcome::Contradicted, Stage::WaitingSensor, Some(Reason::SensorDiffers));
    assert_eq!(bench.outcome("a"), ended);
    let settled = bench.settled("a").1;
    assert_eq!(
        settled.found.map(|found| (found.value, found.evidence)),
        Some((ON, Evidence::Pin)),
        "the contact moved"
    );
    assert_eq!(settled.measured.and_then(|m| m.value), Some(Value::Number(0.0)), "the load is dead");
}

#[test]
fn s3_10_what_was_to_be_measured_is_no_late_success_by_the_devices_own_word() {
    let mut bench = completed(ON, 0.0);
    bench.until(20_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    bench.tells(21_000, ON, truetwin::twin::input::Cause::Periodic, Some("a"));
    assert!(!bench.check(21_100, "a").late_success);
}

#[test]
fn s3_10_an_answer_to_a_question_of_the_run_before_counts_for_nothing() {
    let mut bench = completed(ON, 0.0);
    assert_eq!(bench.check(410, "a").stage, Stage::WaitingSensor);
    bench.reboot("boot2");
    bench.connect(420);
    bench.hello(430, OFF, None);
    assert_eq!(bench.sets(), [op("a"), op("a")]);
    measures(&mut bench, 440, watts(40.0));
    assert!(bench.replies("a").is_empty(), "it was measured before the reboot");
    bench.begin(450, "a");
    bench.completed(700, "a", ON);
    measures(&mut bench, 750, watts(40.0));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}
