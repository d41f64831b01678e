//! 3.8 and 4.3, 4.4, 4.7: what several callers of one property mean for each other.

use std::time::Duration;

use truetwin::{
    property::{Evidence, Property, Value},
    twin::{
        input::{ActionResult, Body, Cause, Effect, Input},
        wish::Wish,
        words::{Outcome, Reason, Refusal, Stage, Trust},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

/// A wish that may be answered by a value of the last five seconds.
fn needed(value: Value) -> Wish {
    Wish { if_needed: Some(Duration::from_secs(5)), ..Wish::to("relay", value) }
}

fn to(value: Value) -> Wish {
    Wish::to("relay", value)
}

/// A relay that moves at most twice a second.
fn calm() -> Bench {
    Bench::online(Property { stable_ms: 0, min_interval_ms: 500, ..relay() }, OFF)
}

#[test]
fn s3_8_what_is_so_already_and_freshly_known_is_not_sent_if_that_is_enough() {
    let mut bench = Bench::relay();
    bench.asks(4_000, "ann", "a", needed(OFF), 12_000);
    assert_eq!(bench.outcome("a"), (Outcome::Already, Stage::Settled, None));
    let (_, settled) = bench.settled("a");
    assert_eq!((settled.confirmed_by, settled.found.map(|f| f.trust)), (Evidence::Pin, Some(Trust::Now)));
    assert!(bench.sets().is_empty());
    assert_eq!(bench.check(5_000, "a").outcome, Outcome::Already);
    // Without the permission it is sent.
    bench.asks(4_100, "ann", "b", to(OFF), 12_000);
    assert_eq!(bench.sets(), [op("b")]);
}

#[test]
fn s3_8_an_older_value_another_one_or_one_with_less_evidence_is_no_answer() {
    let mut bench = Bench::quick_relay();
    bench.asks(5_001, "ann", "old", needed(OFF), 12_000);
    assert_eq!(bench.sets(), [op("old")]);
    let mut bench = Bench::quick_relay();
    bench.asks(1_000, "ann", "other", needed(ON), 12_000);
    assert_eq!(bench.sets(), [op("other")]);
    let mut bench = Bench::quick_relay();
    let mut said = bench.status(OFF);
    said.evidence = Evidence::Firmware;
    let report = bench.report(vec![said], Body::State { op: None, cause: Cause::Periodic, seen: Vec::new() });
    bench.at(900, Input::Heard(report));
    bench.asks(1_000, "ann", "weak", needed(OFF), 12_000);
    assert_eq!(bench.sets(), [op("weak")]);
}

#[test]
fn s3_8_what_a_device_only_says_of_its_own_operation_is_no_answer() {
    let firmware = Property { feedback: Evidence::Firmware, stable_ms: 0, ..relay() };
    let mut bench = Bench::online(firmware, OFF);
    bench.asks(100, "ann", "a", to(ON), 1_000);
    bench.begin(110, "a");
    bench.completed(300, "a", ON);
    bench.until(2_000);
    assert_eq!(bench.outcome("a").0, Outcome::Working, "nothing was read back in time");
    bench.asks(2_100, "bob", "b", needed(ON), 8_000);
    assert_eq!(bench.sets(), [op("a"), op("b")]);
    // Nor is it later, when the operation has ended and nobody knows.
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, stable_ms: 0, ..relay() }, OFF);
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.begin(110, "a");
    bench.until(2_000);
    bench.completed(2_050, "a", ON);
    bench.asks(2_100, "bob", "b", needed(ON), 8_000);
    assert_eq!(bench.sets(), [op("a"), op("b")]);
    // Told as the state it is one.
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, stable_ms: 0, ..relay() }, OFF);
    bench.tells(300, ON, Cause::Local, None);
    bench.asks(400, "bob", "b", needed(ON), 8_000);
    assert_eq!(bench.outcome("b").0, Outcome::Already);
}

#[test]
fn s3_8_what_an_earlier_session_said_is_no_answer() {
    let mut bench = Bench::quick_relay();
    bench.connect(1_000);
    bench.asks(1_005, "ann", "a", needed(OFF), 12_000);
    assert!(bench.replies("a").is_empty());
    bench.hello(1_010, OFF, None);
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s3_8_with_something_in_flight_nothing_is_already_so() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", to(OFF), 12_000);
    bench.asks(110, "bob", "b", needed(OFF), 12_000);
    assert!(bench.replies("b").is_empty(), "it waits for the one in flight");
    bench.begin(120, "a");
    bench.completed(400, "a", OFF);
    assert_eq!(bench.outcome("b").0, Outcome::Converged);
}

#[test]
fn s4_3_an_equal_wish_waits_for_the_same_operation_and_each_caller_has_its_own_id() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.asks(150, "bob", "b", to(ON), 9_000);
    bench.begin(160, "a");
    bench.completed(460, "a", ON);
    assert_eq!(bench.sets(), [op("a")]);
    for (id, joined, elapsed) in [("a", None, 360), ("b", Some(op("a")), 310)] {
        let (_, settled) = bench.settled(id);
        assert_eq!((&settled.op, &settled.joined), (&op(id), &joined));
        assert_eq!((settled.outcome, settled.elapsed.as_millis()), (Outcome::Converged, elapsed));
        let known = bench.check(1_000, id);
        assert_eq!((known.op, known.outcome), (op(id), Outcome::Converged));
    }
}

#[test]
fn s4_3_what_is_completed_is_not_joined_any_more() {
    let mut bench = Bench::relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.begin(110, "a");
    bench.completed(300, "a", ON);
    bench.asks(350, "bob", "b", to(ON), 8_000);
    bench.answers(510, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert!(bench.replies("b").is_empty());
    assert_eq!(bench.sets(), [op("a"), op("b")]);
}

#[test]
fn s4_3_each_is_answered_by_its_own_limit() {
    let mut bench = Bench::online(Property { expected_ms: 5_000, stable_ms: 0, ..relay() }, OFF);
    bench.asks(100, "ann", "a", to(ON), 20_000);
    bench.begin(110, "a");
    bench.asks(200, "bob", "b", to(ON), 1_000);
    bench.completed(4_000, "a", ON);
    assert_eq!((bench.settled("b").0, bench.outcome("b").0), (950, Outcome::Working));
    assert_eq!((bench.settled("a").0, bench.outcome("a").0), (4_000, Outcome::Converged));
    assert_eq!(bench.check(5_000, "b").outcome, Outcome::Converged);
}

#[test]
fn s4_3_who_must_be_answered_before_it_may_begin_at_the_latest_does_not_join() {
    let mut bench = Bench::relay();
    bench.asks(100, "ann", "a", to(ON), 30_000);
    bench.asks(110, "bob", "b", to(ON), 1_500);
    bench.written(120, "a");
    bench.says(130, "a", ActionResult::Received);
    bench.until(1_900);
    // Else it could begin after bob was told that it is not known to be done.
    assert!(matches!(bench.refusal("b"), (1_450, Refusal::DeadlineTooShort { .. })));
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s4_3_whose_limit_comes_without_a_sign_hears_that_nobody_knows_and_the_others_wait_on() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", to(ON), 30_000);
    bench.asks(110, "bob", "b", to(ON), 2_500);
    bench.written(120, "a");
    bench.says(130, "a", ActionResult::Received);
    bench.until(2_800);
    assert_eq!((bench.settled("b").0, bench.outcome("b").0), (2_450, Outcome::TimedOut));
    assert!(!bench.withdrawn("a"), "for ann it goes on");
    bench.completed(2_900, "a", ON);
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    let owed = bench.owed();
    assert_eq!(owed.len(), 1);
    assert_eq!((owed[0].0.as_str(), owed[0].1.settled.outcome), ("bob", Outcome::Converged));
}

#[test]
fn s4_3_a_stricter_demand_does_not_pass_on_a_weaker_proof() {
    let mut bench = Bench::online(Property { feedback: Evidence::Firmware, stable_ms: 0, ..relay() }, OFF);
    bench.asks(100, "ann", "a", to(ON), 30_000);
    bench.begin(110, "a");
    // It describes itself anew: from now on a success needs the pin.
    bench.properties[0].feedback = Evidence::Pin;
    bench.connect(200);
    bench.hello(210, OFF, None);
    bench.asks(300, "bob", "b", to(ON), 30_000);
    bench.properties[0].feedback = Evidence::Firmware;
    bench.completed(400, "a", ON);
    bench.answers(1_000, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert!(bench.replies("b").is_empty());
    assert_eq!(bench.sets().last(), Some(&op("b")));
}

#[test]
fn s4_3_one_operation_has_a_bounded_number_of_callers() {
    let mut bench = Bench::quick_relay();
    for n in 0..17 {
        bench.asks(100, &format!("c{n}"), &format!("a{n}"), to(ON), 8_000);
    }
    bench.begin(110, "a0");
    bench.completed(300, "a0", ON);
    assert_eq!(bench.outcome("a15").0, Outcome::Converged);
    assert_eq!(bench.sets(), [op("a0"), op("a16")], "one more has an operation of its own");
}

#[test]
fn s4_3_what_waits_for_the_description_is_joined_once_it_is_known_what_is_equal() {
    let mut bench = Bench::just_started(vec![relay()]);
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.asks(110, "bob", "b", to(ON), 8_000);
    bench.asks(120, "eve", "c", to(OFF), 8_000);
    bench.asks(130, "eve", "d", Wish::to("nothing", ON), 8_000);
    bench.connect(200);
    bench.hello(210, OFF, None);
    for id in ["a", "b"] {
        assert_eq!(bench.outcome(id).0, Outcome::Superseded);
    }
    assert!(matches!(bench.refusal("d").1, Refusal::UnknownProperty { .. }));
    assert_eq!(bench.sets(), [op("c")]);
}

#[test]
fn s4_4_another_value_takes_the_place_of_what_waits_and_its_callers_hear_so_at_once() {
    let mut bench = calm();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.begin(110, "a");
    bench.asks(200, "bob", "b", to(OFF), 8_000);
    bench.asks(210, "ann", "c", to(ON), 8_000);
    for (id, at, by) in [("a", 200, OFF), ("b", 210, ON)] {
        let (ms, settled) = bench.settled(id);
        assert_eq!((ms, settled.outcome, settled.superseded_by), (at, Outcome::Superseded, Some(by)));
    }
    assert!(bench.replies("c").is_empty());
    assert_eq!(bench.sets(), [op("a")], "what was never sent is no more");
    assert_eq!(bench.settled("b").1.stage, Stage::Queued);
    // The end of the first is its own, and still that it was superseded.
    bench.completed(430, "a", ON);
    assert_eq!(bench.check(440, "a").outcome, Outcome::Superseded);
    assert_eq!(bench.replies("a").len(), 1);
}

#[test]
fn s4_4_what_has_not_begun_is_withdrawn_and_the_newer_goes_once_the_device_says_so() {
    let mut bench = calm();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.written(105, "a");
    bench.says(110, "a", ActionResult::Received);
    bench.asks(120, "bob", "b", to(OFF), 8_000);
    assert!(bench.withdrawn("a"));
    assert_eq!(bench.sets(), [op("a")], "it may have begun");
    bench.refuses(140, "a", ActionResult::Failed, Reason::Withdrawn);
    assert_eq!(bench.sets(), [op("a"), op("b")], "nothing moved, so there is nothing to wait for");
}

#[test]
fn s4_4_a_silent_device_keeps_the_newer_waiting_until_the_older_cannot_begin_any_more() {
    let mut bench = calm();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.written(105, "a");
    bench.asks(120, "bob", "b", to(OFF), 8_000);
    bench.until(3_000);
    assert_eq!(bench.sets(), [op("a"), op("b")]);
    let sent = bench.effects.iter().find(|(_, e)| bench.is_set(e, "b")).map(|(ms, _)| *ms);
    // The acknowledgement's allowance ends at 1 105 less what the sending took, and it may have begun until then.
    assert!(sent.is_some_and(|ms| ms >= 1_600), "{sent:?}");
}

#[test]
fn s4_4_while_the_device_executes_the_newer_waits_for_its_end_and_the_shortest_interval() {
    let mut bench = calm();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.begin(110, "a");
    bench.asks(150, "bob", "b", to(OFF), 8_000);
    assert!(!bench.withdrawn("a"), "what has begun is let run");
    bench.completed(430, "a", ON);
    bench.until(629);
    assert_eq!(bench.sets(), [op("a")]);
    bench.until(630);
    assert_eq!(bench.sets(), [op("a"), op("b")], "500 ms after it said that it began");
}

#[test]
fn s4_4_what_is_completed_is_told_by_its_read_back_not_superseded() {
    let mut bench = Bench::relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.begin(110, "a");
    bench.completed(300, "a", ON);
    bench.asks(350, "bob", "b", to(OFF), 8_000);
    assert!(bench.replies("a").is_empty());
    bench.answers(510, ON, Some("a"));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(bench.sets(), [op("a"), op("b")]);
}

#[test]
fn s4_4_a_device_that_pre_empts_takes_the_newer_while_it_executes_the_older() {
    let mut bench = Bench::unknown(vec![Property { min_interval_ms: 500, expected_ms: 20_000, ..relay() }]);
    bench.level = 3;
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench.asks(100, "ann", "a", to(ON), 30_000);
    bench.begin(110, "a");
    bench.asks(200, "bob", "b", to(OFF), 30_000);
    bench.until(629);
    assert_eq!(bench.sets(), [op("a")]);
    bench.until(630);
    assert_eq!(bench.sets(), [op("a"), op("b")]);
    bench.refuses(640, "a", ActionResult::Failed, Reason::Superseded);
    assert_eq!(bench.check(650, "a").outcome, Outcome::Superseded);
    assert_eq!(bench.twin.desired("relay").map(|d| d.op.clone()), Some(op("b")));
}

/// Found by the simulator, seeds 703 and 2597.
#[test]
fn s3_7_an_older_wish_that_ends_later_than_the_one_that_pre_empted_it_does_not_end_the_watch() {
    for reverts_at in [1_000, 30_000] {
        let mut bench =
            Bench::unknown(vec![Property { stable_ms: 0, min_interval_ms: 0, expected_ms: 3_000, ..relay() }]);
        bench.level = 3;
        bench.connect(0);
        bench.hello(0, OFF, None);
        bench.asks(100, "ann", "a", to(OFF), 30_000);
        bench.begin(110, "a");
        bench.asks(200, "bob", "b", to(ON), 30_000);
        bench.begin(210, "b");
        bench.completed(500, "b", ON);
        assert_eq!(bench.outcome("b").0, Outcome::Converged);
        // The older one's own end is never heard: its time runs out.
        bench.tells(reverts_at, OFF, Cause::Unknown, Some("b"));
        assert!(bench.has(&Effect::Reverted { op: op("b"), property: "relay".into() }), "{reverts_at}");
    }
}

#[test]
fn s4_4_ten_alternating_wishes_move_the_relay_at_most_twice_a_second_and_each_has_its_answer() {
    let mut bench = calm();
    let (mut drives, mut ends): (Vec<u64>, Vec<(u64, String, Value)>) = (Vec::new(), Vec::new());
    let mut known = 0;
    for ms in (100..8_000).step_by(10) {
        if ms % 60 == 40 && ms <= 640 {
            let n = (ms - 40) / 60;
            let (who, value) = if n % 2 == 0 { ("ann", OFF) } else { ("bob", ON) };
            bench.asks(ms, who, &format!("a{n:02}"), to(value), 8_000);
        }
        bench.until(ms);
        if let Some(sent) = bench.sets().get(known).cloned() {
            known += 1;
            drives.push(ms);
            let on = sent.as_str()[1..].parse::<u32>().expect("a number") % 2 == 1;
            bench.begin(ms, sent.as_str());
            ends.push((ms + 300, sent.to_string(), Value::Bool(on)));
        }
        if let Some((_, id, value)) = ends.pop_if(|(at, _, _)| *at <= ms) {
            bench.completed(ms + 5, &id, value);
        }
    }
    assert!(drives.windows(2).all(|pair| pair[1] - pair[0] >= 500), "{drives:?}");
    let outcomes: Vec<Outcome> = (1..=10).map(|n| bench.outcome(&format!("a{n:02}")).0).collect();
    assert_eq!(outcomes.last(), Some(&Outcome::Converged));
    assert!(outcomes.iter().all(|o| [Outcome::Converged, Outcome::Superseded].contains(o)), "{outcomes:?}");
}

#[test]
fn s4_7_who_goes_takes_nothing_away_from_those_who_wait() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.asks(110, "bob", "b", to(ON), 8_000);
    bench.at(120, Input::Cancel { op: op("a") });
    assert!(!bench.withdrawn("a"));
    bench.begin(130, "a");
    bench.completed(400, "a", ON);
    assert_eq!(bench.outcome("b").0, Outcome::Converged);
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s4_7_when_the_last_has_gone_it_is_withdrawn() {
    let mut bench = Bench::relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.asks(110, "bob", "b", to(ON), 8_000);
    bench.at(120, Input::Cancel { op: op("b") });
    assert!(!bench.withdrawn("a"));
    bench.at(130, Input::Cancel { op: op("a") });
    assert!(bench.withdrawn("a"));
    // Nor is it joined any more.
    bench.asks(140, "eve", "c", to(ON), 8_000);
    bench.refuses(150, "a", ActionResult::Failed, Reason::Withdrawn);
    assert_eq!(bench.sets(), [op("a"), op("c")]);
}

#[test]
fn s4_7_what_was_not_sent_goes_on_for_the_others_under_an_id_of_theirs() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "eve", "x", to(OFF), 8_000);
    bench.begin(110, "x");
    bench.asks(150, "ann", "a", to(ON), 8_000);
    bench.asks(160, "bob", "b", to(ON), 8_000);
    bench.at(170, Input::Cancel { op: op("a") });
    bench.completed(400, "x", OFF);
    assert_eq!(bench.sets(), [op("x"), op("b")], "no id of one who has gone reaches the device");
    bench.begin(410, "b");
    bench.completed(700, "b", ON);
    assert_eq!(bench.outcome("b").0, Outcome::Converged);
    assert!(bench.replies("a").is_empty());
}

#[test]
fn s5_8_a_successor_knows_each_caller_of_what_was_in_flight() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", to(ON), 8_000);
    bench.asks(110, "bob", "b", to(ON), 8_000);
    bench.begin(120, "a");
    let memory = bench.twin.memory(bench.time(200));
    let mut next = Bench::unknown(vec![relay()]);
    next.at(200, Input::Restored(memory));
    assert!(next.withdrawn("a") && !next.withdrawn("b"), "under the id that the device knows");
    for id in ["a", "b"] {
        let known = next.check(300, id);
        assert_eq!((known.op, known.outcome), (op(id), Outcome::Interrupted));
    }
    assert_eq!(next.effects.iter().filter(|(_, e)| matches!(e, Effect::Ended { .. })).count(), 1);
}
