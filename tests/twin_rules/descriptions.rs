//! Descriptions that change at run time, their limits, and what they declare (semantics 2.7, 3.11, 6.4).

use truetwin::{
    property::{Failsafe, Property, Role, Terms},
    twin::{
        ChangedBy,
        input::{Cause, Command},
        settings::Settings,
        words::Refusal,
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

fn lock(accepted: bool) -> Property {
    let terms = Terms { accepted, ..Terms::default() };
    Property { name: "lock".into(), role: Role::Lock, terms, ..relay() }
}

/// A lamp that comes back with more than it had.
fn grown(more: Property) -> Bench {
    let mut bench = Bench::relay();
    bench.properties = vec![more, relay()];
    bench.connect(1_000);
    bench.hello(1_010, OFF, None);
    bench
}

#[test]
fn s2_7_a_lock_that_appears_on_a_known_lamp_is_read_only_until_the_owner_accepts_it() {
    let mut bench = grown(lock(false));
    bench.set(2_000, "a", ON, 10_000);
    assert_eq!(bench.refusal("a").1, Refusal::NotAccepted { property: "lock".into() });
    assert!(bench.sets().is_empty());
    // Nor by coming back once more.
    bench.connect(3_000);
    bench.hello(3_010, OFF, None);
    bench.set(4_000, "b", ON, 12_000);
    assert!(matches!(bench.refusal("b").1, Refusal::NotAccepted { .. }));
    let mut bench = grown(lock(true));
    bench.set(2_000, "a", ON, 10_000);
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s2_7_what_was_harmless_and_calls_itself_a_heater_now_is_new() {
    let mut bench = Bench::relay();
    bench.properties = vec![Property { role: Role::Heater, ..relay() }];
    bench.connect(1_000);
    bench.hello(1_010, OFF, None);
    bench.set(2_000, "a", ON, 10_000);
    assert!(matches!(bench.refusal("a").1, Refusal::NotAccepted { .. }));
}

#[test]
fn s2_7_a_harmless_property_may_appear_and_a_known_lock_stays_one() {
    let mut bench = grown(Property { name: "second".into(), ..relay() });
    bench.set(2_000, "a", ON, 10_000);
    assert_eq!(bench.sets(), [op("a")]);
    let mut bench = Bench::online(lock(false), OFF);
    bench.connect(1_000);
    bench.hello(1_010, OFF, None);
    bench.set(2_000, "a", ON, 10_000);
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s6_4_the_hub_sends_nothing_for_a_failsafe() {
    let failsafe = Some(Failsafe { value: ON, after_ms: 1_000 });
    let mut bench = Bench::online(Property { terms: Terms { failsafe, ..Terms::default() }, ..relay() }, OFF);
    bench.until(60_000);
    bench.disconnect(61_000);
    bench.until(120_000);
    assert!(bench.sets().is_empty());
}

fn reads(bench: &Bench) -> usize {
    bench.commands().iter().filter(|c| matches!(c, Command::GetState { property: None, .. })).count()
}

/// A relay whose hub reads again after 60 s.
fn reconciled() -> Bench {
    let start = std::time::Instant::now() + std::time::Duration::from_secs(3_600);
    let mut settings = Settings::new(start - std::time::Duration::from_secs(3_600));
    settings.reconcile = std::time::Duration::from_secs(60);
    let mut bench = Bench::with(vec![relay()], settings, start);
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench
}

#[test]
fn s3_11_a_device_that_tells_nothing_is_asked_now_and_then() {
    let mut bench = reconciled();
    bench.until(59_999);
    assert_eq!(reads(&bench), 0);
    bench.until(60_000);
    assert_eq!(reads(&bench), 1);
    bench.until(119_999);
    assert_eq!(reads(&bench), 1, "once, though it did not answer");
    bench.tells(100_000, OFF, Cause::Periodic, None);
    bench.until(159_999);
    assert_eq!(reads(&bench), 1, "one that tells its values by itself is not asked");
    bench.disconnect(160_000);
    bench.until(600_000);
    assert!(reads(&bench) <= 2, "nor one that is away");
}

#[test]
fn s3_11_a_revert_that_nobody_told_is_found() {
    let mut bench = reconciled();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.completed(400, "a", ON);
    bench.answers(620, ON, Some("a"));
    bench.until(61_000);
    bench.answers(61_010, OFF, Some("a"));
    assert!(bench.check(61_020, "a").reverted);
}

#[test]
fn s2_1_who_changed_a_value_last_is_known() {
    let mut bench = Bench::quick_relay();
    bench.converge(100, "a", ON);
    assert_eq!(bench.twin.last_changed_by("relay"), Some(&ChangedBy::Operation(op("a"))));
    bench.tells(1_000, ON, Cause::Periodic, None);
    assert_eq!(bench.twin.last_changed_by("relay"), Some(&ChangedBy::Operation(op("a"))), "telling is no changing");
    bench.tells(2_000, OFF, Cause::Local, None);
    assert_eq!(bench.twin.last_changed_by("relay"), Some(&ChangedBy::Cause(Cause::Local)));
}
