//! 4.6: relative wishes become absolute on the hub.

use truetwin::{
    property::{Kind, Property, Value},
    twin::{
        input::{ActionResult, Command},
        wish::Wish,
        words::{Outcome, Reason, Refusal},
    },
};

use crate::bench::{Bench, OFF, ON, level, op, relay};

/// A dimmer that has greeted at 0 with this level.
fn dimmer(at: f64) -> Bench {
    Bench::online(level(), Value::Number(at))
}

fn by(amount: f64) -> Wish {
    Wish::by("level", amount)
}

/// The values that were sent, in order.
fn sent(bench: &Bench) -> Vec<Value> {
    let value = |c: Command| if let Command::Set { value, .. } = c { Some(value) } else { None };
    bench.commands().into_iter().filter_map(value).collect()
}

fn done(bench: &mut Bench, ms: u64, id: &str, at: f64) {
    bench.begin(ms, id);
    bench.completed(ms + 100, id, Value::Number(at));
    assert_eq!(bench.outcome(id).0, Outcome::Converged);
}

#[test]
fn s4_6_ten_more_twice_is_twenty_more_and_none_joins_another() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    bench.asks(110, "bob", "b", by(10.0), 30_000);
    done(&mut bench, 120, "a", 30.0);
    done(&mut bench, 300, "b", 40.0);
    assert_eq!(sent(&bench), [Value::Number(30.0), Value::Number(40.0)]);
    assert_eq!(bench.settled("b").1.wish, Some(Value::Number(40.0)));
}

#[test]
fn s4_6_two_toggles_end_where_they_began_and_a_toggle_follows_a_wish_before_it() {
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", Wish::to("relay", ON), 30_000);
    bench.asks(110, "bob", "b", Wish::toggle("relay"), 30_000);
    bench.asks(120, "bob", "c", Wish::toggle("relay"), 30_000);
    for (ms, id, value) in [(130, "a", ON), (300, "b", OFF), (500, "c", ON)] {
        bench.begin(ms, id);
        bench.completed(ms + 100, id, value);
    }
    assert_eq!(sent(&bench), [ON, OFF, ON]);
    assert_eq!(bench.outcome("a").0, Outcome::Converged, "a relative wish supersedes nothing");
}

#[test]
fn s4_6_of_two_words_the_other_is_meant() {
    let mode = Property { kind: Kind::Enum, values: vec!["Eco".into(), "Boost".into()], stable_ms: 0, ..relay() };
    let mut bench = Bench::online(mode, Value::Text("Eco".into()));
    bench.asks(100, "ann", "a", Wish::toggle("relay"), 30_000);
    assert_eq!(sent(&bench), [Value::Text("Boost".into())]);
}

#[test]
fn s4_6_a_state_that_is_not_fresh_is_asked_for_first() {
    let mut bench = dimmer(20.0);
    bench.asks(20_000, "ann", "a", by(10.0), 30_000);
    assert!(bench.sets().is_empty());
    bench.answers(20_010, Value::Number(50.0), None);
    assert_eq!(sent(&bench), [Value::Number(60.0)]);
}

#[test]
fn s4_6_what_is_not_told_is_refused_and_nothing_was_sent() {
    let mut bench = dimmer(20.0);
    bench.asks(20_000, "ann", "a", by(10.0), 30_000);
    bench.until(25_000);
    assert_eq!(bench.refusal("a"), (21_000, Refusal::StateUnknown { property: "level".into() }));
    assert!(bench.sets().is_empty());
}

#[test]
fn s4_6_after_an_end_that_nobody_knows_it_starts_from_what_the_device_says_then() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    bench.asks(110, "bob", "b", by(10.0), 30_000);
    bench.begin(120, "a");
    bench.until(1_140);
    assert_eq!(bench.outcome("a").0, Outcome::TimedOut);
    assert_eq!(bench.sets(), [op("a")], "20 was said before a began");
    bench.answers(1_150, Value::Number(20.0), None);
    assert_eq!(sent(&bench), [Value::Number(30.0), Value::Number(30.0)]);
}

#[test]
fn s4_6_after_a_failure_it_starts_from_where_that_ended() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    bench.asks(110, "bob", "b", by(10.0), 30_000);
    bench.begin(120, "a");
    let stuck = bench.status(Value::Number(25.0));
    let report = bench.action("a", ActionResult::Failed, vec![stuck], Some(Reason::Stuck));
    bench.at(200, truetwin::twin::input::Input::Heard(report));
    assert_eq!(sent(&bench), [Value::Number(30.0), Value::Number(35.0)]);
}

#[test]
fn s4_6_beyond_the_range_it_goes_to_the_end_and_says_so() {
    for (from, amount, to) in [(95.0, 10.0, 100.0), (5.0, -50.0, 0.0)] {
        let mut bench = dimmer(from);
        bench.asks(100, "ann", "a", by(amount), 30_000);
        done(&mut bench, 110, "a", to);
        let (_, settled) = bench.settled("a");
        assert_eq!((settled.wish, settled.limited), (Some(Value::Number(to)), true));
    }
    let mut bench = dimmer(80.0);
    bench.asks(100, "ann", "a", by(20.0), 30_000);
    done(&mut bench, 110, "a", 100.0);
    assert!(!bench.settled("a").1.limited);
}

#[test]
fn s4_6_less_than_a_step_is_a_step_and_a_reading_beside_the_wish_does_not_drift() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(1.0), 30_000);
    done(&mut bench, 110, "a", 24.0);
    bench.asks(300, "ann", "b", by(10.0), 30_000);
    done(&mut bench, 310, "b", 36.0);
    bench.asks(500, "ann", "c", by(-1.0), 30_000);
    done(&mut bench, 510, "c", 29.0);
    let values = [25.0, 35.0, 30.0].map(Value::Number);
    assert_eq!(sent(&bench), values);
}

#[test]
fn s4_6_without_steps_it_goes_on_from_the_wish_that_was_confirmed_not_from_the_reading_beside_it() {
    let mut bench = Bench::online(Property { step: None, ..level() }, Value::Number(20.0));
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    done(&mut bench, 110, "a", 29.0);
    bench.asks(300, "ann", "b", by(10.0), 30_000);
    assert_eq!(sent(&bench), [30.0, 40.0].map(Value::Number));
}

#[test]
fn s4_6_a_wish_for_a_value_takes_the_place_of_relative_ones() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    bench.begin(110, "a");
    bench.asks(150, "bob", "b", by(10.0), 30_000);
    bench.asks(160, "eve", "c", Wish::to("level", Value::Number(80.0)), 30_000);
    for id in ["a", "b"] {
        assert_eq!(bench.settled(id).1.superseded_by, Some(Value::Number(80.0)));
    }
    // One for the value that the relative one goes to waits behind it.
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", by(10.0), 30_000);
    bench.begin(110, "a");
    bench.asks(150, "bob", "b", Wish::to("level", Value::Number(30.0)), 30_000);
    assert!(bench.replies("a").is_empty());
    bench.completed(200, "a", Value::Number(30.0));
    assert_eq!(bench.sets(), [op("a"), op("b")]);
}

#[test]
fn s4_6_what_cannot_be_wished_so_is_refused_at_once() {
    let mut bench = dimmer(20.0);
    bench.asks(100, "ann", "a", Wish::toggle("level"), 30_000);
    bench.asks(100, "ann", "nan", by(f64::NAN), 30_000);
    assert!(matches!(bench.refusal("a").1, Refusal::InvalidValue { .. }));
    assert!(matches!(bench.refusal("nan").1, Refusal::InvalidValue { .. }));
    let mut bench = Bench::quick_relay();
    bench.asks(100, "ann", "a", Wish::by("relay", 1.0), 30_000);
    assert!(matches!(bench.refusal("a").1, Refusal::InvalidValue { .. }));
    let three = ["a", "b", "c"].map(Into::into).to_vec();
    let mut bench = Bench::online(Property { kind: Kind::Enum, values: three, ..relay() }, Value::Text("a".into()));
    bench.asks(100, "ann", "a", Wish::toggle("relay"), 30_000);
    assert!(matches!(bench.refusal("a").1, Refusal::InvalidValue { .. }));
}

#[test]
fn s4_6_while_the_device_is_asked_the_limit_of_the_caller_counts() {
    let mut bench = dimmer(20.0);
    bench.asks(20_000, "ann", "a", by(10.0), 20_400);
    bench.until(25_000);
    assert!(matches!(bench.refusal("a"), (20_350, Refusal::DeadlineTooShort { .. })));
}
