//! 3: when an operation has converged.

use truetwin::{
    property::{Evidence, Property, Value},
    twin::{
        input::{ActionResult, Body, Cause, Effect, Ignored, Input, Status},
        words::{Attribution, Outcome, Reason, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, level, op, relay};

/// A relay that has been told to go on and has begun.
fn driving() -> Bench {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench
}

/// Nothing more is heard: it must not have converged.
fn stays_unconfirmed(mut bench: Bench) {
    bench.until(60_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
}

#[test]
fn s3_1_equals_counts_numbers_within_the_tolerance_and_no_further() {
    for (read, outcome) in [(48.0, Outcome::Converged), (47.9, Outcome::Contradicted)] {
        let mut bench = Bench::online(level(), Value::Number(0.0));
        bench.set(100, "a", Value::Number(50.0), 8000);
        bench.begin(110, "a");
        bench.completed(400, "a", Value::Number(read));
        assert_eq!(bench.outcome("a").0, outcome, "{read}");
    }
}

#[test]
fn s3_1_equals_counts_half_a_step_where_no_tolerance_is_given() {
    for (read, outcome) in [(52.5, Outcome::Converged), (52.6, Outcome::Contradicted)] {
        let mut bench = Bench::online(Property { tolerance: None, ..level() }, Value::Number(0.0));
        bench.set(100, "a", Value::Number(50.0), 8000);
        bench.begin(110, "a");
        bench.completed(400, "a", Value::Number(read));
        assert_eq!(bench.outcome("a").0, outcome, "{read}");
    }
}

#[test]
fn s3_2_a_value_from_before_the_command_never_converges() {
    let mut bench = Bench::online(Property { stable_ms: 0, ..relay() }, ON);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    // Completed, but nothing newer than the command was read.
    bench.says(400, "a", ActionResult::Completed);
    assert!(bench.replies("a").is_empty());
    stays_unconfirmed(bench);
}

#[test]
fn s3_2_nothing_heard_before_the_command_was_written_is_its_result() {
    for seen in [None, Some("a")] {
        let mut bench = Bench::quick_relay();
        bench.set(100, "a", ON, 8000);
        bench.tells(105, ON, Cause::Local, seen);
        bench.written(110, "a");
        let body = Body::State { op: None, cause: Cause::Unknown, seen: vec![("relay".into(), op("a"))] };
        let report = bench.report(Vec::new(), body);
        bench.at(300, Input::Heard(report));
        stays_unconfirmed(bench);
    }
}

#[test]
fn s3_2_a_value_from_before_the_command_is_no_evidence_against_the_devices_word() {
    let mut bench = Bench::online(relay(), ON);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.refuses(400, "a", ActionResult::Failed, Reason::Stuck);
    assert_eq!(bench.outcome("a").0, Outcome::Failed);
}

#[test]
fn s3_2_a_device_that_speaks_of_an_operation_has_its_command() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8000);
    // The notice of the writing is late.
    bench.completed(400, "a", ON);
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s3_3_a_value_that_is_right_without_the_operation_being_finished_never_converges() {
    let mut bench = driving();
    // Switched at the wall while the command is stuck.
    bench.tells(300, ON, Cause::Local, None);
    bench.answers(900, ON, None);
    stays_unconfirmed(bench);
}

#[test]
fn s3_3_another_operation_that_was_finished_last_never_converges_this_one() {
    let mut bench = driving();
    bench.answers(900, ON, Some("b"));
    stays_unconfirmed(bench);
}

#[test]
fn s3_3_a_completion_that_names_another_operation_says_nothing_of_this_one() {
    let mut bench = driving();
    bench.completed(400, "b", ON);
    stays_unconfirmed(bench);
}

#[test]
fn s3_3_a_failed_operation_is_not_finished() {
    let mut bench = driving();
    bench.until(5_000);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    // Withdrawn as it was told to; then somebody switches it on at the wall.
    bench.refuses(5_010, "a", ActionResult::Failed, Reason::Withdrawn);
    bench.tells(9_000, ON, Cause::Local, None);
    assert!(!bench.has(&Effect::LateSuccess { op: op("a") }));
}

#[test]
fn s3_3_a_value_older_than_the_report_that_names_the_operation_does_not_count() {
    let mut bench = driving();
    bench.until(890);
    let question = bench.question();
    let old = bench.state(question, ON, Cause::Query, None);
    let seen = vec![("relay".into(), op("a"))];
    let newer = bench.report(Vec::new(), Body::State { op: None, cause: Cause::Unknown, seen });
    bench.at(900, Input::Heard(newer));
    bench.at(910, Input::Heard(old));
    stays_unconfirmed(bench);
}

#[test]
fn s3_3_the_answer_says_how_the_report_was_tied_to_the_operation() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    assert_eq!(bench.settled("a").1.attribution, Attribution::Named);
}

#[test]
fn s3_4_retained_report_never_converges() {
    let mut bench = driving();
    let status = vec![bench.status(ON)];
    let mut report = bench.action("a", ActionResult::Completed, status, None);
    report.retained = true;
    bench.at(400, Input::Heard(report));
    let mut answer = bench.state(None, ON, Cause::Query, Some("a"));
    answer.retained = true;
    bench.at(410, Input::Heard(answer));
    assert!(bench.has(&Effect::Ignored(Ignored::Retained)));
    stays_unconfirmed(bench);
}

#[test]
fn s3_4_a_report_of_another_boot_never_converges() {
    let mut bench = driving();
    let status = vec![bench.status(ON)];
    let mut report = bench.action("a", ActionResult::Completed, status, None);
    report.boot = "boot0".into();
    bench.at(400, Input::Heard(report));
    assert!(bench.has(&Effect::Ignored(Ignored::OldBoot)));
    stays_unconfirmed(bench);
}

#[test]
fn s3_4_what_counts_for_nothing_proves_no_presence() {
    let mut bench = Bench::relay();
    for (ms, retained, boot) in [(20_000, true, "boot1"), (24_000, false, "boot0")] {
        let mut report = bench.report(Vec::new(), Body::Heartbeat);
        (report.retained, report.boot) = (retained, boot.into());
        bench.at(ms, Input::Heard(report));
    }
    assert_eq!(bench.twin.last_heard(), Some(bench.time(0)));
    bench.until(25_000);
    assert_eq!(bench.twin.presence().as_str(), "suspected");
}

#[test]
fn s3_4_reports_before_any_hello_count_for_nothing() {
    let mut bench = Bench::unknown(vec![relay()]);
    bench.connect(0);
    bench.tells(10, ON, Cause::Local, None);
    assert!(bench.has(&Effect::Ignored(Ignored::NotGreeted)));
    assert!(bench.twin.state(bench.time(10)).readings.is_empty());
}

#[test]
fn s3_5_receipt_is_not_completion() {
    let mut bench = driving();
    let mut status = bench.status(ON);
    status.evidence = Evidence::Received;
    let report = bench.action("a", ActionResult::Completed, vec![status], None);
    bench.at(400, Input::Heard(report));
    stays_unconfirmed(bench);
}

#[test]
fn s3_5_never_less_than_firmware_even_if_the_description_offers_less() {
    let mut bench = Bench::online(Property { feedback: Evidence::Received, stable_ms: 0, ..relay() }, OFF);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    // Its begin says that the telegram has left; that is all there is to know.
    assert_eq!(bench.outcome("a"), (Outcome::SentUnverified, Stage::WaitingDeviceReport, None));
    bench.completed(400, "a", ON);
    assert!(!bench.check(500, "a").late_success);
}

#[test]
fn s3_5_the_highest_evidence_that_the_description_offers_is_required() {
    let mut bench = driving();
    let mut status = bench.status(ON);
    status.evidence = Evidence::Firmware;
    let report = bench.action("a", ActionResult::Completed, vec![status], None);
    bench.at(400, Input::Heard(report));
    bench.until(620);
    let question = bench.question();
    let weak = Status { property: "relay".into(), value: ON, evidence: Evidence::Firmware };
    let body = Body::State { op: question, cause: Cause::Query, seen: vec![("relay".into(), op("a"))] };
    let answer = bench.report(vec![weak], body);
    bench.at(630, Input::Heard(answer));
    stays_unconfirmed(bench);
}

#[test]
fn s3_5_no_report_claims_more_than_the_description_offers() {
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, stable_ms: 0, ..relay() }, OFF);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    let sure = Status { property: "relay".into(), value: ON, evidence: Evidence::Sensor };
    let report = bench.action("a", ActionResult::Completed, vec![sure.clone()], None);
    bench.at(400, Input::Heard(report));
    assert!(bench.replies("a").is_empty(), "a sensor would be both checks");
    let body = Body::State { op: bench.question(), cause: Cause::Query, seen: vec![("relay".into(), op("a"))] };
    let answer = bench.report(vec![sure], body);
    bench.at(410, Input::Heard(answer));
    assert_eq!(bench.settled("a").1.confirmed_by, Evidence::Firmware);
}

#[test]
fn s3_6_silence_is_never_evidence() {
    let mut bench = driving();
    bench.completed(400, "a", ON);
    bench.until(60_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingReadBack, Some(Reason::Timeout)));
}

#[test]
fn s3_6_the_read_back_is_asked_for_after_the_value_has_held() {
    let mut bench = driving();
    bench.completed(400, "a", ON);
    bench.until(599);
    assert_eq!(bench.questions(), 0);
    bench.until(600);
    assert_eq!(bench.questions(), 1);
}

#[test]
fn s3_6_with_nothing_to_hold_a_pin_read_in_the_report_is_both_checks() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(bench.questions(), 0);
    // Firmware alone is not enough for that.
    let mut bench = Bench::online(Property { stable_ms: 0, feedback: Evidence::Firmware, ..relay() }, OFF);
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    assert!(bench.replies("a").is_empty());
    bench.answers(410, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_6_an_answer_to_an_earlier_question_counts_neither_for_nor_against() {
    for value in [ON, OFF] {
        let mut bench = driving();
        bench.until(890);
        let earlier = bench.question();
        bench.completed(950, "a", ON);
        let seen = vec![("relay".into(), op("a"))];
        let status = vec![bench.status(ON)];
        // It says what is true, only it was not asked after completion.
        let answer = bench.report(status, Body::State { op: earlier.clone(), cause: Cause::Query, seen });
        bench.at(960, Input::Heard(answer));
        assert!(bench.replies("a").is_empty());
        bench.answers(1_160, value.clone(), Some("a"));
        assert_eq!(bench.outcome("a").0, if value == ON { Outcome::Converged } else { Outcome::Contradicted });
    }
}

#[test]
fn s3_6_a_hello_before_the_value_has_held_is_no_read_back() {
    let mut bench = driving();
    bench.completed(400, "a", ON);
    bench.connect(410);
    bench.hello(420, ON, Some("a"));
    assert!(bench.replies("a").is_empty());
    bench.answers(720, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_6_one_question_for_each_stage_finds_what_was_lost() {
    // Only the acknowledgement of nothing at all: frozen. Then one that began and fell silent.
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8000);
    bench.written(100, "a");
    bench.until(1_599);
    assert_eq!(bench.questions(), 0);
    bench.until(1_600);
    assert_eq!(bench.questions(), 1, "acknowledgement");
    bench.says(1_700, "a", ActionResult::Received);
    bench.until(2_799);
    assert_eq!(bench.questions(), 2, "start");
    bench.says(2_800, "a", ActionResult::Executing);
    bench.until(60_000);
    assert_eq!(bench.questions(), 3, "report");
}

#[test]
fn s3_6_a_question_that_says_not_finished_yet_ends_nothing() {
    let mut bench = driving();
    bench.answers(890, OFF, None);
    assert!(bench.replies("a").is_empty());
    bench.completed(1_000, "a", ON);
    bench.answers(1_210, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
}

#[test]
fn s3_7_a_contradiction_is_an_immediate_failure_with_the_actual_value() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", ON, 8000);
    bench.begin(110, "a");
    bench.completed(400, "a", OFF);
    let (ms, settled) = bench.settled("a");
    assert_eq!((ms, settled.outcome), (400, Outcome::Contradicted));
    assert_eq!(settled.found.map(|f| f.value), Some(OFF));
}

#[test]
fn s3_7_a_change_that_somebody_made_is_no_revert() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.tells(5_000, OFF, Cause::Local, Some("a"));
    bench.tells(6_000, OFF, Cause::Periodic, Some("a"));
    assert!(!bench.effects.iter().any(|(_, e)| matches!(e, Effect::Reverted { .. })));
}

#[test]
fn s3_7_a_command_refused_in_between_does_not_end_the_watch_for_a_revert() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.set(1_000, "b", OFF, 9_000);
    bench.written(1_010, "b");
    bench.refuses(1_020, "b", ActionResult::Rejected, Reason::Busy);
    bench.tells(5_000, OFF, Cause::Unknown, Some("a"));
    assert!(bench.has(&Effect::Reverted { op: op("a"), property: "relay".into() }));
}

#[test]
fn s3_7_an_earlier_command_that_drives_late_reverts_the_success_of_a_later_one() {
    let mut bench = Bench::quick_relay();
    bench.set(100, "a", OFF, 8000);
    bench.begin(110, "a");
    bench.until(5_000);
    bench.converge(5_000, "b", ON);
    bench.completed(6_000, "a", OFF);
    assert!(bench.has(&Effect::Reverted { op: op("b"), property: "relay".into() }));
}

#[test]
fn s3_7_a_revert_is_watched_for_ten_minutes() {
    for (ms, noticed) in [(600_000, true), (601_000, false)] {
        let mut bench = Bench::quick_relay();
        bench.converge(100, "a", ON);
        bench.tells(ms, OFF, Cause::Unknown, Some("a"));
        assert_eq!(bench.check(ms + 1, "a").reverted, noticed);
    }
}

#[test]
fn s3_8_what_is_equal_already_is_still_sent() {
    let mut bench = Bench::online(Property { stable_ms: 0, ..relay() }, ON);
    bench.set(100, "a", ON, 8000);
    assert_eq!(bench.sets(), [op("a")]);
}
