//! When a value counts as what was wished: predicates (semantics 3.1), the evidence that is enough (3.5), values that a device
//! brings into its range (3.9).

use truetwin::{
    property::{Choice, Evidence, Property, Terms, Value},
    twin::{
        input::{ActionResult, Body, Cause, Effect, Input},
        words::{Outcome, Reason, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, level, relay};

fn number(value: f64) -> Value {
    Value::Number(value)
}

/// A wish for 50 on a dimmer that stands at `before` and says that it went to `now`.
fn dimmed(property: Property, before: f64, now: f64) -> Bench {
    let mut bench = Bench::online(property, number(before));
    bench.set(100, "a", number(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(400, "a", number(now));
    bench
}

fn wide() -> Property {
    Property { tolerance: Some(4.0), ..level() }
}

#[test]
fn s3_1_a_number_within_the_tolerance_is_as_wished() {
    assert_eq!(dimmed(wide(), 0.0, 46.0).outcome("a").0, Outcome::Converged);
    let contradicted = (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers));
    assert_eq!(dimmed(wide(), 0.0, 45.0).outcome("a"), contradicted);
}

#[test]
fn s3_1_the_tolerance_of_a_short_way_is_a_third_of_it() {
    // From 45 a third of the way is 1.67: at 47 the device has hardly moved.
    assert_eq!(dimmed(wide(), 45.0, 47.0).outcome("a").0, Outcome::Contradicted);
    assert_eq!(dimmed(wide(), 45.0, 48.5).outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_1_the_value_before_is_the_one_when_the_command_went_out() {
    let mut bench = Bench::online(wide(), number(0.0));
    bench.set(100, "a", number(50.0), 8_000);
    bench.begin(110, "a");
    // On its way: that is no value before.
    bench.tells(200, number(45.0), Cause::Periodic, None);
    bench.completed(400, "a", number(47.0));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_1_a_late_success_is_judged_by_the_same_predicate() {
    let mut bench = Bench::online(wide(), number(45.0));
    bench.set(100, "a", number(50.0), 8_000);
    bench.begin(110, "a");
    bench.until(20_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    bench.completed(20_100, "a", number(47.0));
    assert!(!bench.check(20_200, "a").late_success);
    bench.completed(20_300, "a", number(49.0));
    assert!(bench.check(20_400, "a").late_success);
}

#[test]
fn s3_1_the_owner_chooses_another_predicate() {
    let with = |choice| Property { terms: Terms { predicate: Some(choice), ..Terms::default() }, ..level() };
    for (choice, now, outcome) in [
        (Choice::Equals, 49.0, Outcome::Contradicted),
        (Choice::Equals, 50.0, Outcome::Converged),
        (Choice::AtLeast, 80.0, Outcome::Converged),
        (Choice::AtLeast, 49.0, Outcome::Contradicted),
        (Choice::AtMost, 3.0, Outcome::Converged),
        (Choice::Approaches, 22.0, Outcome::Converged),
        (Choice::Approaches, 20.0, Outcome::Contradicted),
    ] {
        assert_eq!(dimmed(with(choice), 20.0, now).outcome("a").0, outcome, "{choice:?} {now}");
    }
}

#[test]
fn s3_1_a_drift_within_the_described_tolerance_is_no_revert() {
    let mut bench = dimmed(wide(), 45.0, 49.0);
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    bench.tells(1_000, number(46.5), Cause::Periodic, None);
    assert!(!bench.check(1_100, "a").reverted, "46.5 and 50 are the same to this device");
    bench.tells(2_000, number(45.0), Cause::Periodic, None);
    assert!(bench.check(2_100, "a").reverted);
}

#[test]
fn s3_5_an_owner_who_is_content_with_less_gets_a_success_that_says_so() {
    let terms = Terms { required: Some(Evidence::Firmware), ..Terms::default() };
    let mut bench = Bench::online(Property { terms, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    bench.until(600);
    let question = bench.question().expect("the read-back");
    let mut weak = bench.status(ON);
    weak.evidence = Evidence::Firmware;
    let seen = vec![("relay".into(), crate::bench::op("a"))];
    let report = bench.report(vec![weak], Body::State { op: Some(question), cause: Cause::Query, seen });
    bench.at(620, Input::Heard(report));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(bench.settled("a").1.confirmed_by, Evidence::Firmware, "and not what the device could have offered");
}

/// The device says that it completed `wish` at `now`, clamped.
fn clamped(property: Property, wish: f64, now: f64) -> Bench {
    let mut bench = Bench::online(property, number(20.0));
    bench.set(100, "a", number(wish), 8_000);
    bench.begin(110, "a");
    let status = vec![bench.status(number(now))];
    let mut report = bench.action("a", ActionResult::Completed, status, None);
    if let Body::Action { clamped, .. } = &mut report.body {
        *clamped = true;
    }
    bench.at(400, Input::Heard(report));
    bench
}

fn clamping(stable_ms: u32) -> Property {
    Property { stable_ms, terms: Terms { clamps: true, ..Terms::default() }, ..level() }
}

#[test]
fn s3_9_a_clamped_value_counts_where_the_description_allows_it_and_the_answer_says_so() {
    let bench = clamped(clamping(0), 90.0, 70.0);
    assert_eq!(bench.outcome("a"), (Outcome::Clamped, Stage::Settled, None));
    let settled = bench.settled("a").1;
    assert_eq!(settled.wish, Some(number(90.0)), "the wish stands as it was");
    assert_eq!(settled.found.map(|found| found.value), Some(number(70.0)));
    assert_eq!(settled.confirmed_by, Evidence::Pin);
}

#[test]
fn s3_9_what_may_not_be_clamped_is_a_contradiction() {
    let contradicted = (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers));
    assert_eq!(clamped(level(), 90.0, 70.0).outcome("a"), contradicted);
}

#[test]
fn s3_9_a_clamped_value_must_hold_and_be_read_back_as_any_other() {
    let mut bench = clamped(clamping(200), 90.0, 70.0);
    assert!(bench.replies("a").is_empty());
    bench.answers(620, number(20.0), Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Contradicted);
    let mut bench = clamped(clamping(200), 90.0, 70.0);
    bench.answers(620, number(70.0), Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Clamped);
    bench.tells(700, number(20.0), Cause::Periodic, None);
    assert!(bench.has(&Effect::Reverted { op: crate::bench::op("a"), property: "level".into() }));
}

#[test]
fn s3_9_a_value_that_is_as_wished_is_not_clamped_whatever_is_announced() {
    assert_eq!(clamped(clamping(0), 90.0, 90.0).outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_9_what_was_clamped_before_a_reboot_is_judged_by_the_wish_when_it_is_sent_again() {
    let mut bench = clamped(clamping(200), 90.0, 70.0);
    bench.reboot("boot2");
    bench.connect(410);
    bench.hello(420, number(0.0), None);
    assert_eq!(bench.sets().len(), 2);
    bench.begin(430, "a");
    bench.completed(500, "a", number(90.0));
    bench.answers(710, number(90.0), Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}
