//! 6.3: what is owed to callers whose answer is no longer true. 2.8: of a device that was removed, nothing.

use std::time::{Duration, Instant};

use truetwin::{
    property::{DeviceId, Property},
    twin::{
        input::{ActionResult, Cause, Effect, Input},
        owed::{CALLERS_MAX, CORRECTIONS_MAX, Correction, OWED_FOR, Owed},
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Settled},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

fn correction(op: &str, device: &str) -> Correction {
    let (operation, device) = (OpId::new(op), DeviceId::new(device).expect("an id"));
    let settled = Settled::unknown(operation.clone(), device.clone(), "relay".into(), None);
    Correction { device, operation, settled }
}

fn taken(owed: &mut Owed, now: Instant, who: &CallerId) -> Vec<String> {
    owed.take(now, who).into_iter().map(|c| c.operation.to_string()).collect()
}

#[test]
fn s6_3_what_is_owed_is_told_once_to_whom_it_is_owed_and_only_for_ten_minutes() {
    let (mut owed, now) = (Owed::default(), Instant::now());
    let (me, you) = (CallerId::new("me"), CallerId::new("you"));
    owed.owe(now, &me, correction("a", "lamp"));
    owed.owe(now, &me, correction("b", "lamp"));
    assert!(owed.take(now, &you).is_empty());
    assert_eq!(taken(&mut owed, now, &me), ["a", "b"]);
    assert!(owed.take(now, &me).is_empty());
    owed.owe(now, &me, correction("c", "lamp"));
    assert!(owed.take(now + OWED_FOR + Duration::from_millis(1), &me).is_empty());
}

#[test]
fn s6_3_the_newest_word_on_an_operation_counts_and_what_was_just_heard_is_not_owed() {
    let (mut owed, now) = (Owed::default(), Instant::now());
    let me = CallerId::new("me");
    for op in ["a", "b", "a", "c"] {
        owed.owe(now, &me, correction(op, "lamp"));
    }
    owed.heard(&me, &OpId::new("c"));
    assert_eq!(taken(&mut owed, now, &me), ["b", "a"]);
}

#[test]
fn s6_3_the_store_is_bounded_and_callers_without_a_session_are_owed_nothing() {
    let (mut owed, now) = (Owed::default(), Instant::now());
    for n in 0..=u64::try_from(CALLERS_MAX).expect("small") {
        let at = now + Duration::from_millis(n);
        for op in 0..=CORRECTIONS_MAX {
            owed.owe(at, &CallerId::new(&format!("c{n}")), correction(&format!("{n}-{op}"), "lamp"));
        }
    }
    assert!(owed.take(now, &CallerId::new("c0")).is_empty(), "the oldest was forgotten");
    assert_eq!(taken(&mut owed, now, &CallerId::new("c1")), ["1-1", "1-2", "1-3", "1-4"]);
    owed.owe(now, &CallerId::shared("all"), correction("a", "lamp"));
    assert!(owed.take(now, &CallerId::shared("all")).is_empty());
}

#[test]
fn s2_8_what_was_owed_of_a_removed_device_is_forgotten() {
    let (mut owed, now) = (Owed::default(), Instant::now());
    let me = CallerId::new("me");
    owed.owe(now, &me, correction("a", "lamp"));
    owed.owe(now, &me, correction("b", "fan"));
    owed.forget_device(&DeviceId::new("lamp").expect("an id"));
    assert_eq!(taken(&mut owed, now, &me), ["b"]);
}

/// Whom a twin says to owe what: caller, operation, outcome, and whether it is a late success or a revert.
fn owed_by(bench: &Bench) -> Vec<(String, String, Outcome, bool, bool)> {
    let each = bench.owed().into_iter().map(|(caller, c)| {
        let (caller, operation) = (caller.to_string(), c.operation.to_string());
        (caller, operation, c.settled.outcome, c.settled.late_success, c.settled.reverted)
    });
    each.collect()
}

#[test]
fn s6_3_a_late_success_is_owed_to_each_who_was_told_otherwise() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", Wish::to("relay", ON), 8_000);
    bench.asks(110, "bob", "b", Wish::to("relay", ON), 8_000);
    bench.asks(120, "eve", "c", Wish::to("relay", ON), 8_000);
    bench.begin(130, "a");
    bench.at(140, Input::Cancel { op: op("c") });
    bench.until(3_000);
    assert!(owed_by(&bench).is_empty());
    bench.completed(4_000, "a", ON);
    let late = |who: &str, op: &str| (who.to_owned(), op.to_owned(), Outcome::TimedOut, true, false);
    assert_eq!(owed_by(&bench), [late("ann", "a"), late("bob", "b")], "eve was told nothing");
}

#[test]
fn s6_3_a_revert_is_owed_to_all_whose_answer_it_undoes_and_a_hand_at_the_switch_is_none() {
    let run = |cause: Cause| {
        let mut bench = Bench::quick_relay();
        bench.converge(100, "a", ON);
        let needed = Wish { if_needed: Some(Duration::from_secs(9)), ..Wish::to("relay", ON) };
        bench.asks(1_000, "bob", "b", needed, 8_000);
        bench.tells(2_000, OFF, cause, Some("a"));
        owed_by(&bench)
    };
    let of = |who: &str, op: &str, outcome| (who.to_owned(), op.to_owned(), outcome, false, true);
    assert_eq!(run(Cause::Unknown), [of("bob", "b", Outcome::Already), of("me", "a", Outcome::Converged)]);
    assert!(run(Cause::Local).is_empty());
}

#[test]
fn s6_3_the_end_of_what_was_working_is_owed() {
    let slow = Property { expected_ms: 20_000, stable_ms: 0, ..relay() };
    for (result, outcome) in [(ActionResult::Completed, Outcome::Converged), (ActionResult::Failed, Outcome::Failed)] {
        let mut bench = Bench::online(slow.clone(), OFF);
        bench.asks(100, "ann", "a", Wish::to("relay", ON), 1_000);
        bench.begin(110, "a");
        bench.until(5_000);
        assert_eq!(bench.outcome("a").0, Outcome::Working);
        let status = vec![bench.status(if result == ActionResult::Completed { ON } else { OFF })];
        let report = bench.action("a", result, status, None);
        bench.at(6_000, Input::Heard(report));
        assert_eq!(owed_by(&bench), [("ann".to_owned(), "a".to_owned(), outcome, false, false)]);
        // Nothing more is owed for the same end.
        bench.until(60_000);
        assert_eq!(bench.owed().len(), 1);
    }
}

#[test]
fn s6_3_who_was_told_working_is_owed_that_the_hubs_part_crashed_over_it() {
    let mut bench = Bench::online(Property { expected_ms: 20_000, ..relay() }, OFF);
    bench.asks(100, "ann", "a", Wish::to("relay", ON), 1_000);
    bench.begin(110, "a");
    bench.asks(200, "bob", "b", Wish::to("relay", ON), 30_000);
    bench.until(5_000);
    let memory = bench.twin.memory(bench.time(5_000));
    let mut next = Bench::unknown(vec![relay()]);
    next.at(5_000, Input::Restored(memory));
    // Bob hears it from the fleet.
    assert_eq!(owed_by(&next), [("ann".to_owned(), "a".to_owned(), Outcome::Interrupted, false, false)]);
}

#[test]
fn s6_3_what_happens_later_than_ten_minutes_after_the_answer_is_no_correction() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.tells(601_000, OFF, Cause::Unknown, Some("a"));
    assert!(owed_by(&bench).is_empty());
}

#[test]
fn s6_3_what_undoes_a_correction_is_owed_as_well() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", Wish::to("relay", ON), 8_000);
    bench.begin(110, "a");
    bench.until(3_000);
    bench.completed(500_000, "a", ON);
    bench.tells(900_000, OFF, Cause::Unknown, Some("a"));
    let news: Vec<(bool, bool)> =
        owed_by(&bench).into_iter().map(|(_, _, _, late, reverted)| (late, reverted)).collect();
    assert_eq!(news, [(true, false), (true, true)]);
}

#[test]
fn s6_3_the_state_of_the_device_tells_what_has_changed_for_whoever_asks() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", Wish::to("relay", ON), 8_000);
    bench.begin(110, "a");
    bench.until(3_000);
    bench.completed(4_000, "a", ON);
    let amended = |bench: &Bench, ms| bench.twin.state(bench.time(ms)).amended;
    let told = amended(&bench, 5_000);
    assert_eq!((told.len(), told[0].late_success), (1, true));
    assert!(amended(&bench, 605_000).is_empty(), "after ten minutes it is no news");
}

#[test]
fn an_effect_of_what_is_owed_names_the_device() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.tells(1_000, OFF, Cause::Unknown, Some("a"));
    let device =
        |e: &Effect| if let Effect::Owed { correction, .. } = e { Some(correction.device.clone()) } else { None };
    let devices: Vec<DeviceId> = bench.effects.iter().filter_map(|(_, e)| device(e)).collect();
    assert_eq!(devices, [DeviceId::new("lamp").expect("an id")]);
}
