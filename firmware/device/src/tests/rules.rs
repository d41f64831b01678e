//! What becomes of a set.

use std::sync::Arc;

use truetwin_wire::{
    Scalar,
    hub::Command,
    words::{EvidenceWord, ReasonWord::*, ReportResult::*},
};

use super::rig::{Mechanics, Rig};
use crate::machine::{Dropped, Heard};

fn own(op: &str) -> Arc<str> {
    op.into()
}

#[test]
fn a_set_is_received_driven_read_back_and_completed() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    assert_eq!(rig.bench.drives, 0, "nothing moves while messages are read");
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Received, None, false), (own("op1"), Executing, None, false)]);
    rig.pass(10);
    let report = &rig.reports()[0];
    assert_eq!((report.result, report.reason), (Completed, None));
    assert_eq!(report.status, [(own("relay"), Scalar::Bool(true))]);
    assert_eq!(report.evidence, [(own("relay"), EvidenceWord::Pin)]);
    assert_eq!((rig.bench.drives, rig.bench.now[0].clone()), (1, Scalar::Bool(true)));
}

#[test]
fn what_does_not_follow_is_failed_stuck_with_what_was_read() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Stuck;
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(399);
    assert_eq!(rig.results().len(), 2, "within its time it is not judged");
    rig.pass(1);
    let report = &rig.reports()[0];
    assert_eq!((report.result, report.reason), (Failed, Some(Stuck)));
    assert_eq!(report.status, [(own("relay"), Scalar::Bool(false))]);
    rig.query("q1", None);
    assert_eq!(rig.state().seen, [], "s3_3: what failed is not seen as done");
}

#[test]
fn what_cannot_be_read_back_is_not_completed() {
    let mut rig = Rig::welcomed();
    rig.bench.readable = false;
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(400);
    let report = rig.reports().pop().unwrap();
    assert_eq!((report.result, report.reason), (Failed, Some(Stuck)));
    assert_eq!((report.status, report.evidence), (vec![], vec![]), "unknown is absence");
}

#[test]
fn what_cannot_be_driven_is_failed_with_the_boards_reason() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::NoPower;
    rig.switch("op1", true);
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Received, None, false), (own("op1"), Failed, Some(Power), false)]);
}

#[test]
fn a_slow_thing_is_completed_when_it_has_arrived() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(300);
    rig.bench.arrive();
    rig.pass(10);
    let results = [Received, Executing, Completed].map(|result| (own("op1"), result, None, false));
    assert_eq!(rig.results(), results);
}

#[test]
fn s5_1_setting_the_present_value_moves_nothing_and_is_completed() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", false);
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Received, None, false), (own("op1"), Completed, None, false)]);
    assert_eq!(rig.bench.drives, 0);
}

#[test]
fn a_query_is_answered_with_the_state_of_now_and_what_was_finished() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.pass(0);
    rig.query("q0", None);
    assert_eq!(rig.state().seen, [], "begun is not finished");
    rig.pass(10);
    rig.bench.now[0] = Scalar::Bool(false); // somebody pulled it
    rig.events();
    rig.query("q1", None);
    let state = rig.state();
    assert_eq!(state.op, Some(own("q1")));
    assert_eq!(state.status[0], (own("relay"), Scalar::Bool(false)));
    assert_eq!(state.status.len(), 3);
    assert_eq!(state.seen, [(own("relay"), own("op1"))]);
    rig.query("q2", Some("target"));
    assert_eq!(rig.state().status, [(own("target"), Scalar::Number(20.0))]);
    rig.query("q3", Some("door"));
    assert_eq!(rig.state().status, [], "what it does not have is unknown");
}

#[test]
fn s5_1_a_repeated_op_is_answered_dup_with_the_state_of_now_and_moves_nothing() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    assert_eq!(rig.results(), [(own("op1"), Received, None, false)]);
    rig.switch("op1", true);
    assert_eq!(rig.results(), [(own("op1"), Received, None, true)], "while it waits");
    rig.bench.mechanics = Mechanics::Slow;
    rig.pass(0);
    rig.events();
    rig.switch("op1", true);
    assert_eq!(rig.results(), [(own("op1"), Executing, None, true)], "while it moves");
    rig.bench.arrive();
    rig.pass(10);
    rig.events();
    rig.bench.now[0] = Scalar::Bool(false);
    rig.switch("op1", true);
    rig.pass(10);
    let report = &rig.reports()[0];
    assert_eq!((report.result, report.dup), (Completed, true), "the result of then");
    assert_eq!(report.status, [(own("relay"), Scalar::Bool(false))], "the state of now");
    assert_eq!(rig.bench.drives, 1);
}

#[test]
fn the_last_eight_ops_are_remembered() {
    let mut rig = Rig::welcomed();
    for n in 0..9 {
        rig.switch(&format!("op{n}"), n % 2 == 0);
        rig.pass(0);
        rig.pass(10);
    }
    rig.events();
    rig.switch("op1", true);
    assert!(rig.results()[0].3, "the eighth from the end");
    rig.switch("op0", true);
    assert!(!rig.results()[0].3, "the ninth from the end is forgotten");
}

#[test]
fn s5_1_a_command_that_comes_too_late_is_rejected_expired_and_moves_nothing() {
    let mut rig = Rig::welcomed();
    let late = rig.set_command("op1", "relay", Scalar::Bool(true));
    let just = rig.set_command("op2", "relay", Scalar::Bool(true));
    rig.pass(1_000);
    rig.tell(&just);
    assert_eq!(rig.results(), [(own("op2"), Received, None, false)]);
    rig.pass(0);
    rig.pass(10);
    rig.events();
    rig.now_ms += 1;
    rig.tell(&late);
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Rejected, Some(Expired), false)]);
    assert_eq!(rig.bench.drives, 1);
}

#[test]
fn lateness_is_counted_from_the_fastest_message_of_the_session() {
    let mut rig = Rig::started(crate::Start::Unclean);
    rig.connect();
    // The welcome took 800 ms; a query that took 100 ms teaches the truth.
    let (hub_ms, session, hub) = (rig.hub_ms(), "s1".into(), "h".into());
    rig.now_ms += 800;
    rig.tell(&Command::Welcome { session, hub, epoch: 1, hub_ms, heartbeat_ms: 5_000, warnings: Vec::new() });
    let query = Command::GetDeviceState { session: "s1".into(), hub_ms: rig.hub_ms(), op: "q1".into(), property: None };
    rig.now_ms += 100;
    rig.tell(&query);
    rig.events();
    let late = rig.set_command("op1", "relay", Scalar::Bool(true));
    rig.now_ms += 1_101;
    rig.tell(&late);
    assert_eq!(rig.results(), [(own("op1"), Rejected, Some(Expired), false)]);
}

#[test]
fn a_set_that_waited_too_long_behind_another_does_not_begin() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.bench.exclusive = &[&["relay", "target"]];
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(21.0));
    rig.pass(0);
    rig.now_ms += 1_001;
    rig.bench.arrive();
    rig.events();
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, false), (own("op2"), Rejected, Some(Expired), false)]);
    assert_eq!(rig.bench.drives, 1);
}

#[test]
fn a_withdrawal_behind_a_set_is_seen_before_anything_moves() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.set("op2", "target", Scalar::Number(21.0));
    rig.withdraw("op1");
    rig.pass(0);
    rig.pass(10);
    let results = rig.results();
    assert_eq!(results[2], (own("op1"), Failed, Some(Withdrawn), false));
    assert_eq!(results[4], (own("op2"), Completed, None, false));
    assert_eq!((rig.bench.drives, rig.bench.now[0].clone()), (1, Scalar::Bool(false)));
    rig.query("q1", Some("relay"));
    assert_eq!(rig.state().seen, [], "what was never begun was not finished");
}

#[test]
fn a_withdrawal_of_what_has_begun_changes_nothing() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    rig.withdraw("op1");
    rig.bench.arrive();
    rig.pass(10);
    let results = [Received, Executing, Completed].map(|result| (own("op1"), result, None, false));
    assert_eq!(rig.results(), results);
}

#[test]
fn a_withdrawal_of_what_never_came_is_not_answered_and_keeps_it_from_beginning() {
    let mut rig = Rig::welcomed();
    assert_eq!(rig.withdraw("op1"), Heard::Command);
    assert_eq!(rig.results(), []);
    rig.switch("op1", true);
    rig.pass(0);
    assert_eq!(rig.results(), [(own("op1"), Failed, Some(Withdrawn), true)]);
    assert_eq!(rig.bench.drives, 0);
}

#[test]
fn more_commands_than_can_wait_are_rejected_busy() {
    let mut rig = Rig::welcomed();
    for n in 0..5 {
        rig.run(&format!("op{n}"), "press", &[]);
    }
    let results = rig.results();
    assert!(results[..4].iter().all(|r| r.1 == Received));
    assert_eq!(results[4], (own("op4"), Rejected, Some(Busy), false));
}

#[test]
fn what_it_cannot_do_is_rejected_with_the_reason() {
    let mut rig = Rig::welcomed();
    rig.set("op1", "door", Scalar::Bool(true));
    rig.set("op2", "count", Scalar::Integer(1));
    rig.set("op3", "target", Scalar::Number(31.0));
    rig.set("op4", "target", Scalar::Bool(true));
    rig.run("op5", "dance", &[]);
    let hub_ms = rig.hub_ms();
    let no_value =
        format!(r#"{{"command":"set","session":"s1","hub_ms":{hub_ms},"op":"op6","property":"relay","ttl_ms":1}}"#);
    rig.machine.handle(no_value.as_bytes(), false, rig.now_ms, &mut rig.bench);
    rig.pass(0);
    let reasons: Vec<_> = rig.results().into_iter().map(|(_, result, reason, _)| (result, reason.unwrap())).collect();
    let expected = [Unsupported, Unsupported, OutOfRange, Malformed, Unsupported, Malformed].map(|r| (Rejected, r));
    assert_eq!(reasons, expected);
    assert_eq!(rig.bench.drives, 0);
}

#[test]
fn what_cannot_be_read_is_dropped() {
    let mut rig = Rig::welcomed();
    for bad in ["", "on", "{", r#"{"command":"dance","session":"s1","op":"op1"}"#, r#"{"command":"set","op":"op1"}"#] {
        let heard = rig.machine.handle(bad.as_bytes(), false, rig.now_ms, &mut rig.bench);
        assert_eq!(heard, Heard::Dropped(Dropped::Unreadable), "{bad}");
    }
    assert_eq!(
        rig.machine.handle(&[b'x'; 600], false, rig.now_ms, &mut rig.bench),
        Heard::Dropped(Dropped::Unreadable)
    );
    assert_eq!(rig.events(), []);
}

#[test]
fn the_deadline_names_the_next_read_back() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    assert_eq!(rig.machine.deadline(&rig.bench), Some(rig.now_ms + 10));
    rig.bench.arrive();
    rig.pass(10);
    assert_eq!(rig.machine.deadline(&rig.bench), Some(1_000 + 5_000), "then the heartbeat");
}

#[test]
fn events_that_find_no_room_are_lost_and_counted_and_the_rest_stays_whole() {
    let mut rig = Rig::welcomed();
    for n in 0..100 {
        rig.query(&format!("q{n}"), None);
    }
    let lost = rig.machine.lost_events();
    let events = rig.events();
    assert!(lost > 0 && events.len() + lost as usize == 100, "{lost} lost, {} kept", events.len());
    assert!(events.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq), "what was kept came first, in order");
    rig.query("q100", None);
    assert_eq!(rig.events()[0].seq, events[0].seq + 100, "the gap in seq shows what was lost");
}
