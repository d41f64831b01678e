//! 8: stages, outcomes, and the facts of which answers are made.

use std::{collections::BTreeSet, time::Duration};

use truetwin::{
    property::Evidence,
    twin::{
        input::{ActionResult, Body, Effect, Input},
        wish::Wish,
        words::{Outcome, Reason, Refusal, RefusalWord, Stage, Trust},
    },
};

use crate::bench::{Bench, OFF, ON, op, wish};

#[test]
fn s8_1_stages_are_in_order_and_entered_only_on_evidence() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    let stage = |bench: &Bench, ms| bench.check(ms, "a").stage;
    assert_eq!(stage(&bench, 100), Stage::WaitingBroker);
    bench.written(110, "a");
    assert_eq!(stage(&bench, 110), Stage::WaitingDeviceAck);
    bench.says(120, "a", ActionResult::Received);
    assert_eq!(stage(&bench, 120), Stage::WaitingDeviceStart);
    bench.says(130, "a", ActionResult::Executing);
    assert_eq!(stage(&bench, 130), Stage::WaitingDeviceReport);
    bench.completed(400, "a", ON);
    assert_eq!(stage(&bench, 400), Stage::WaitingReadBack);
    bench.answers(620, ON, Some("a"));
    assert_eq!(stage(&bench, 620), Stage::Settled);
    let stages: Vec<Stage> = bench.settled("a").1.stages.iter().map(|(stage, _)| *stage).collect();
    let mut sorted = stages.clone();
    sorted.sort();
    assert_eq!(stages, sorted);
}

#[test]
fn s8_1_a_report_that_was_overtaken_leads_no_stage_back() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    let received = bench.action("a", ActionResult::Received, Vec::new(), None);
    bench.says(130, "a", ActionResult::Executing);
    bench.at(140, Input::Heard(received));
    assert_eq!(bench.check(140, "a").stage, Stage::WaitingDeviceReport);
}

#[test]
fn s8_1_an_overtaken_announcement_of_more_driving_does_not_delay_the_read_back() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let mut working = bench.action("a", ActionResult::Working, Vec::new(), None);
    if let Body::Action { eta, .. } = &mut working.body {
        *eta = Some(Duration::from_secs(20));
    }
    bench.completed(400, "a", ON);
    bench.at(410, Input::Heard(working));
    bench.until(600);
    assert_eq!(bench.questions(), 1);
}

#[test]
fn s8_1_a_stage_that_the_device_cannot_show_is_absent() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    bench.completed(400, "a", ON);
    let stages: Vec<(Stage, u128)> =
        bench.settled("a").1.stages.iter().map(|(stage, spent)| (*stage, spent.as_millis())).collect();
    assert_eq!(
        stages,
        [
            (Stage::Admission, 0),
            (Stage::WaitingBroker, 10),
            (Stage::WaitingDeviceAck, 290),
            (Stage::WaitingReadBack, 0)
        ]
    );
}

#[test]
fn s8_1_a_command_whose_bytes_were_not_written_broke_at_the_bus() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.until(8_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingBroker, Some(Reason::Timeout)));
    assert_eq!(bench.settled("a").0, 1_100);
}

#[test]
fn s8_2_the_facts_of_a_success() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    let (_, settled) = bench.settled("a");
    let found = settled.found.expect("what was read");
    assert_eq!((found.value, found.trust, found.evidence), (ON, Trust::Now, Evidence::Pin));
    assert_eq!(settled.elapsed.as_millis(), 300);
    let spent: u128 = settled.stages.iter().map(|(_, spent)| spent.as_millis()).sum();
    assert_eq!(spent, 300, "the stages add up");
    let ended =
        Effect::Ended { outcome: Outcome::Converged, stage: Stage::Settled, reason: None, elapsed: settled.elapsed };
    assert!(bench.has(&ended));
}

#[test]
fn s8_2_what_was_read_before_the_command_is_not_spoken_of_as_present() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    assert_eq!(bench.check(105, "a").found.map(|f| f.trust), Some(Trust::Old));
    bench.written(110, "a");
    bench.until(8_000);
    let (_, settled) = bench.settled("a");
    let found = settled.found.expect("the hello's value");
    assert_eq!((found.value, found.trust), (OFF, Trust::Old));
    assert_eq!(settled.confirmed_by, Evidence::None);
}

#[test]
fn s8_2_what_is_recalled_later_is_old() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    let found = bench.check(60_400, "a").found.expect("what was read");
    assert_eq!((found.trust, found.age.as_secs()), (Trust::Old, 60));
}

#[test]
fn s8_2_without_an_id_the_latest_operation_is_told() {
    let mut bench = Bench::quick_relay();
    assert!(bench.twin.check(bench.time(50), None).is_none());
    bench.converge(100, "b", ON);
    bench.converge(1_000, "a", OFF);
    assert_eq!(bench.twin.check(bench.time(2_000), None).map(|s| s.op), Some(op("a")));
    bench.set(3_000, "c", ON, 8_000);
    assert_eq!(bench.twin.check(bench.time(3_000), None).map(|s| (s.op, s.outcome)), Some((op("c"), Outcome::Working)));
}

#[test]
fn s8_3_not_knowing_is_never_called_failed() {
    // The device says failed, and yet it reads as wished: nobody knows what happened.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let status = vec![bench.status(ON)];
    let report = bench.action("a", ActionResult::Failed, status, Some(Reason::Interrupted));
    bench.at(400, Input::Heard(report));
    assert_eq!(bench.outcome("a").0, Outcome::Interrupted);
}

#[test]
fn s8_3_what_it_said_to_have_begun_a_device_cannot_refuse() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let status = vec![bench.status(ON)];
    let report = bench.action("a", ActionResult::Rejected, status, Some(Reason::Expired));
    bench.at(400, Input::Heard(report));
    assert_eq!(bench.outcome("a").0, Outcome::Interrupted);
}

#[test]
fn s8_3_a_refusal_after_the_sending_is_given_only_if_nothing_reached_the_device() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.written(110, "a");
    // Written, so the other word does not count.
    bench.at(120, Input::NotWritten { op: op("a") });
    assert!(bench.replies("a").is_empty());
    bench.until(8_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
}

#[test]
fn s8_4_the_words_are_closed_and_those_of_the_specification() {
    let text = include_str!("../../src/twin/semantics.md");
    let line = text.lines().find(|l| l.starts_with("- 8.4 ")).expect("rule 8.4");
    let (outcomes, refusals) = line.split_once("Refusals:").expect("two lists");
    let words = |part: &str| -> BTreeSet<String> {
        let list = part.split('`').nth(1).expect("a list in backticks");
        list.split(", ").map(str::to_owned).collect()
    };
    let outcome_words: BTreeSet<String> = Outcome::ALL.iter().map(|w| w.as_str().to_owned()).collect();
    let refusal_words: BTreeSet<String> = RefusalWord::ALL.iter().map(|w| w.as_str().to_owned()).collect();
    assert_eq!(words(outcomes), outcome_words);
    assert_eq!(words(refusals), refusal_words);
}

#[test]
fn s8_4_stages_are_those_of_the_specification_in_order() {
    let text = include_str!("../../src/twin/semantics.md");
    let line = text.lines().find(|l| l.starts_with("- 8.1 ")).expect("rule 8.1");
    let places: Vec<usize> = Stage::ALL
        .iter()
        .map(|stage| line.find(&format!("`{stage}`")).unwrap_or_else(|| panic!("{stage} is not in 8.1")))
        .collect();
    assert!(places.is_sorted());
    assert!(Stage::ALL.is_sorted());
}

#[test]
fn s8_4_a_property_that_the_device_does_not_have_is_named_with_those_it_has() {
    let mut bench = Bench::relay();
    let answer_by = bench.time(8_000);
    bench.at(100, wish("a", "me", Wish::to("lamp", ON), answer_by));
    let refusal = Refusal::UnknownProperty { asked: "lamp".into(), known: vec!["relay".into()] };
    assert_eq!(bench.refusal("a"), (100, refusal));
}

#[test]
fn s8_4_a_property_that_cannot_be_set_is_forbidden() {
    let sensor = truetwin::property::Property { settable: false, ..crate::bench::relay() };
    let mut bench = Bench::online(sensor, OFF);
    bench.set(100, "a", ON, 8_000);
    assert_eq!(bench.refusal("a").1, Refusal::Forbidden { property: "relay".into() });
}
