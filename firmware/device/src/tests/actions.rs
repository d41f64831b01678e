//! Actions: what leaves no state, and what must not run twice.

use std::sync::Arc;

use truetwin_wire::{
    Scalar,
    words::{ReasonWord::*, ReportResult::*},
};

use super::rig::{Memory, Rig};
use crate::store::Fate;

fn own(op: &str) -> Arc<str> {
    op.into()
}

fn with_memory(memory: &Memory) -> Rig {
    let mut bench = Rig::bench();
    bench.memory = Some(memory.clone());
    Rig::welcomed_with(bench)
}

#[test]
fn an_action_is_received_executed_and_completed_without_a_state() {
    let mut rig = Rig::welcomed();
    rig.run("op1", "press", &[("ms", Scalar::Integer(200))]);
    assert_eq!(rig.bench.runs, [], "nothing runs while messages are read");
    rig.pass(0);
    rig.pass(10);
    let reports = rig.reports();
    assert_eq!(reports.iter().map(|r| r.result).collect::<Vec<_>>(), [Received, Executing, Completed]);
    assert!(reports.iter().all(|r| *r.action == *"press" && r.property.is_none() && r.status.is_empty()));
    assert_eq!(rig.bench.runs, [(0, r#"{"ms":200}"#.to_owned())]);
}

#[test]
fn s5_1_a_repeated_op_of_an_action_runs_it_once() {
    let mut rig = Rig::welcomed();
    for _ in 0..2 {
        rig.run("op1", "press", &[]);
        rig.pass(0);
        rig.pass(10);
    }
    assert_eq!(rig.bench.runs.len(), 1);
    assert_eq!(rig.results().last(), Some(&(own("op1"), Completed, None, true)));
}

#[test]
fn an_action_that_does_not_end_is_stuck_and_one_that_fails_says_why() {
    let mut rig = Rig::welcomed();
    rig.bench.action_end = None;
    rig.run("op1", "press", &[]);
    rig.pass(0);
    rig.pass(500);
    assert_eq!(rig.results().last(), Some(&(own("op1"), Failed, Some(Stuck), false)));
    rig.bench.action_end = Some(Err(Power));
    rig.run("op2", "press", &[]);
    rig.pass(0);
    rig.pass(10);
    assert_eq!(rig.results().last(), Some(&(own("op2"), Failed, Some(Power), false)));
}

#[test]
fn the_same_action_twice_runs_one_after_the_other() {
    let mut rig = Rig::welcomed();
    rig.bench.action_end = None;
    rig.run("op1", "press", &[]);
    rig.run("op2", "press", &[]);
    rig.pass(0);
    assert_eq!(rig.bench.runs.len(), 1, "actions never take each other's place");
    rig.bench.action_end = Some(Ok(()));
    rig.pass(10);
    assert_eq!(rig.bench.runs.len(), 2);
}

#[test]
fn an_action_that_nobody_can_see_ends_with_executing() {
    let mut rig = Rig::welcomed();
    rig.run("op1", "mute", &[]);
    rig.pass(0);
    rig.pass(1_000);
    assert_eq!(rig.results(), [(own("op1"), Received, None, false), (own("op1"), Executing, None, false)]);
}

#[test]
fn the_intent_is_kept_before_the_action_and_its_end_after_it() {
    let mut rig = with_memory(&Memory::default());
    rig.bench.action_end = None;
    rig.run("op1", "pulse", &[]);
    rig.pass(0);
    assert_eq!(rig.bench.memory.as_ref().unwrap().kept, Some(("op1".to_owned(), Fate::Begun)));
    rig.bench.action_end = Some(Ok(()));
    rig.pass(10);
    assert_eq!(rig.bench.memory.as_ref().unwrap().kept, Some(("op1".to_owned(), Fate::Completed)));
    rig.run("op2", "press", &[]);
    rig.pass(0);
    rig.pass(10);
    assert_eq!(rig.bench.memory.as_ref().unwrap().writes, 2, "flash wears: only what must not run twice");
}

#[test]
fn a_non_repeatable_action_does_not_run_again_after_a_reboot() {
    for (fate, expected) in [
        (Fate::Begun, (Failed, Some(Interrupted))),
        (Fate::Completed, (Completed, None)),
        (Fate::Failed, (Failed, None)),
    ] {
        let mut rig = with_memory(&Memory { kept: Some(("op1".to_owned(), fate)), ..Memory::default() });
        rig.run("op1", "pulse", &[]);
        rig.pass(0);
        assert_eq!(rig.results(), [(own("op1"), expected.0, expected.1, true)]);
        assert_eq!(rig.bench.runs, []);
    }
}

#[test]
fn without_a_working_memory_what_must_not_run_twice_does_not_run() {
    let mut rig = with_memory(&Memory { worn: true, ..Memory::default() });
    rig.run("op1", "pulse", &[]);
    rig.run("op2", "press", &[]);
    rig.pass(0);
    assert!(rig.results().contains(&(own("op1"), Rejected, Some(Unsupported), false)));
    assert_eq!(rig.bench.runs, [(0, "{}".to_owned())], "what may run twice does");
    let mut rig = with_memory(&Memory::default());
    rig.bench.memory.as_mut().unwrap().worn = true;
    rig.run("op1", "pulse", &[]);
    rig.pass(0);
    assert_eq!(rig.bench.runs, [], "worn out in the middle of a run");
}
