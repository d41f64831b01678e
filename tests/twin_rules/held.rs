//! Held wishes (semantics 2.6, 5.5, 6.2).

use truetwin::{
    property::{Class, Property, Value},
    twin::{
        input::{Cause, Command, Effect, Input},
        wish::{CallerId, Wish},
        words::{HeldState, Outcome, Reason, Refusal, Stage},
    },
};

use std::time::Duration;

use crate::bench::{Bench, OFF, ON, level, op, relay};

fn n(value: f64) -> Value {
    Value::Number(value)
}

fn heater() -> Property {
    Property { name: "target".into(), class: Class::Held, ..level() }
}

fn online() -> Bench {
    Bench::online(heater(), n(20.0))
}

/// How the held wish stands.
fn state(bench: &Bench, ms: u64) -> Option<(Value, HeldState)> {
    bench.twin.state(bench.time(ms)).held.first().map(|held| (held.value.clone(), held.state))
}

fn sent(bench: &Bench) -> Vec<(String, Value)> {
    let set = |c: Command| if let Command::Set { op, value, .. } = c { Some((op.to_string(), value)) } else { None };
    bench.commands().into_iter().filter_map(set).collect()
}

/// The device carries out whatever it was sent last.
fn obeys(bench: &mut Bench, ms: u64) {
    let (id, value) = sent(bench).pop().expect("something was sent");
    bench.begin(ms, &id);
    bench.completed(ms + 100, &id, value);
}

#[test]
fn s2_6_a_momentary_wish_ends_with_its_operation_and_a_held_one_does_not() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(state(&bench, 300), Some((n(50.0), HeldState::Met)));
    let mut bench = Bench::online(level(), n(20.0));
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    assert_eq!(state(&bench, 300), None);
}

#[test]
fn s6_2_a_wish_that_came_before_the_device_ever_greeted_is_held_as_any_other() {
    let waiting = |valid_for: Option<Duration>| {
        let mut bench = Bench::just_started(vec![heater()]);
        bench.connect(0);
        let wished = Wish { valid_for, ..Wish::to("target", n(50.0)) };
        let answer_by = bench.time(8_000);
        bench.at(10, crate::bench::wish("a", "ann", wished, answer_by));
        assert_eq!(state(&bench, 20), None, "nobody knows yet what it is");
        bench.hello(30, n(20.0), None);
        obeys(&mut bench, 40);
        assert_eq!(bench.outcome("a").0, Outcome::Converged);
        bench
    };
    let mut bench = waiting(None);
    assert_eq!(state(&bench, 300), Some((n(50.0), HeldState::Met)));
    // Gone and back with another value: it is brought back.
    bench.disconnect(1_000);
    bench.connect(2_000);
    bench.hello_of(2_010, vec![bench.status(n(20.0))], Cause::Boot, None);
    bench.until(3_000);
    assert_eq!(sent(&bench).pop().map(|(_, value)| value), Some(n(50.0)));
    // For as long as its caller said, and no longer.
    let mut bench = waiting(Some(Duration::from_secs(60)));
    assert_eq!(state(&bench, 300), Some((n(50.0), HeldState::Met)));
    bench.until(100_000);
    assert_eq!(state(&bench, 100_000), None);
}

#[test]
fn s6_2_a_relative_set_point_is_held_for_as_long_as_its_caller_said() {
    let mut bench = online();
    let wished = Wish { valid_for: Some(Duration::from_secs(60)), ..Wish::by("target", 10.0) };
    let answer_by = bench.time(8_100);
    bench.at(100, crate::bench::wish("a", "ann", wished, answer_by));
    obeys(&mut bench, 110);
    assert_eq!(state(&bench, 300), Some((n(30.0), HeldState::Met)));
    bench.until(100_000);
    assert_eq!(state(&bench, 100_000), None);
}

#[test]
fn s6_2_a_held_wish_that_failed_is_sent_again_after_growing_pauses() {
    let mut bench = online();
    bench.set(0, "a", n(50.0), 8_000);
    bench.until(1_000_000);
    let at: Vec<u64> = bench
        .effects
        .iter()
        .filter(|(_, e)| matches!(e, Effect::Send(Command::Set { .. })))
        .map(|(ms, _)| *ms)
        .collect();
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] < 5_000 && at.len() < 20, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap < 303_000), "{gaps:?}");
    assert!(gaps.last() > gaps.first(), "{gaps:?}");
    assert_eq!(bench.replies("a").len(), 1, "its caller hears once");
    let ids: std::collections::BTreeSet<String> = sent(&bench).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), at.len(), "each sending is an operation of its own");
    assert!(ids.iter().all(|id| id.len() <= 12), "{ids:?}");
    assert_eq!(state(&bench, 1_000_000), Some((n(50.0), HeldState::Pursued)));
}

#[test]
fn s6_2_an_attempt_that_failed_says_that_it_is_tried_again_and_its_caller_is_owed_the_end() {
    let mut bench = online();
    bench.set(0, "a", n(50.0), 8_000);
    bench.until(1_900);
    let (_, settled) = bench.settled("a");
    assert_eq!((settled.outcome, settled.kept), (Outcome::TimedOut, true));
    assert_eq!(sent(&bench).len(), 2, "it is sent again");
    assert!(bench.check(1_900, "a").kept);
    obeys(&mut bench, 1_910);
    let owed: Vec<_> = bench
        .effects
        .iter()
        .filter_map(|(_, e)| if let Effect::Owed { correction, .. } = e { Some(correction) } else { None })
        .map(|c| (c.operation.as_str(), c.settled.outcome, c.settled.late_success, c.settled.kept))
        .collect();
    assert_eq!(owed, [("a", Outcome::TimedOut, true, false)]);
    assert!(bench.check(4_000, "a").late_success);
    // What another value has taken the place of is not tried again.
    bench.set(5_000, "b", n(60.0), 13_000);
    bench.set(5_010, "c", n(70.0), 13_000);
    assert!(!bench.settled("b").1.kept);
}

#[test]
fn s6_2_the_pauses_are_the_same_for_the_same_operation_and_others_for_another() {
    let times = |id: &str| {
        let mut bench = online();
        bench.set(0, id, n(50.0), 8_000);
        bench.until(100_000);
        let sets = bench.effects.iter().filter(|(_, e)| matches!(e, Effect::Send(Command::Set { .. })));
        sets.map(|(ms, _)| *ms).collect::<Vec<u64>>()
    };
    assert_eq!(times("a"), times("a"));
    assert_ne!(times("a"), times("b"));
}

#[test]
fn s6_2_what_the_device_lost_in_a_reboot_is_sent_again_on_its_hello() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    bench.reboot("boot2");
    bench.connect(5_000);
    bench.hello(5_010, n(20.0), None);
    assert_eq!(sent(&bench).len(), 2);
    obeys(&mut bench, 5_020);
    assert_eq!(state(&bench, 5_300), Some((n(50.0), HeldState::Met)));
}

#[test]
fn s6_2_whoever_turns_the_knob_has_the_last_word() {
    for cause in [Cause::Local, Cause::Unknown, Cause::Periodic] {
        let mut bench = online();
        bench.set(100, "a", n(50.0), 8_000);
        obeys(&mut bench, 110);
        bench.tells(1_000, n(70.0), cause, None);
        bench.until(100_000);
        assert_eq!(sent(&bench).len(), 1, "{cause:?}: not sent again");
        assert_eq!(state(&bench, 100_000), Some((n(70.0), HeldState::LocalOverride)));
        assert!(bench.has(&Effect::LocalOverride { property: "target".into() }));
    }
}

#[test]
fn s6_2_what_the_device_does_by_itself_for_want_of_the_hub_is_no_persons_wish() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    bench.tells(1_000, n(5.0), Cause::Failsafe, None);
    bench.until(1_100);
    assert_eq!(sent(&bench).len(), 2);
}

#[test]
fn s6_2_a_newer_wish_takes_the_place_of_an_older_one() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    bench.set(1_000, "b", n(60.0), 9_000);
    obeys(&mut bench, 1_010);
    assert_eq!(state(&bench, 2_000), Some((n(60.0), HeldState::Met)));
}

#[test]
fn s2_1_a_held_wish_ends_when_it_is_not_valid_any_more() {
    let mut bench = online();
    let valid = Wish { valid_for: Some(Duration::from_secs(60)), ..Wish::to("target", n(50.0)) };
    let answer_by = bench.time(8_000);
    bench.at(100, Input::Set { op: op("a"), caller: CallerId::new("me"), wish: valid, answer_by });
    obeys(&mut bench, 110);
    assert!(state(&bench, 60_000).is_some());
    bench.until(60_100);
    assert_eq!(state(&bench, 60_100), None);
    bench.reboot("boot2");
    bench.connect(70_000);
    bench.hello(70_010, n(20.0), None);
    assert_eq!(sent(&bench).len(), 1);
}

#[test]
fn s5_5_a_held_wish_for_a_device_that_is_away_is_stored_and_sent_when_it_comes() {
    let mut bench = online();
    bench.disconnect(1_000);
    bench.set(100_000, "a", n(50.0), 108_000);
    let (ms, settled) = bench.settled("a");
    assert_eq!((ms, settled.outcome, settled.reason), (100_000, Outcome::Working, Some(Reason::Offline)));
    assert!(settled.stage < Stage::WaitingBroker, "nothing was sent");
    assert_eq!(bench.check(150_000, "a").reason, Some(Reason::Offline));
    assert_eq!(state(&bench, 150_000), Some((n(50.0), HeldState::Offline)));
    bench.connect(200_000);
    bench.hello(200_010, n(20.0), None);
    assert_eq!(sent(&bench), [("a".to_owned(), n(50.0))]);
    obeys(&mut bench, 200_020);
    assert_eq!(bench.check(201_000, "a").outcome, Outcome::Converged);
    assert_eq!(bench.replies("a").len(), 1);
}

#[test]
fn s5_5_a_stored_wish_wins_over_what_was_turned_while_nobody_saw() {
    let mut bench = online();
    bench.disconnect(1_000);
    bench.set(100_000, "a", n(50.0), 108_000);
    bench.connect(200_000);
    bench.hello(200_010, n(70.0), None);
    assert_eq!(sent(&bench), [("a".to_owned(), n(50.0))]);
}

#[test]
fn s6_3_a_stored_wish_that_gives_way_to_a_newer_one_is_owed_to_its_caller() {
    let mut bench = online();
    bench.disconnect(1_000);
    bench.set(100_000, "a", n(50.0), 108_000);
    bench.set(101_000, "b", n(60.0), 109_000);
    bench.set(102_000, "c", n(60.0), 110_000);
    let told = bench.check(103_000, "a");
    assert_eq!((told.outcome, told.superseded_by), (Outcome::Superseded, Some(n(60.0))));
    assert_eq!(bench.owed().len(), 1, "it was told that its wish is to come");
    bench.connect(200_000);
    bench.hello(200_010, n(20.0), None);
    assert_eq!(sent(&bench), [("b".to_owned(), n(60.0))], "once for both who wish it");
    obeys(&mut bench, 200_020);
    for id in ["b", "c"] {
        assert_eq!(bench.check(201_000, id).outcome, Outcome::Converged, "{id}");
        assert_eq!(bench.replies(id).len(), 1);
    }
}

#[test]
fn s5_5_a_held_wish_that_the_device_cannot_take_is_refused_though_it_is_away() {
    let mut bench = online();
    bench.disconnect(1_000);
    bench.set(100_000, "a", n(500.0), 108_000);
    assert!(matches!(bench.refusal("a").1, Refusal::InvalidValue { .. }));
    assert_eq!(state(&bench, 100_100), None);
}

#[test]
fn s6_2_a_held_wish_whose_caller_was_refused_is_none() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 200);
    assert!(matches!(bench.refusal("a").1, Refusal::DeadlineTooShort { .. }));
    bench.until(10_000);
    assert!(sent(&bench).is_empty());
    assert_eq!(state(&bench, 10_000), None);
}

#[test]
fn s2_7_a_held_wish_that_does_not_fit_any_more_is_blocked_and_fits_again_later() {
    let mut bench = online();
    bench.set(100, "a", n(80.0), 8_000);
    obeys(&mut bench, 110);
    bench.properties = vec![Property { max: Some(60.0), ..heater() }];
    bench.reboot("boot2");
    bench.connect(1_000);
    bench.hello(1_010, n(20.0), None);
    bench.until(100_000);
    assert_eq!(sent(&bench).len(), 1, "never sent");
    assert_eq!(state(&bench, 100_000), Some((n(80.0), HeldState::Blocked)));
    bench.properties = vec![heater()];
    bench.reboot("boot3");
    bench.connect(200_000);
    bench.hello(200_010, n(20.0), None);
    assert_eq!(sent(&bench).len(), 2);
}

#[test]
fn s5_8_held_wishes_outlive_a_crashed_actor() {
    let mut bench = online();
    bench.set(100, "a", n(50.0), 8_000);
    obeys(&mut bench, 110);
    let memory = bench.twin.memory(bench.time(1_000));
    bench.twin = truetwin::twin::Twin::new(
        truetwin::property::DeviceId::new("lamp").expect("an id"),
        truetwin::twin::settings::Settings::new(bench.time(0)),
    );
    bench.at(1_000, Input::Restored(memory));
    assert_eq!(state(&bench, 1_100), Some((n(50.0), HeldState::Met)));
}

#[test]
fn s6_2_its_time_to_begin_counts_from_its_turn() {
    let slow = Property { class: Class::Held, stable_ms: 0, min_interval_ms: 60_000, ..relay() };
    let mut bench = Bench::online(slow, OFF);
    bench.converge(100, "a", ON);
    bench.tells(1_000, OFF, Cause::Failsafe, Some("a"));
    bench.until(59_000);
    assert_eq!(bench.sets(), [op("a")], "not before the shortest time between two drives is over");
    bench.until(61_000);
    let ttl = |c: Command| if let Command::Set { ttl, .. } = c { Some(ttl.as_millis()) } else { None };
    let ttls: Vec<u128> = bench.commands().into_iter().filter_map(ttl).collect();
    assert_eq!(ttls, [1_700, 1_700]);
}
