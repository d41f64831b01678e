//! Each fault of the simulated device against a scripted hub: what it does on the wire, and what really moved.
//!
//! Where silence is the point, a query behind it shows that the device has had its turn.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that fails here says where")]

mod scripted_hub;

use scripted_hub::{
    Peer,
    rig::{Rig, facts, value},
};
use truetwin::sim::{Fault, Happened, Kind};
use truetwin_wire::{
    Scalar,
    hub::{ActionReport, Event},
    words::{CauseWord, ErrorWord, KindWord, ReasonWord, ReportResult, RoleWord},
};

const ON: Scalar = Scalar::Bool(true);

async fn socket(fault: Fault) -> (Rig, Peer) {
    let mut rig = Rig::new(fault).await;
    let (peer, ..) = rig.greeted("s1").await;
    (rig, peer)
}

/// What each report of a set says, up to the answer of a query that was asked when the relay had really moved (or at once).
async fn results_until_query(rig: &mut Rig, peer: &mut Peer, moves: bool) -> Vec<ReportResult> {
    peer.set("op1", true, 60_000).await;
    if moves {
        rig.until(|h| matches!(h, Happened::Moved { .. })).await;
        // A read-back comes 10 ms after driving; this is not to see it, but to have the device look before the query.
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    peer.publish_query("q1").await;
    let mut results = Vec::new();
    loop {
        match peer.event().await.event {
            Event::ActionReport(report) => results.push(report.result),
            Event::DeviceState(state) if state.op.is_some() => return results,
            Event::DeviceState(_) | Event::Hello(_) | Event::Description(_) | Event::Heartbeat => {}
        }
    }
}

fn last(reports: &[ActionReport]) -> (ReportResult, Option<ReasonWord>) {
    let last = reports.last().unwrap();
    (last.result, last.reason)
}

#[tokio::test]
async fn a_lost_command_never_reaches_the_device_and_a_query_does() {
    let (mut rig, mut peer) = socket(Fault::NoCommand).await;
    assert_eq!(results_until_query(&mut rig, &mut peer, false).await, []);
    assert_eq!(rig.sim.moves(), 0);
    rig.sim.set_fault(Fault::None);
    peer.set("op2", true, 60_000).await;
    assert_eq!(last(&peer.reports_until_end().await).0, ReportResult::Completed);
}

#[tokio::test]
async fn single_reports_are_lost_and_the_others_arrive() {
    use ReportResult::{Completed, Executing, Received};
    for (fault, expected) in [
        (Fault::NoAck, vec![Executing, Completed]),
        (Fault::NoExecuting, vec![Received, Completed]),
        (Fault::NoCompletion, vec![Received, Executing]),
    ] {
        let (mut rig, mut peer) = socket(fault).await;
        assert_eq!(results_until_query(&mut rig, &mut peer, true).await, expected, "{fault}");
        assert_eq!((rig.sim.relay(), rig.sim.moves()), (true, 1), "{fault}");
        assert_eq!(peer.query("q2").await.seen, [("relay".into(), "op1".into())], "{fault}");
    }
}

#[tokio::test]
async fn after_driving_everything_is_lost_until_it_is_repaired_and_then_the_state_is_told() {
    let (mut rig, mut peer) = socket(Fault::NothingAfterDriving).await;
    peer.set("op1", true, 60_000).await;
    for expected in [ReportResult::Received, ReportResult::Executing] {
        assert_eq!(peer.report().await.1.result, expected);
    }
    rig.until(|h| matches!(h, Happened::Moved { .. })).await;
    peer.publish_query("q1").await;
    rig.sim.set_fault(Fault::None);
    // Whether the query was answered into the void or after the repair is a matter of luck; the state comes unasked.
    let state = peer.unasked_among_answers().await;
    assert_eq!(state.cause, CauseWord::Periodic);
    assert_eq!((value(&state.status, "relay"), state.seen), (Some(&ON), vec![("relay".into(), "op1".into())]));
    assert_eq!(rig.sim.moves(), 1);
}

#[tokio::test]
async fn without_a_report_path_the_relay_moves_and_nothing_is_heard() {
    let (mut rig, mut peer) = socket(Fault::NoReports).await;
    peer.set("op1", true, 60_000).await;
    rig.until(|h| matches!(h, Happened::Moved { .. })).await;
    assert_eq!((rig.sim.moves(), peer.is_silent()), (1, true));
}

#[tokio::test]
async fn a_busy_device_rejects_at_once_and_moves_nothing() {
    let (rig, mut peer) = socket(Fault::Busy).await;
    peer.set("op1", true, 60_000).await;
    let reports = peer.reports_until_end().await;
    assert_eq!(facts(&reports), [("op1", ReportResult::Rejected, Some(ReasonWord::Busy), false)]);
    assert_eq!(rig.sim.moves(), 0);
}

#[tokio::test]
async fn a_task_that_never_starts_has_received_and_says_no_more() {
    for fault in [Fault::NeverStarts, Fault::StartsLate] {
        let (rig, mut peer) = socket(fault).await;
        peer.set("op1", true, 1).await;
        assert_eq!(peer.report().await.1.result, ReportResult::Received);
        // The query is read when the command is long late by the hub's clock.
        peer.ahead_ms += 1_000;
        peer.query("q1").await;
        let state = peer.query("q2").await;
        assert_eq!((state.seen, rig.sim.moves()), (vec![], 0), "{fault}");
    }
}

#[tokio::test]
async fn a_task_that_never_starts_and_says_so_expires() {
    let (rig, mut peer) = socket(Fault::Expires).await;
    peer.set("op1", true, 50).await;
    let reports = peer.reports_until_end().await;
    assert_eq!(reports[0].result, ReportResult::Received);
    assert_eq!((last(&reports), rig.sim.moves()), ((ReportResult::Rejected, Some(ReasonWord::Expired)), 0));
}

#[tokio::test]
async fn a_late_device_moves_after_all_though_it_was_told_not_to() {
    let (mut rig, mut peer) = socket(Fault::Late).await;
    peer.set("op1", true, 1_000).await;
    while peer.report().await.1.result != ReportResult::Executing {}
    peer.withdraw("op1").await;
    assert_eq!((peer.query("q1").await.seen, rig.sim.moves()), (vec![], 0));
    rig.until(|h| matches!(h, Happened::Moved { .. })).await;
    assert_eq!(last(&peer.reports_until_end().await), (ReportResult::Completed, None));
}

#[tokio::test]
async fn what_reverts_goes_back_after_it_was_read_as_done() {
    for (fault, told) in [(Fault::RevertsSoon, false), (Fault::RevertsSoonTold, true), (Fault::RevertsLate, true)] {
        let (mut rig, mut peer) = socket(fault).await;
        peer.set("op1", true, 60_000).await;
        assert_eq!(last(&peer.reports_until_end().await), (ReportResult::Completed, None), "{fault}");
        rig.until(|h| matches!(h, Happened::Moved { to, .. } if *to == 0.0)).await;
        if told {
            let state = peer.unasked().await;
            assert_eq!((state.cause, value(&state.status, "relay")), (CauseWord::Periodic, Some(&Scalar::Bool(false))));
        }
        let state = peer.query("q1").await;
        assert_eq!(value(&state.status, "relay"), Some(&Scalar::Bool(false)), "{fault}");
        assert_eq!((rig.sim.relay(), rig.sim.moves()), (false, 2), "{fault}: there and back");
    }
}

#[tokio::test]
async fn a_load_without_power_is_seen_by_the_meter_alone() {
    let mut rig = Rig::of(Kind::Meter, 1.0, Fault::NoLoad).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set("op1", true, 60_000).await;
    assert_eq!(last(&peer.reports_until_end().await), (ReportResult::Completed, None));
    let state = peer.query("q1").await;
    assert_eq!(value(&state.status, "relay"), Some(&ON));
    assert!(value(&state.status, "power").unwrap().as_f64().unwrap() < 1.0);
    assert_eq!(rig.truth("relay"), (1.0, 1), "the contact moved");
}

#[tokio::test]
async fn a_reboot_before_driving_comes_once_and_moves_nothing() {
    let (mut rig, mut peer) = socket(Fault::RebootBefore).await;
    peer.set("op1", true, 60_000).await;
    assert_eq!(peer.report().await.1.result, ReportResult::Received);
    assert!(!peer.closed().await);
    let (mut peer, _, hello) = rig.greeted("s2").await;
    assert_eq!((hello.cause, hello.seen, rig.sim.moves()), (CauseWord::Boot, vec![], 0));
    peer.set("op1", true, 60_000).await;
    assert_eq!((last(&peer.reports_until_end().await).0, rig.sim.moves()), (ReportResult::Completed, 1));
}

#[tokio::test]
async fn a_reboot_after_driving_comes_before_the_report() {
    let (mut rig, mut peer) = socket(Fault::RebootAfter).await;
    peer.set("op1", true, 60_000).await;
    for expected in [ReportResult::Received, ReportResult::Executing] {
        assert_eq!(peer.report().await.1.result, expected);
    }
    assert!(!peer.closed().await);
    let (mut peer, _, hello) = rig.greeted("s2").await;
    assert_eq!((hello.cause, hello.seen), (CauseWord::Boot, vec![]));
    assert_eq!((rig.sim.relay(), rig.sim.moves()), (false, 2), "it was on, and fell");
    peer.set("op1", true, 60_000).await;
    assert_eq!(last(&peer.reports_until_end().await).0, ReportResult::Completed, "once");
}

#[tokio::test]
async fn a_latch_keeps_its_place_over_a_reboot_after_driving() {
    let mut rig = Rig::of(Kind::Thermostat, 1.0, Fault::RebootAfter).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set_to("op1", "target", Scalar::Number(22.0), 60_000).await;
    assert!(!peer.closed().await);
    let (_, _, hello) = rig.greeted("s2").await;
    assert_eq!(value(&hello.state, "target"), Some(&Scalar::Number(22.0)));
}

#[tokio::test]
async fn a_brown_out_comes_at_each_driving() {
    let (mut rig, mut peer) = socket(Fault::BrownOut).await;
    for session in ["s2", "s3"] {
        peer.set("op1", true, 60_000).await;
        for expected in [ReportResult::Received, ReportResult::Executing] {
            assert_eq!(peer.report().await.1.result, expected);
        }
        assert!(!peer.closed().await);
        peer = rig.greeted(session).await.0;
    }
    assert_eq!((rig.sim.relay(), rig.sim.moves()), (false, 0));
}

#[tokio::test]
async fn what_is_spoiled_on_the_wire_is_an_error_with_its_place() {
    for (fault, ends) in [(Fault::WrongType, None), (Fault::UnknownWord, Some(ErrorWord::UnknownEvent))] {
        let (mut rig, mut peer) = socket(fault).await;
        peer.set("op1", true, 60_000).await;
        rig.until(|h| matches!(h, Happened::Moved { .. })).await;
        for expected in [ReportResult::Received, ReportResult::Executing] {
            assert_eq!(peer.report().await.1.result, expected, "{fault}");
        }
        // A value of another type can be read; only the description tells that it is wrong. An unknown word is counted.
        let (incoming, report) = peer.report().await;
        match fault {
            Fault::UnknownWord => assert_eq!((report.result, incoming.unknown_words), (ReportResult::Unknown, 1)),
            _ => assert_eq!(report.status, [("relay".into(), Scalar::text("yes").unwrap())]),
        }
        peer.publish_query("q1").await;
        match ends {
            Some(reason) => assert_eq!(peer.bad_event().await.reason, reason),
            None => assert_eq!(value(&peer.state().await.1.status, "relay"), Some(&Scalar::text("yes").unwrap())),
        }
        assert_eq!(rig.sim.moves(), 1, "{fault}");
    }
}

#[tokio::test]
async fn a_second_board_with_the_same_name_has_another_run() {
    let (rig, _peer) = socket(Fault::None).await;
    rig.sim.set_fault(Fault::SecondBoard);
    let mut second = rig.hub.accept().await;
    assert_eq!((second.user.as_str(), second.password.as_str()), ("socket_1", "hush"));
    second.hello().await;
    rig.sim.set_fault(Fault::None);
    assert!(!second.closed().await, "it is gone with the fault");
}

#[tokio::test]
async fn an_update_drops_adds_or_changes_a_property() {
    let (mut rig, mut peer) = socket(Fault::None).await;
    for (fault, session) in [(Fault::UpdateDrop, "s2"), (Fault::UpdateAdd, "s3"), (Fault::UpdateKind, "s4")] {
        rig.sim.set_fault(fault);
        assert!(!peer.closed().await, "{fault}: an update is a reboot");
        let (next, _, hello) = rig.greeted(session).await;
        peer = next;
        let names: Vec<_> = hello.properties.iter().map(|p| (&*p.name, p.kind, p.role)).collect();
        match fault {
            Fault::UpdateDrop => assert_eq!(names, []),
            Fault::UpdateAdd => assert_eq!(names[1], ("extra", KindWord::Bool, Some(RoleWord::Heater))),
            _ => assert_eq!(names, [("relay", KindWord::Number, Some(RoleWord::Socket))]),
        }
    }
    rig.sim.set_fault(Fault::None);
    let (_, _, hello) = rig.greeted("s5").await;
    assert_eq!((hello.properties.len(), hello.properties[0].kind), (1, KindWord::Bool), "and back");
}

#[tokio::test]
async fn what_an_update_added_can_be_driven() {
    let mut rig = Rig::new(Fault::UpdateAdd).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set_to("op1", "extra", ON, 60_000).await;
    assert_eq!(last(&peer.reports_until_end().await).0, ReportResult::Completed);
    assert_eq!((rig.truth("extra"), rig.sim.moves()), ((1.0, 1), 0));
}

#[tokio::test]
async fn a_hello_storm_greets_again_and_again() {
    let mut rig = Rig::new(Fault::HelloStorm).await;
    let mut boots = Vec::new();
    for session in ["s1", "s2", "s3"] {
        let (mut peer, incoming, _) = rig.greeted(session).await;
        assert!(!peer.closed().await);
        boots.push(incoming.boot);
    }
    boots.dedup();
    assert_eq!(boots.len(), 1, "in one run");
    rig.sim.set_fault(Fault::None);
}

#[tokio::test]
async fn without_a_seed_every_run_has_the_same_token() {
    let mut rig = Rig::new(Fault::SameBoot).await;
    let (mut peer, first, _) = rig.greeted("s1").await;
    rig.sim.restart();
    assert!(!peer.closed().await);
    let (_, second, hello) = rig.greeted("s2").await;
    assert_eq!((first.boot, second.seq, hello.cause), (second.boot, 1, CauseWord::Boot));
}

#[tokio::test]
async fn a_stopped_clock_shows_the_same_time_for_ever() {
    let (rig, mut peer) = socket(Fault::ClockStopped).await;
    let mut times = Vec::new();
    for op in ["q1", "q2"] {
        peer.publish_query(op).await;
        times.push(peer.state().await.0.up_ms);
        // So that a clock that goes would show it.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(times[0], times[1]);
    rig.sim.set_fault(Fault::None);
}

#[tokio::test]
async fn a_fast_clock_is_a_fifth_ahead() {
    let (_rig, mut peer) = socket(Fault::ClockFast).await;
    let (begun, mut shown) = (std::time::Instant::now(), Vec::new());
    for op in ["q1", "q2"] {
        peer.publish_query(op).await;
        shown.push(peer.state().await.0.up_ms);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    // Between the two answers at least 300 ms went by, whatever else the machine had to do.
    let passed = shown[1] - shown[0];
    assert!(passed >= 359 && u128::from(passed) <= begun.elapsed().as_millis() * 12 / 10, "{passed}");
}

#[tokio::test]
async fn an_action_is_bent_by_the_same_faults() {
    for (fault, expected, times) in [
        (Fault::Stuck, (ReportResult::Failed, Some(ReasonWord::Stuck)), 0),
        (Fault::Lying, (ReportResult::Completed, None), 0),
        (Fault::Slow, (ReportResult::Completed, None), 1),
        (Fault::Busy, (ReportResult::Rejected, Some(ReasonWord::Busy)), 0),
    ] {
        let mut rig = Rig::of(Kind::Garage, 10.0, fault).await;
        let (mut peer, ..) = rig.greeted("s1").await;
        peer.run("op1", "pulse").await;
        assert_eq!(last(&peer.reports_until_end().await), expected, "{fault}");
        assert_eq!(rig.truth("pulse").1, times, "{fault}");
    }
}

#[tokio::test]
async fn an_interrupted_action_does_not_run_again_after_the_reboot() {
    let mut rig = Rig::of(Kind::Garage, 10.0, Fault::RebootAfter).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.run("op1", "pulse").await;
    assert!(!peer.closed().await);
    let (mut peer, ..) = rig.greeted("s2").await;
    peer.run("op1", "pulse").await;
    let report = peer.report().await.1;
    assert_eq!(facts(&[report]), [("op1", ReportResult::Failed, Some(ReasonWord::Interrupted), true)]);
    assert_eq!(rig.truth("pulse").1, 1);
}

#[tokio::test]
async fn a_stuck_motor_is_noticed_before_its_time_is_over() {
    let mut rig = Rig::of(Kind::Blind, 1.0, Fault::Stuck).await;
    let (mut peer, ..) = rig.greeted("s1").await;
    peer.set_to("op1", "position", Scalar::Number(50.0), 60_000).await;
    assert_eq!(last(&peer.reports_until_end().await), (ReportResult::Failed, Some(ReasonWord::Stuck)));
    assert_eq!(rig.truth("position"), (0.0, 0));
}
