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
