//! The simulator against a scripted hub: MQTT 5 by hand, commands and events by the wire crate's hub side.
//!
//! No assertion depends on how fast anything is: each step waits for an event, and where lateness is tested the hub's clock
//! says what the time is.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod scripted_hub;

use std::{sync::Arc, time::Duration};

use scripted_hub::rig::{Rig, facts};
use truetwin::sim::{Fault, Happened};
use truetwin_wire::{
    Scalar,
    hub::{Command, Event, decode_will},
    words::{CauseWord, ErrorWord, EvidenceWord, KindWord, ReasonWord, ReportResult, RoleWord},
};

fn relay(on: bool) -> Vec<(Arc<str>, Scalar)> {
    vec![("relay".into(), Scalar::Bool(on))]
}

#[tokio::test]
async fn it_connects_with_its_name_and_a_will_and_greets_with_its_description() {
    let rig = Rig::new(Fault::None).await;
    let mut peer = rig.hub.accept().await;
    assert_eq!((peer.user.as_str(), peer.password.as_str()), ("socket_1", "hush"));
    let (topic, will, qos, retained) = peer.will.clone();
    assert_eq!((topic.as_str(), qos, retained), ("truetwin/socket_1/status", 1, false));
    assert!(peer.clean_start, "an old session's commands are not wanted");
    assert_eq!((peer.subscribed.as_str(), peer.subscribed_qos), ("truetwin/socket_1/command", 0));
    let (incoming, hello) = peer.hello().await;
    assert_eq!((decode_will(&will).unwrap().boot, incoming.seq), (incoming.boot, 1));
    assert_eq!((hello.level, hello.cause, hello.state), (3, CauseWord::Boot, relay(false)));
    let property = &hello.properties[0];
    assert_eq!((&*property.name, property.kind, property.role), ("relay", KindWord::Bool, Some(RoleWord::Socket)));
    assert_eq!(
        (property.feedback, property.expected_ms, property.stable_ms),
        (EvidenceWord::Pin, Some(300), Some(200))
    );
    assert_eq!(property.settable, Some(true));
}

#[tokio::test]
async fn a_set_is_received_executed_and_completed_and_the_relay_really_moves() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    let reports = peer.reports_until_end().await;
    let expected =
        [ReportResult::Received, ReportResult::Executing, ReportResult::Completed].map(|r| ("op1", r, None, false));
    assert_eq!(facts(&reports), expected);
    assert_eq!((&reports[2].status, rig.sim.relay(), rig.sim.moves()), (&relay(true), true, 1));
    let state = peer.query("q1").await;
    assert_eq!((state.status, state.seen), (relay(true), vec![("relay".into(), "op1".into())]));
    let moved = rig.until(|h| matches!(h, Happened::Moved { .. })).await;
    let Happened::Moved { part, to, moves, .. } = moved else { panic!("{moved:?}") };
    assert_eq!((part.as_str(), to, moves), ("relay", 1.0, 1));
}

#[tokio::test]
async fn setting_the_present_value_moves_nothing() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", false, 60_000).await;
    let reports = peer.reports_until_end().await;
    assert_eq!(facts(&reports).last(), Some(&("op1", ReportResult::Completed, None, false)));
    assert_eq!(rig.sim.moves(), 0);
}

#[tokio::test]
async fn stuck_is_failed_stuck_and_the_relay_is_still() {
    let mut rig = Rig::new(Fault::Stuck).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    let reports = peer.reports_until_end().await;
    assert_eq!(facts(&reports)[2], ("op1", ReportResult::Failed, Some(ReasonWord::Stuck), false));
    assert_eq!((&reports[2].status, rig.sim.relay(), rig.sim.moves()), (&relay(false), false, 0));
    rig.sim.set_fault(Fault::None);
    peer.set("op2", true, 60_000).await;
    assert_eq!(peer.reports_until_end().await.last().unwrap().result, ReportResult::Completed, "repaired");
}

#[tokio::test]
async fn lying_completes_what_did_not_move_and_a_query_tells_the_truth() {
    let mut rig = Rig::new(Fault::Lying).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!((end.result, end.status), (ReportResult::Completed, relay(true)));
    assert_eq!(end.evidence, [("relay".into(), EvidenceWord::Pin)]);
    let state = peer.query("q1").await;
    assert_eq!((state.status, rig.sim.relay(), rig.sim.moves()), (relay(false), false, 0));
}

#[tokio::test]
async fn slow_takes_its_time_between_executing_and_completed() {
    let mut rig = Rig::new(Fault::Slow).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    let mut times = Vec::new();
    for expected in [ReportResult::Received, ReportResult::Executing, ReportResult::Completed] {
        let (incoming, report) = peer.report().await;
        assert_eq!((&*report.op, report.result), ("op1", expected));
        times.push(incoming.up_ms);
    }
    // By the device's own clock, so no load of this machine can make it shorter; one millisecond may go in rounding.
    assert!(times[2] - times[1] >= 699, "{times:?}");
    assert_eq!((rig.sim.relay(), rig.sim.moves()), (true, 1));
}

#[tokio::test]
async fn frozen_does_nothing_and_after_thawing_does_not_move_late() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    rig.sim.set_fault(Fault::Frozen);
    peer.ahead_ms -= 60_000; // by the hub's clock, it will have lain there for a minute
    peer.set("op1", true, 1_000).await;
    peer.ahead_ms += 60_000;
    peer.publish_query("q1").await;
    // That nothing comes can only be waited for; a healthy device answers within a millisecond.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(peer.is_silent());
    rig.sim.set_fault(Fault::None);
    let (_, report) = peer.report().await;
    assert_eq!((report.result, report.reason), (ReportResult::Rejected, Some(ReasonWord::Expired)));
    let (_, state) = peer.state().await;
    assert_eq!((state.op.as_deref(), state.status, rig.sim.moves()), (Some("q1"), relay(false), 0));
}

#[tokio::test]
async fn offline_closes_the_connection_and_does_not_dial_until_switched_off() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    rig.sim.set_fault(Fault::Offline);
    assert!(!peer.closed().await, "without a goodbye: the will must be sent");
    rig.until(|h| matches!(h, Happened::Disconnected(_))).await;
    // Longer than the first pause of 200 ms: if it dialled, it would be here.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(!rig.hub.somebody_waits().await);
    rig.sim.set_fault(Fault::None);
    let (_, incoming, hello) = rig.greeted("s2").await;
    assert_eq!((incoming.seq, hello.cause), (2, CauseWord::Periodic), "the same run");
}

#[tokio::test]
async fn a_repeated_op_is_answered_dup_and_moves_nothing() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    peer.reports_until_end().await;
    peer.set("op2", false, 60_000).await;
    peer.reports_until_end().await;
    peer.set("op1", true, 60_000).await;
    let (_, report) = peer.report().await;
    assert_eq!(facts(std::slice::from_ref(&report)), [("op1", ReportResult::Completed, None, true)]);
    assert_eq!((report.status, rig.sim.moves()), (relay(false), 2));
}

#[tokio::test]
async fn a_command_that_comes_too_late_is_expired() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.ahead_ms -= 5_000; // it was written five seconds ago
    peer.set("op1", true, 1_000).await;
    let reports = peer.reports_until_end().await;
    assert_eq!(facts(&reports), [("op1", ReportResult::Rejected, Some(ReasonWord::Expired), false)]);
    assert_eq!(rig.sim.moves(), 0);
}

#[tokio::test]
async fn a_withdrawal_right_behind_a_set_keeps_it_from_moving() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    rig.sim.set_fault(Fault::Frozen); // both are there before the device looks
    peer.set("op1", true, 60_000).await;
    let (session, hub_ms, op) = ("s1".to_owned(), peer.hub_ms(), "op1".to_owned());
    peer.tell(&Command::Withdraw { session, hub_ms, op }).await;
    rig.sim.set_fault(Fault::None);
    let reports = peer.reports_until_end().await;
    let expected = [
        ("op1", ReportResult::Received, None, false),
        ("op1", ReportResult::Failed, Some(ReasonWord::Withdrawn), false),
    ];
    assert_eq!(facts(&reports), expected);
    peer.query("q1").await;
    assert_eq!(rig.sim.moves(), 0);
}

#[tokio::test]
async fn commands_of_another_session_and_retained_ones_are_ignored() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.session = "s0".to_owned();
    peer.set("op1", true, 60_000).await;
    peer.session = "s1".to_owned();
    peer.retain = true;
    peer.set("op2", true, 60_000).await;
    peer.retain = false;
    let state = peer.query("q1").await;
    assert_eq!(
        (state.op.as_deref(), state.seen, rig.sim.moves()),
        (Some("q1"), vec![], 0),
        "the first that it answers"
    );
}

#[tokio::test]
async fn a_restart_is_a_new_run_with_the_relay_at_its_safe_level() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, first, _) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    peer.reports_until_end().await;
    rig.sim.restart();
    assert!(!peer.closed().await, "the plug was pulled");
    let (mut peer, second, hello) = rig.greeted("s2").await;
    assert_ne!(first.boot, second.boot);
    assert_eq!((second.seq, hello.cause, hello.state, hello.seen), (1, CauseWord::Boot, relay(false), vec![]));
    assert_eq!((rig.sim.relay(), rig.sim.moves()), (false, 2), "it fell");
    peer.set("op2", true, 60_000).await;
    assert_eq!(peer.reports_until_end().await.last().unwrap().result, ReportResult::Completed);
}

#[tokio::test]
async fn a_lost_connection_is_dialled_again_in_the_same_run() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, first, _) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    peer.reports_until_end().await;
    drop(peer);
    let (mut peer, second, hello) = rig.greeted("s2").await;
    assert_eq!(first.boot, second.boot);
    assert_eq!((hello.state, hello.seen), (relay(true), vec![("relay".into(), "op1".into())]));
    peer.set("op1", true, 60_000).await;
    // Whether the first hub's acknowledgement still came through is a matter of luck; if not, the end is told again.
    let mut report = peer.report().await.1;
    if !report.dup {
        assert_eq!((&*report.op, report.result), ("op1", ReportResult::Completed));
        report = peer.report().await.1;
    }
    assert!(report.dup, "what was done is not done again in a new session");
    assert_eq!(rig.sim.moves(), 1);
}

#[tokio::test]
async fn a_hub_that_refuses_the_name_or_the_hello_is_dialled_again() {
    let mut rig = Rig::new(Fault::None).await;
    rig.hub.reject_next().await;
    let why = rig.until(|h| matches!(h, Happened::Disconnected(_))).await;
    assert!(matches!(&why, Happened::Disconnected(why) if why.starts_with("not accepted")), "{why:?}");
    assert!(matches!(&why, Happened::Disconnected(why) if why.contains("`truetwin device rotate ")), "{why:?}");
    let mut peer = rig.hub.accept().await;
    peer.hello().await;
    peer.tell(&Command::Refused { reason: ErrorWord::UnknownDevice, path: None, allowed: None }).await;
    let told = rig.until(|h| matches!(h, Happened::Told(_))).await;
    assert!(matches!(&told, Happened::Told(text) if text.contains("unknown_device")), "{told:?}");
    rig.greeted("s1").await;
}

#[tokio::test]
async fn a_heartbeat_comes_from_the_task_that_drives() {
    let rig = Rig::new(Fault::None).await;
    let mut peer = rig.hub.accept().await;
    peer.hello().await;
    peer.heartbeat_ms = 200;
    peer.welcome("s1").await;
    assert_eq!(peer.event().await.event, Event::Heartbeat);
}

#[tokio::test]
async fn a_device_that_is_stopped_is_gone() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    rig.sim.stop();
    assert!(!peer.closed().await);
}

#[tokio::test]
async fn s5_3_an_end_that_no_broker_acknowledged_is_told_again_in_the_next_session() {
    let mut rig = Rig::new(Fault::None).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.acknowledges = false;
    peer.set("op1", true, 60_000).await;
    peer.reports_until_end().await;
    drop(peer);
    let (mut peer, ..) = rig.greeted("s2").await;
    let report = peer.report().await.1;
    assert_eq!((&*report.op, report.result, report.dup), ("op1", ReportResult::Completed, false));
    peer.query("q1").await; // behind the acknowledgement
    drop(peer);
    let (mut peer, ..) = rig.greeted("s3").await;
    assert_eq!(peer.query("q2").await.op.as_deref(), Some("q2"), "the first that it says");
    assert_eq!(rig.sim.moves(), 1);
}

#[tokio::test]
async fn a_full_window_holds_back_the_reports_and_not_the_relay() {
    let mut rig = Rig::new(Fault::None).await;
    rig.hub.window = 1;
    let mut peer = rig.hub.accept().await;
    peer.acknowledges = false;
    peer.hello().await;
    peer.welcome("s1").await;
    peer.set("op1", true, 60_000).await;
    rig.until(|h| matches!(h, Happened::Moved { .. })).await;
    assert!(peer.is_silent(), "the hello is not acknowledged yet");
    for expected in [ReportResult::Received, ReportResult::Executing, ReportResult::Completed] {
        assert!(peer.acknowledge_one().await.unwrap());
        assert_eq!(peer.report().await.1.result, expected);
    }
}
