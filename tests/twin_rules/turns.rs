//! 4.5: one in flight, groups that exclude each other, turns by caller, bounded queues.

use truetwin::{
    property::{Property, PropertyName},
    twin::{
        input::{ActionResult, Body, Input, Status},
        wish::Wish,
        words::{Outcome, Refusal},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

fn toggle() -> Wish {
    Wish::toggle("relay")
}

/// Lets the device finish what was sent last.
fn finish(bench: &mut Bench, ms: u64) -> String {
    let sent = bench.sets().last().expect("something was sent").to_string();
    let on = bench.value_of(&sent);
    bench.begin(ms, &sent);
    bench.completed(ms + 30, &sent, on);
    sent
}

#[test]
fn s4_5_callers_are_taken_in_turn_not_in_the_order_of_their_calls() {
    let mut bench = Bench::quick_relay();
    for n in 1..=4 {
        bench.asks(100, "ann", &format!("ann{n}"), toggle(), 30_000);
    }
    bench.asks(101, "bob", "bob1", toggle(), 30_000);
    bench.asks(102, "eve", "eve1", toggle(), 30_000);
    bench.asks(103, "bob", "bob2", toggle(), 30_000);
    let order: Vec<String> = (0..7).map(|n| finish(&mut bench, 200 + n * 100)).collect();
    assert_eq!(order, ["ann1", "bob1", "eve1", "ann2", "bob2", "ann3", "ann4"]);
}

#[test]
fn s4_5_one_who_asks_again_and_again_leaves_room_for_a_single_call() {
    let mut bench = Bench::quick_relay();
    for n in 0..9 {
        bench.asks(100, "ann", &format!("ann{n}"), toggle(), 30_000);
    }
    bench.asks(101, "ann", "more", toggle(), 30_000);
    assert_eq!(bench.refusal("more").1, Refusal::QueueFull { limit: 8 });
    bench.asks(102, "bob", "bob", toggle(), 30_000);
    assert!(bench.replies("bob").is_empty(), "there is room for bob");
    finish(&mut bench, 200);
    bench.asks(240, "ann", "again", toggle(), 30_000);
    assert_eq!(finish(&mut bench, 300), "bob", "and it is his turn");
    assert_eq!(bench.outcome("bob").0, Outcome::Converged);
}

#[test]
fn s4_5_all_together_are_bounded_too() {
    let mut bench = Bench::quick_relay();
    for n in 0..33 {
        bench.asks(100, &format!("c{n}"), &format!("a{n}"), toggle(), 30_000);
    }
    bench.asks(101, "one more", "b", toggle(), 30_000);
    assert_eq!(bench.refusal("b"), (101, Refusal::QueueFull { limit: 32 }));
}

/// A motor with two relays that must never be on together, and a lamp beside it.
fn blind() -> Bench {
    let named = |name: &str| Property { name: name.into(), stable_ms: 0, ..relay() };
    let mut bench = Bench::unknown(vec![named("up"), named("down"), named("lamp")]);
    let group: Vec<PropertyName> = vec!["up".into(), "down".into()];
    bench.exclusive = vec![group];
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench
}

fn completed(bench: &mut Bench, ms: u64, id: &str, property: &str) {
    let status = Status { property: property.into(), ..bench.status(ON) };
    let body = Body::Action { op: op(id), result: ActionResult::Completed, reason: None, eta: None, clamped: false };
    let report = bench.report(vec![status], body);
    bench.at(ms, Input::Heard(report));
}

#[test]
fn s4_5_of_properties_that_exclude_each_other_one_is_driven_at_a_time() {
    let mut bench = blind();
    bench.asks(100, "ann", "a", Wish::to("up", ON), 30_000);
    bench.asks(110, "bob", "b", Wish::to("down", ON), 30_000);
    bench.asks(120, "bob", "c", Wish::to("lamp", ON), 30_000);
    assert_eq!(bench.sets(), [op("a"), op("c")], "the lamp excludes nothing");
    bench.begin(130, "a");
    completed(&mut bench, 400, "a", "up");
    assert_eq!(bench.outcome("a").0, Outcome::Converged);
    assert_eq!(bench.sets(), [op("a"), op("c"), op("b")]);
}

#[test]
fn s4_5_turns_are_taken_over_a_whole_group() {
    let mut bench = blind();
    bench.asks(100, "ann", "up1", Wish::to("up", ON), 30_000);
    bench.asks(110, "ann", "down1", Wish::to("down", ON), 30_000);
    bench.begin(120, "up1");
    bench.asks(130, "bob", "up2", Wish::toggle("up"), 30_000);
    completed(&mut bench, 400, "up1", "up");
    assert_eq!(bench.sets(), [op("up1"), op("up2")], "ann had her turn");
}
