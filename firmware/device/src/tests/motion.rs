//! What a device of level 3 does while something moves.

use std::sync::Arc;

use truetwin_wire::{
    Scalar,
    hub::decode_event,
    words::{OnWithdraw, ReasonWord::*, ReportResult::*},
};

use super::rig::{Mechanics, Rig};

fn own(op: &str) -> Arc<str> {
    op.into()
}

fn slow() -> Rig {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig
}

#[test]
fn a_newer_set_takes_the_place_of_one_that_moves() {
    let mut rig = slow();
    rig.set("op1", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.events();
    rig.set("op2", "target", Scalar::Number(22.0));
    rig.pass(10);
    let expected = [(Received, None), (Failed, Some(Superseded)), (Executing, None)];
    let found: Vec<_> = rig.results().into_iter().map(|(_, result, reason, _)| (result, reason)).collect();
    assert_eq!((found.as_slice(), rig.bench.drives), (expected.as_slice(), 2));
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.results(), [(own("op2"), Completed, None, false)]);
    rig.query("q1", Some("target"));
    assert_eq!(rig.state().seen, [(own("target"), own("op2"))], "s3_3: what was superseded is not seen as done");
}

#[test]
fn a_newer_set_to_where_it_stands_turns_back_what_moves() {
    let mut rig = slow();
    rig.switch("op1", true);
    rig.pass(0);
    rig.switch("op2", false);
    rig.pass(5);
    assert_eq!(rig.bench.drives, 2, "it reads false still, but it was told to go");
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.results().last(), Some(&(own("op2"), Completed, None, false)));
}

#[test]
fn a_newer_set_takes_the_place_of_one_that_has_not_begun() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.switch("op2", true);
    rig.pass(0);
    rig.pass(10);
    let results = rig.results();
    assert_eq!(results[1], (own("op1"), Failed, Some(Superseded), false));
    assert_eq!((results.last(), rig.bench.drives), (Some(&(own("op2"), Completed, None, false)), 1));
}

#[test]
fn properties_move_side_by_side() {
    let mut rig = slow();
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(25.0));
    rig.pass(0);
    assert_eq!(rig.bench.drives, 2);
    rig.events();
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.results().len(), 2);
}

#[test]
fn s4_5_of_a_group_one_moves_at_a_time() {
    let mut rig = slow();
    rig.bench.exclusive = &[&["relay", "target"]];
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.pass(10);
    assert_eq!(rig.bench.drives, 1);
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.bench.drives, 2, "the other one follows");
    rig.bench.arrive();
    rig.pass(10);
    let ends: Vec<_> = rig.results().into_iter().filter(|r| r.1 == Completed).map(|r| r.0).collect();
    assert_eq!(ends, ["op1", "op2"].map(own));
}

#[test]
fn s4_5_a_newer_wish_for_what_moves_does_not_stand_behind_others_of_its_group() {
    let mut rig = slow();
    rig.bench.exclusive = &[&["relay", "target"]];
    rig.set("op1", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.switch("op2", true);
    rig.set("op3", "target", Scalar::Number(5.0));
    rig.pass(10);
    let results = rig.results();
    assert!(results.contains(&(own("op1"), Failed, Some(Superseded), false)), "{results:?}");
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.bench.now[1], Scalar::Number(5.0));
    assert_eq!(rig.bench.drives, 3, "and the other one has its turn");
}

#[test]
fn s4_4_two_movements_of_a_property_are_at_least_its_interval_apart() {
    let mut rig = Rig::welcomed();
    rig.bench.specs[0].min_interval_ms = Some(500);
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(10);
    rig.switch("op2", false);
    rig.pass(489);
    assert_eq!(rig.bench.drives, 1);
    assert!(rig.machine.deadline(&rig.bench).is_some_and(|at| at <= rig.now_ms + 10), "it is looked at again");
    rig.pass(1);
    assert_eq!(rig.bench.drives, 2);
}

#[test]
fn a_withdrawal_of_what_moves_stops_it_where_the_description_says_so() {
    let mut rig = slow();
    rig.bench.specs[1].on_withdraw = Some(OnWithdraw::Stop);
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.events();
    rig.withdraw("op1");
    rig.withdraw("op2");
    assert_eq!((rig.bench.stops, rig.results()), (1, vec![(own("op2"), Failed, Some(Withdrawn), false)]));
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, false)], "the other one is finished");
    assert_eq!(rig.bench.now[1], Scalar::Number(20.0));
}

#[test]
fn what_takes_long_says_how_much_longer() {
    let mut rig = slow();
    rig.switch("op1", true);
    rig.pass(0);
    rig.bench.eta_ms = Some(300);
    rig.events();
    rig.pass(10);
    let report = &rig.reports()[0];
    assert_eq!((report.result, report.eta_ms), (Working, Some(300)));
    rig.pass(10);
    assert_eq!(rig.reports(), [], "now and then, not each time it looks");
}

#[test]
fn what_passes_its_goal_has_not_arrived() {
    let mut rig = Rig::welcomed();
    rig.bench.at_rest = false;
    rig.set("op1", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.pass(10);
    assert_eq!(rig.results().len(), 2, "it reads as wished, and moves");
    rig.bench.at_rest = true;
    rig.pass(10);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, false)]);
}

#[test]
fn what_never_stands_still_is_judged_by_its_value_when_its_time_is_over() {
    let mut rig = Rig::welcomed();
    rig.bench.at_rest = false;
    rig.set("op1", "target", Scalar::Number(25.0));
    rig.pass(0);
    rig.pass(400);
    assert_eq!(rig.results().last(), Some(&(own("op1"), Completed, None, false)));
}

#[test]
fn s3_9_a_wish_outside_the_range_is_clamped_where_the_description_allows_it() {
    let mut rig = Rig::welcomed();
    rig.bench.specs[1].clamps = true;
    rig.set("op1", "target", Scalar::Number(99.0));
    rig.pass(0);
    rig.pass(10);
    let reports = rig.reports();
    assert!(reports.iter().all(|r| r.clamped), "each report of it says so");
    assert_eq!(reports[2].status, [(own("target"), Scalar::Number(30.0))]);
    rig.set("op1", "target", Scalar::Number(99.0));
    assert!(rig.reports()[0].clamped, "and its repetition");
}

#[test]
fn what_cannot_begin_yet_waits_and_expires() {
    let mut rig = Rig::welcomed();
    rig.bench.ready = false;
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(25.0));
    rig.pass(500);
    rig.withdraw("op2");
    rig.pass(501);
    let results = rig.results();
    assert_eq!(
        results[2..],
        [(own("op2"), Failed, Some(Withdrawn), false), (own("op1"), Rejected, Some(Expired), false)]
    );
    rig.bench.ready = true;
    rig.pass(10);
    assert_eq!(rig.bench.drives, 0);
}

#[test]
fn what_the_board_does_not_take_is_rejected_at_once() {
    let mut rig = Rig::welcomed();
    rig.bench.refuses = Some(Busy);
    rig.switch("op1", true);
    rig.run("op2", "press", &[]);
    rig.pass(0);
    let expected = ["op1", "op2"].map(|op| (own(op), Rejected, Some(Busy), false));
    assert_eq!((rig.results().as_slice(), rig.bench.drives), (expected.as_slice(), 0));
}

#[test]
fn s3_5_what_has_no_read_back_is_executed_and_never_completed() {
    let mut bench = Rig::bench();
    bench.specs[0].feedback = truetwin_wire::words::EvidenceWord::None;
    let mut rig = Rig::welcomed_with(bench);
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(1_000);
    let reports = rig.reports();
    assert_eq!(reports.iter().map(|r| r.result).collect::<Vec<_>>(), [Received, Executing]);
    assert!(reports.iter().all(|r| r.status.is_empty()), "an assumed state is no state");
    rig.switch("op2", true);
    rig.pass(0);
    assert_eq!(rig.bench.drives, 2, "nobody knows whether it is so already");
    rig.events();
    rig.switch("op2", true);
    rig.pass(0);
    assert_eq!((rig.results(), rig.bench.drives), (vec![(own("op2"), Executing, None, true)], 2));
    rig.query("q1", None);
    let state = rig.state();
    assert!(state.seen.is_empty() && state.status.iter().all(|(name, _)| **name != *"relay"));
}

#[test]
fn every_event_of_a_full_board_can_be_read() {
    let mut rig = slow();
    rig.run("op1", "pulse", &[("ms", Scalar::Integer(200))]);
    rig.switch("op2", true);
    rig.pass(0);
    let event = rig.machine.outgoing().unwrap();
    assert_eq!(decode_event(event).unwrap().unknown_words, 0);
}
