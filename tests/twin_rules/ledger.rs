//! What is to be kept, and what waits for that (semantics 5.8, 8.5). What the simulator found stands here as a rule.

use truetwin::{
    property::{Class, Property, PropertyName},
    twin::{
        Hears,
        admission::Lasts,
        held::Held,
        input::{Input, Left, Memory},
        ledger::{Asked, Fact, Ledger, is_open},
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Settled},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

fn held_relay() -> Bench {
    Bench::online(Property { class: Class::Held, stable_ms: 0, ..relay() }, OFF)
}

fn asked(bench: &Bench, id: &str) -> Asked {
    let what: PropertyName = "relay".into();
    let first = bench.twin.is_recorded_first(&what);
    Asked { op: op(id), caller: CallerId::new("ann"), what, wish: Some(ON), first }
}

fn keeps_held(facts: &[Fact]) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Held(..)))
}

#[test]
fn s8_5_a_set_point_is_admitted_on_the_disk_before_the_twin_hears_of_it_and_once() {
    let (bench, mut ledger) = (held_relay(), Ledger::default());
    let asked = asked(&bench, "a");
    let first = ledger.first(&bench.twin, &asked);
    assert!(matches!(first, Some((Fact::Admitted(..), Lasts::OverPowerCut))), "{first:?}");
    assert_eq!(ledger.first(&bench.twin, &asked), None);
    assert_eq!(ledger.given_up(&op("b")), None);
}

#[test]
fn s8_5_who_gives_up_before_it_is_kept_was_not_taken_in() {
    let (bench, mut ledger) = (held_relay(), Ledger::default());
    let _waits = ledger.first(&bench.twin, &asked(&bench, "a"));
    assert_eq!(ledger.given_up(&op("a")), Some(Fact::NotTaken(op("a"))));
}

/// Found by the simulator: what a device has never told may be held, and was sent without an admission.
#[test]
fn s8_5_what_a_device_has_not_described_is_admitted_first_too() {
    let bench = Bench::just_started(vec![relay()]);
    assert_eq!(bench.twin.is_recorded_first("relay"), Some(Lasts::OverCrash));
    assert_eq!(Bench::relay().twin.is_recorded_first("relay"), None);
}

/// Found by the simulator: the row of a set point was written with nobody waiting for it, and an answer that came later did not
/// outlive a power cut.
#[test]
fn s8_5_an_answer_about_a_set_point_waits_for_the_set_point_on_the_disk() {
    let (mut bench, mut ledger) = (held_relay(), Ledger::default());
    bench.set(100, "a", ON, 8_000);
    let told = ledger.catch_up(bench.time(100), &bench.twin, &bench.twin.memory(bench.time(100)).in_flight);
    assert!(keeps_held(&told));
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    let (_, settled) = bench.settled("a");
    let (facts, lasts) = ledger.answer(&bench.twin, &CallerId::new("ann"), &settled);
    assert!(keeps_held(&facts) && lasts == Lasts::OverPowerCut, "{facts:?}");
}

/// Found by the simulator: `working` was kept as if it were an end, and stayed so for ever after the hub was killed.
#[test]
fn s5_8_an_answer_that_it_is_at_work_leaves_the_operation_open() {
    let mut bench = Bench::online(Property { expected_ms: 20_000, ..relay() }, OFF);
    let mut ledger = Ledger::default();
    bench.set(100, "a", ON, 1_000);
    let _taken_in = ledger.catch_up(bench.time(100), &bench.twin, &bench.twin.memory(bench.time(100)).in_flight);
    bench.begin(110, "a");
    bench.until(1_000);
    let (_, settled) = bench.settled("a");
    assert_eq!(settled.outcome, Outcome::Working);
    assert!(is_open(&settled));
    let _kept = ledger.answer(&bench.twin, &CallerId::new("ann"), &settled);
    bench.completed(5_000, "a", ON);
    bench.answers(5_500, ON, Some("a"));
    let facts = ledger.catch_up(bench.time(6_000), &bench.twin, &[]);
    let ended = |fact: &Fact| matches!(fact, Fact::Known(_, settled) if settled.outcome == Outcome::Converged);
    assert!(facts.iter().any(ended), "{facts:?}");
}

/// Found by the simulator, seed 220: a hub that was killed twice used the ids of its sendings again.
#[test]
fn s5_8_the_sendings_of_a_held_wish_have_other_ids_in_each_run_of_the_hub() {
    let mut bench = held_relay();
    bench.set(100, "a", ON, 8_000);
    let kept = bench.twin.held()["relay"].kept();
    let now = bench.time(200);
    let runs: Vec<u32> = (1..4).map(|epoch| Held::resumed(kept.clone(), now, epoch).kept().sent).collect();
    assert!(runs.windows(2).all(|pair| pair[1] >= pair[0] + 100), "{runs:?}");
}

/// Found by the simulator, seed 4618: two dozen wishes that were replaced in the queue pushed a confirmed success out of memory,
/// and that it went away was told to nobody.
#[test]
fn s6_3_what_moved_nothing_is_forgotten_before_what_was_confirmed() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    bench.disconnect(1_000);
    for n in 0..80_u64 {
        let ms = 1_100 + n * 20;
        bench.asks(ms, "ann", &format!("t{n}"), Wish::toggle("relay"), ms + 30_000);
        bench.asks(ms + 10, "bob", &format!("s{n}"), Wish::to("relay", ON), ms + 30_000);
        bench.at(ms + 15, Input::Cancel { op: op(&format!("s{n}")) });
    }
    assert_eq!(bench.check(4_000, "a").outcome, Outcome::Converged);
}

#[test]
fn s5_8_what_was_found_open_is_interrupted_and_amended_by_what_the_device_says() {
    let before = held_relay();
    let settled = Settled::unknown(op("a"), before.twin.device().clone(), "relay".into(), Some(ON));
    let left = Left { caller: CallerId::new("ann"), hears: Hears::Gone, settled };
    let mut bench = Bench::unknown(vec![Property { stable_ms: 0, ..relay() }]);
    let memory = Memory { description: before.twin.description().cloned(), in_flight: vec![left], ..Memory::default() };
    bench.at(0, Input::Restored(memory));
    let known = |bench: &Bench| bench.twin.check(bench.time(1_000), Some(&OpId::new("a"))).expect("it is known");
    assert_eq!(known(&bench).outcome, Outcome::Interrupted);
    bench.connect(100);
    bench.hello(200, ON, Some("a"));
    assert!(known(&bench).late_success);
    assert!(bench.sets().is_empty(), "nothing momentary is sent again");
}
