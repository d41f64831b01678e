//! Who changed what is held: a hand at the device, or the hub's own operation, heard of late or by a hub that has begun anew
//! (semantics 5.8, 6.2). Found by killing real hubs with a full disk; the simulator's houses with a set point hold the kind.

use std::time::Duration;

use truetwin::{
    property::{Class, Property, Value},
    twin::{
        Hears,
        held::{Held, Kept},
        input::{Cause, Command, Effect, Input, Left, Memory},
        wish::CallerId,
        words::{HeldState, Outcome, Refusal, Settled},
    },
};

use crate::bench::{Bench, op};

/// A heater between 0 and 100.
fn heater() -> Property {
    Property { name: "target".into(), class: Class::Held, ..crate::bench::level() }
}

fn n(value: f64) -> Value {
    Value::Number(value)
}

fn online() -> Bench {
    Bench::online(heater(), n(20.0))
}

fn state(bench: &Bench, ms: u64) -> Option<(Value, HeldState)> {
    bench.twin.state(bench.time(ms)).held.first().map(|held| (held.value.clone(), held.state))
}

fn overridden(bench: &Bench) -> bool {
    bench.has(&Effect::LocalOverride { property: "target".into() })
}

/// The first moment at which nothing is in flight.
fn idle(bench: &mut Bench, from: u64) -> u64 {
    let at = (from..from + 20_000).find(|ms| {
        bench.until(*ms);
        bench.twin.in_flight() == 0
    });
    at.expect("every operation has an end")
}

/// A hub that begins anew, with this set point in its journal.
fn begun_anew(kept: Kept, in_flight: Vec<Left>) -> Bench {
    let described = online().twin.description().cloned();
    let mut bench = Bench::unknown(vec![heater()]);
    let held = [("target".into(), Held::resumed(kept, bench.time(0), 1))].into();
    bench.at(0, Input::Restored(Memory { description: described, held, in_flight, ..Memory::default() }));
    bench.connect(100);
    bench
}

fn kept(bench: &Bench, value: f64, came_true: bool) -> Kept {
    let since = bench.time(0).checked_sub(Duration::from_secs(600)).expect("the bench is an hour old");
    let (op, value) = (op("a"), n(value));
    Kept { value, op, since, valid_until: None, sent: 1, came_true, overridden: false, blocked: false }
}

#[test]
fn s6_2_what_an_older_operation_of_the_hub_did_is_no_hand_at_the_device() {
    let mut bench = online();
    bench.set(0, "a", n(50.0), 8_000);
    let at = idle(&mut bench, 1);
    bench.set(at, "b", n(60.0), at + 8_000);
    let at = idle(&mut bench, at + 1);
    bench.tells(at, n(50.0), Cause::Unknown, Some("a"));
    assert!(!overridden(&bench), "the device says itself that the hub brought it about");
    assert_eq!(state(&bench, at), Some((n(60.0), HeldState::Pursued)));
}

#[test]
fn s6_2_a_hand_that_sets_what_an_operation_had_set_before_has_the_last_word_all_the_same() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(200, "a", n(50.0));
    bench.tells(1_000, n(70.0), Cause::Local, Some("a"));
    bench.tells(2_000, n(50.0), Cause::Local, Some("a"));
    assert_eq!(state(&bench, 2_000), Some((n(50.0), HeldState::LocalOverride)));
}

#[test]
fn s6_2_a_late_drive_of_an_older_operation_is_undone() {
    let mut bench = online();
    bench.set(0, "a", n(50.0), 8_000);
    let at = idle(&mut bench, 1);
    bench.set(at, "b", n(20.0), at + 8_000);
    bench.begin(at + 1, "b");
    bench.completed(at + 100, "b", n(20.0));
    assert_eq!(state(&bench, at + 200), Some((n(20.0), HeldState::Met)));
    bench.completed(at + 1_000, "a", n(50.0));
    let set = |c| if let Command::Set { value, .. } = c { Some(value) } else { None };
    let sent: Vec<Value> = bench.commands().into_iter().filter_map(set).collect();
    assert_eq!(sent.last(), Some(&n(20.0)), "{sent:?}");
    assert_eq!(state(&bench, at + 1_000), Some((n(20.0), HeldState::Pursued)));
}

#[test]
fn s5_8_a_wish_that_has_not_come_true_is_pursued_by_a_hub_that_begins_anew() {
    for cause in [Cause::Periodic, Cause::Unknown, Cause::Query] {
        let mut bench = begun_anew(kept(&online(), 50.0, false), Vec::new());
        let status = vec![bench.status(n(20.0))];
        bench.hello_of(200, status, cause, None);
        assert!(!overridden(&bench), "{cause:?}: it is as it always was");
        assert_eq!(bench.sets().len(), 1, "{cause:?}");
        assert_eq!(state(&bench, 300), Some((n(50.0), HeldState::Pursued)));
    }
}

#[test]
fn s6_2_a_hand_at_the_device_while_the_hub_was_away_has_the_last_word() {
    for (came_true, cause) in [(true, Cause::Periodic), (true, Cause::Unknown), (false, Cause::Local)] {
        let mut bench = begun_anew(kept(&online(), 50.0, came_true), Vec::new());
        let status = vec![bench.status(n(70.0))];
        bench.hello_of(200, status, cause, Some("a"));
        bench.until(10_000);
        assert!(overridden(&bench) && bench.sets().is_empty(), "{came_true} {cause:?}");
        assert_eq!(state(&bench, 10_000), Some((n(70.0), HeldState::LocalOverride)));
    }
}

#[test]
fn s5_8_what_was_wished_last_and_is_done_is_held_though_its_row_was_not_written() {
    let ago = |seconds| Duration::from_secs(seconds);
    for (asked, is_newer) in [(ago(5), true), (ago(900), false)] {
        let twin = online().twin;
        let settled = Settled::unknown(op("b"), twin.device().clone(), "target".into(), Some(n(60.0)));
        let settled = Settled { elapsed: asked, ..settled };
        let left = Left { caller: CallerId::new("ann"), hears: Hears::Gone, settled };
        let mut bench = begun_anew(kept(&online(), 50.0, true), vec![left]);
        bench.hello(200, n(60.0), Some("b"));
        assert!(!overridden(&bench), "the device names the operation");
        assert!(bench.check(300, "b").late_success);
        let expected = if is_newer { (n(60.0), HeldState::Met) } else { (n(50.0), HeldState::Pursued) };
        assert_eq!(state(&bench, 300), Some(expected));
    }
}

#[test]
fn s6_2_what_was_held_stands_again_when_the_caller_of_a_newer_wish_is_refused() {
    let slow = Property { min_interval_ms: 60_000, ..heater() };
    let mut bench = Bench::online(slow, n(20.0));
    bench.set(100, "a", n(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(200, "a", n(50.0));
    bench.set(1_000, "b", n(60.0), 3_000);
    assert_eq!(state(&bench, 1_000), Some((n(60.0), HeldState::Pursued)));
    bench.until(10_000);
    assert!(matches!(bench.refusal("b").1, Refusal::DeadlineTooShort { .. }));
    assert_eq!(state(&bench, 10_000), Some((n(50.0), HeldState::Met)));
    bench.until(200_000);
    assert_eq!(bench.sets(), [op("a")], "what was refused never moves");
}

#[test]
fn s6_2_of_two_who_wish_the_same_the_one_who_is_refused_takes_nothing_from_the_other() {
    let slow = Property { min_interval_ms: 5_000, ..heater() };
    let mut bench = Bench::online(slow, n(20.0));
    bench.set(100, "a", n(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(200, "a", n(50.0));
    bench.set(1_000, "b", n(60.0), 20_000);
    bench.set(1_100, "c", n(60.0), 3_000);
    bench.until(4_000);
    assert!(matches!(bench.refusal("c").1, Refusal::DeadlineTooShort { .. }));
    assert_eq!(state(&bench, 4_000), Some((n(60.0), HeldState::Pursued)));
}

#[test]
fn s6_2_a_sending_that_does_not_reach_the_device_is_tried_again_after_growing_pauses() {
    let mut bench = online();
    bench.set(0, "a", n(50.0), 8_000);
    bench.begin(10, "a");
    bench.completed(100, "a", n(50.0));
    // It falls back by itself, and from then on its socket takes nothing while its session lives.
    bench.tells(1_000, n(20.0), Cause::Failsafe, Some("a"));
    let mut at = Vec::new();
    for ms in 1_000..300_000 {
        bench.until(ms);
        let sets = bench.sets();
        if sets.len() > at.len() + 1 {
            at.push(ms);
            bench.at(ms, Input::NotWritten { op: sets[sets.len() - 1].clone() });
        }
    }
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] > pair[0] || pair[1] > 200_000), "{gaps:?}");
    assert!((5..12).contains(&at.len()), "{gaps:?}");
    assert_eq!(state(&bench, 300_000), Some((n(50.0), HeldState::Pursued)));
}

#[test]
fn s2_6_what_was_wished_before_the_device_had_described_itself_is_held_all_the_same() {
    let mut bench = Bench::just_started(vec![heater()]);
    bench.set(100, "a", n(50.0), 8_000);
    bench.connect(200);
    bench.hello(300, n(20.0), None);
    bench.begin(400, "a");
    bench.completed(500, "a", n(50.0));
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(state(&bench, 600), Some((n(50.0), HeldState::Met)));
}

#[test]
fn s6_2_what_a_person_has_set_is_brought_back_after_a_reboot_once_and_then_it_is_met() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(200, "a", n(50.0));
    bench.tells(1_000, n(70.0), Cause::Local, Some("a"));
    bench.reboot("boot2");
    bench.connect(2_000);
    bench.hello(2_010, n(20.0), None);
    let again = bench.sets().last().expect("it is sent").clone();
    bench.begin(2_020, again.as_str());
    bench.completed(2_200, again.as_str(), n(70.0));
    bench.until(60_000);
    assert_eq!(bench.sets().len(), 2, "it is so");
    assert_eq!(state(&bench, 60_000), Some((n(70.0), HeldState::LocalOverride)));
}

#[test]
fn s6_2_what_a_person_has_set_is_tried_again_after_growing_pauses_as_any_other() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    bench.begin(110, "a");
    bench.completed(200, "a", n(50.0));
    bench.tells(1_000, n(70.0), Cause::Local, Some("a"));
    bench.tells(2_000, n(20.0), Cause::Failsafe, Some("a"));
    bench.until(300_000);
    assert!((5..14).contains(&bench.sets().len()), "{:?}", bench.sets());
}
