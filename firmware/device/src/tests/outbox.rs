//! The ends of operations reach the hub, whatever happens to the connection.

use std::sync::Arc;

use truetwin_wire::words::{ReasonWord::*, ReportResult::*};

use super::rig::{Mechanics, Rig};

fn own(op: &str) -> Arc<str> {
    op.into()
}

/// Done, and the reports handed over.
fn done() -> Rig {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(10);
    rig
}

#[test]
fn s5_3_an_end_that_was_not_acknowledged_is_told_again_in_the_next_session() {
    let mut rig = done();
    rig.events();
    rig.again("s2");
    rig.pass(0);
    let reports = rig.reports();
    assert_eq!((reports.len(), &*reports[0].op, reports[0].result, reports[0].dup), (1, "op1", Completed, false));
    rig.pass(10);
    assert_eq!(rig.events(), [], "once in a session");
}

#[test]
fn s5_3_an_end_that_was_acknowledged_is_not_told_again() {
    let mut rig = done();
    let last = rig.events().pop().unwrap().seq;
    rig.machine.acknowledged(last);
    rig.again("s2");
    rig.pass(0);
    assert_eq!(rig.events(), []);
}

#[test]
fn s5_3_an_end_without_a_connection_is_told_in_the_next_session() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Stuck;
    rig.switch("op1", true);
    rig.pass(0);
    rig.machine.disconnected(rig.now_ms);
    rig.pass(400);
    rig.again("s2");
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Failed, Some(Stuck), false)]);
}

#[test]
fn s5_3_what_still_moves_says_so_to_the_next_session() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    rig.again("s2");
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Executing, None, false)]);
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, false)]);
}

#[test]
fn an_end_that_finds_no_room_is_told_when_there_is_room() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    for n in 0..100 {
        rig.query(&format!("q{n}"), None);
    }
    rig.bench.arrive();
    rig.pass(10);
    rig.events();
    rig.pass(10);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, false)]);
}
