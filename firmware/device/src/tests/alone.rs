//! What a device does by itself: safe levels without the hub, what it notices.

use truetwin_wire::{
    Scalar,
    device::Failsafe,
    words::{CauseWord, ReasonWord::*, ReportResult::*},
};

use super::rig::{Bench, Mechanics, Rig};
use crate::Start;

static OFF: Scalar = Scalar::Bool(false);

fn bench() -> Bench {
    let mut bench = Rig::bench();
    bench.specs[0].failsafe = Some(Failsafe { value: &OFF, after_ms: 60_000 });
    bench
}

fn on() -> Rig {
    let mut rig = Rig::welcomed_with(bench());
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(10);
    rig.events();
    rig
}

#[test]
fn s6_4_an_output_goes_to_its_safe_level_when_the_hub_has_been_gone() {
    let mut rig = on();
    rig.pass(100_000);
    assert_eq!(rig.bench.drives, 1, "a session without commands is no absence");
    rig.machine.disconnected(rig.now_ms);
    assert_eq!(rig.machine.deadline(&rig.bench), Some(rig.now_ms + 60_000));
    rig.pass(59_999);
    assert_eq!(rig.bench.now[0], Scalar::Bool(true));
    rig.pass(1);
    assert_eq!((rig.bench.now[0].clone(), rig.bench.drives), (Scalar::Bool(false), 2));
    rig.bench.now[0] = Scalar::Bool(true); // somebody wants it on all the same
    rig.pass(100_000);
    assert_eq!(rig.bench.drives, 2, "once in each absence");
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Failsafe);
    rig.session = "s2";
    rig.welcome("hub", 7);
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Periodic);
}

#[test]
fn s6_4_a_hub_that_comes_back_in_time_changes_nothing() {
    let mut rig = on();
    rig.machine.disconnected(rig.now_ms);
    rig.pass(59_000);
    rig.again("s2");
    rig.pass(59_000);
    assert_eq!(rig.bench.drives, 1);
}

#[test]
fn s6_4_a_hello_that_nobody_answers_is_no_hub() {
    let mut rig = on();
    rig.machine.disconnected(rig.now_ms);
    rig.pass(30_000);
    rig.connect();
    rig.pass(30_000);
    assert_eq!(rig.bench.drives, 2);
}

#[test]
fn s6_4_after_a_start_the_time_runs_from_the_start() {
    let mut rig = Rig::with(Start::Clean, bench());
    rig.now_ms = 59_999;
    rig.pass(0);
    assert_eq!(rig.bench.drives, 0);
    rig.pass(1);
    assert_eq!(rig.bench.drives, 1);
}

#[test]
fn s6_4_what_moves_is_interrupted_by_the_safe_level() {
    let mut rig = Rig::welcomed_with(bench());
    rig.bench.mechanics = Mechanics::Stuck;
    rig.switch("op1", true);
    rig.pass(0);
    rig.machine.disconnected(rig.now_ms);
    rig.events();
    rig.now_ms += 60_000;
    rig.pass(0);
    assert_eq!(rig.bench.drives, 2, "it may still arrive: it is told the safe level all the same");
    rig.again("s2");
    rig.pass(0);
    assert_eq!(rig.results(), [("op1".into(), Failed, Some(Interrupted), false)]);
}

#[test]
fn what_it_notices_is_told_unasked_with_the_cause() {
    let mut bench = Rig::bench();
    bench.noticed = Some(CauseWord::Local);
    let mut rig = Rig::welcomed_with(bench);
    rig.pass(0);
    rig.events();
    rig.bench.now[0] = Scalar::Bool(true);
    rig.pass(49);
    assert_eq!(rig.events(), []);
    rig.pass(1);
    let state = rig.state();
    assert_eq!((state.op, state.cause), (None, CauseWord::Local));
    assert_eq!(state.status[0].1, Scalar::Bool(true));
    rig.machine.disconnected(rig.now_ms);
    rig.pass(50);
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Local, "what was noticed while nobody could be told");
    rig.bench.noticed = Some(CauseWord::Periodic);
    rig.pass(50);
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Local, "a drift does not hide that a person was there");
}
