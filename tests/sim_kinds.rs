//! Each kind of simulated device against a scripted hub: what it says when it is healthy is what really happened.
//!
//! Plants live faster where a movement would take long; nothing is asserted of how fast anything is.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that fails here says where")]

mod scripted_hub;

use scripted_hub::rig::{Rig, facts, value};
use truetwin::sim::{Fault, Happened, Kind};
use truetwin_wire::{
    Scalar,
    words::{CauseWord, ClassWord, EvidenceWord, OnWithdraw, ReasonWord, ReportResult, RoleWord},
};

async fn healthy(kind: Kind, speed: f64) -> (Rig, scripted_hub::Peer) {
    let mut rig = Rig::of(kind, speed, Fault::None).await;
    let (peer, ..) = rig.greeted("s1").await;
    (rig, peer)
}

fn number(value: Option<&Scalar>) -> f64 {
    value.unwrap().as_f64().unwrap()
}

#[tokio::test]
async fn every_kind_greets_with_a_description_that_can_be_read() {
    for kind in Kind::ALL {
        let rig = Rig::of(*kind, 1.0, Fault::None).await;
        let mut peer = rig.hub.accept().await;
        let (incoming, hello) = peer.hello().await;
        assert_eq!((incoming.unknown_words, hello.model), (0, format!("sim {kind}")));
        assert!(!hello.properties.is_empty(), "{kind}");
        let known = hello.properties.iter().filter(|p| p.feedback != EvidenceWord::None).count();
        assert_eq!(hello.state.len(), known, "{kind}: everything that can be read is read");
    }
}

#[tokio::test]
async fn every_kind_says_completed_when_it_really_is_so() {
    for (kind, property, wish, at) in [
        (Kind::Socket, "relay", Scalar::Bool(true), 1.0),
        (Kind::Meter, "relay", Scalar::Bool(true), 1.0),
        (Kind::Lamp, "brightness", Scalar::Integer(40), 40.0),
        (Kind::Servo, "angle", Scalar::Number(45.0), 45.0),
        (Kind::Thermostat, "target", Scalar::Number(21.5), 21.5),
        (Kind::Blind, "position", Scalar::Number(70.0), 70.0),
        (Kind::Lock, "locked", Scalar::Bool(false), 0.0),
        (Kind::Relays, "relay_3", Scalar::Bool(true), 1.0),
    ] {
        let (rig, mut peer) = healthy(kind, 20.0).await;
        peer.set_to("op1", property, wish, 60_000).await;
        let end = peer.reports_until_end().await.pop().unwrap();
        assert_eq!((end.result, end.reason), (ReportResult::Completed, None), "{kind}");
        assert_eq!(rig.truth(property), (at, 1), "{kind}: there, it stands, and it was one movement");
    }
}

#[tokio::test]
async fn the_light_of_a_lamp_is_measured_apart_from_what_drives_it() {
    let (rig, mut peer) = healthy(Kind::Lamp, 20.0).await;
    let lux = async |peer: &mut scripted_hub::Peer| number(value(&peer.query("q").await.status, "lux"));
    assert_eq!(lux(&mut peer).await, 12.0);
    peer.set_to("op1", "relay", Scalar::Bool(true), 60_000).await;
    peer.reports_until_end().await;
    peer.set_to("op2", "brightness", Scalar::Integer(50), 60_000).await;
    peer.reports_until_end().await;
    assert_eq!((lux(&mut peer).await, rig.truth("lux").0), (227.0, 227.0));
    rig.sim.set_fault(Fault::NoLoad);
    let state = peer.query("q2").await;
    assert_eq!(value(&state.status, "relay"), Some(&Scalar::Bool(true)), "the contact is right");
    assert_eq!(number(value(&state.status, "lux")), 12.0, "and there is no light");
}

#[tokio::test]
async fn a_meter_tells_what_the_load_draws_without_being_asked() {
    let (_rig, mut peer) = healthy(Kind::Meter, 1.0).await;
    peer.set("op1", true, 60_000).await;
    peer.reports_until_end().await;
    let state = peer.unasked().await;
    assert_eq!((state.cause, number(value(&state.status, "power"))), (CauseWord::Periodic, 46.4));
}

#[tokio::test]
async fn a_servo_turns_its_encoder_and_clamps_what_lies_beyond_its_end() {
    let (rig, mut peer) = healthy(Kind::Servo, 20.0).await;
    let before = number(value(&peer.query("q1").await.status, "encoder"));
    peer.set_to("op1", "angle", Scalar::Number(200.0), 60_000).await;
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!((end.clamped, rig.truth("angle").0), (true, 180.0));
    let after = number(value(&peer.query("q2").await.status, "encoder"));
    assert_eq!(after - before, 1_024.0, "a quarter of a turn");
}

#[tokio::test]
async fn a_thermostat_holds_its_set_point_and_the_room_approaches_it() {
    let mut rig = Rig::of(Kind::Thermostat, 200.0, Fault::None).await;
    let (mut peer, _, hello) = rig.greeted("s1").await;
    assert_eq!(hello.properties[0].class, Some(ClassWord::Held));
    assert_eq!(hello.properties[0].failsafe.as_ref().map(|f| f.value.clone()), Some(Scalar::Number(16.0)));
    peer.set_to("op1", "target", Scalar::Number(24.0), 60_000).await;
    peer.reports_until_end().await;
    let first = number(value(&peer.unasked().await.status, "temperature"));
    let second = number(value(&peer.unasked().await.status, "temperature"));
    assert!(second > first && second < 24.3, "{first}, {second}");
}

#[tokio::test]
async fn a_blind_says_how_much_longer_it_takes_and_stops_when_it_is_withdrawn() {
    let mut rig = Rig::of(Kind::Blind, 5.0, Fault::None).await;
    let (mut peer, _, hello) = rig.greeted("s1").await;
    let position = &hello.properties[0];
    assert_eq!((position.expected_ms, position.on_withdraw), (Some(5_000), Some(OnWithdraw::Stop)));
    peer.set_to("op1", "position", Scalar::Number(100.0), 60_000).await;
    loop {
        let report = peer.report().await.1;
        if report.result == ReportResult::Working {
            assert!(report.eta_ms.is_some_and(|eta| eta <= 5_000), "{report:?}");
            break;
        }
    }
    peer.withdraw("op1").await;
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!(facts(&[end]), [("op1", ReportResult::Failed, Some(ReasonWord::Withdrawn), false)]);
    let (stopped, moves) = rig.truth("position");
    assert!(stopped < 100.0 && moves == 1, "{stopped}");
    assert_eq!(rig.truth("position").0, stopped, "it stands");
}

#[tokio::test]
async fn a_newer_wish_turns_a_blind_round() {
    let (rig, mut peer) = healthy(Kind::Blind, 5.0).await;
    peer.set_to("op1", "position", Scalar::Number(100.0), 60_000).await;
    while peer.report().await.1.result != ReportResult::Executing {}
    peer.set_to("op2", "position", Scalar::Number(0.0), 60_000).await;
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!((&*end.op, end.reason), ("op1", Some(ReasonWord::Superseded)));
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!((&*end.op, end.result), ("op2", ReportResult::Completed));
    assert_eq!(rig.truth("position").0, 0.0);
}

#[tokio::test]
async fn a_bolt_on_its_way_is_neither_locked_nor_unlocked() {
    let (rig, mut peer) = healthy(Kind::Lock, 0.5).await;
    peer.set_to("op1", "locked", Scalar::Bool(false), 60_000).await;
    while peer.report().await.1.result != ReportResult::Executing {}
    assert_eq!(peer.query("q1").await.status, [], "unknown is absence");
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!((end.result, value(&end.status, "locked")), (ReportResult::Completed, Some(&Scalar::Bool(false))));
    assert_eq!(rig.truth("locked"), (0.0, 1));
}

#[tokio::test]
async fn a_pulse_opens_the_garage_once_also_over_a_reboot() {
    let mut rig = Rig::of(Kind::Garage, 10.0, Fault::None).await;
    let (mut peer, _, hello) = rig.greeted("s1").await;
    assert_eq!((hello.actions[0].repeatable, hello.actions[0].role), (false, Some(RoleWord::Door)));
    assert_eq!(hello.state, [("door".into(), Scalar::Bool(false))]);
    peer.run("op1", "pulse").await;
    let reports = peer.reports_until_end().await;
    assert_eq!(reports.last().map(|r| (&*r.action, r.result)), Some(("pulse", ReportResult::Completed)));
    let state = peer.unasked().await;
    assert_eq!((state.cause, value(&state.status, "door")), (CauseWord::Command, Some(&Scalar::Bool(true))));
    peer.run("op1", "pulse").await;
    assert!(peer.report().await.1.dup);
    rig.sim.restart();
    let (mut peer, ..) = rig.greeted("s2").await;
    peer.run("op1", "pulse").await;
    let report = peer.report().await.1;
    assert_eq!((report.dup, report.result), (true, ReportResult::Completed), "it is remembered");
    assert_eq!(rig.truth("pulse").1, 1);
}

#[tokio::test]
async fn a_button_is_pressed_by_the_device_and_by_a_person() {
    let (rig, mut peer) = healthy(Kind::Button, 1.0).await;
    peer.run("op1", "press").await;
    peer.reports_until_end().await;
    let state = peer.unasked().await;
    assert_eq!((state.cause, value(&state.status, "presses")), (CauseWord::Command, Some(&Scalar::Integer(1))));
    assert!(rig.sim.handle().touch(None, None));
    let state = peer.unasked().await;
    assert_eq!((state.cause, value(&state.status, "presses")), (CauseWord::Local, Some(&Scalar::Integer(2))));
    assert_eq!((rig.truth("press").1, rig.truth("presses").0), (1, 2.0));
}

#[tokio::test]
async fn an_infrared_sender_never_says_completed() {
    let (mut rig, mut peer) = healthy(Kind::Infrared, 1.0).await;
    peer.set_to("op1", "power", Scalar::Bool(true), 60_000).await;
    for expected in [ReportResult::Received, ReportResult::Executing] {
        let report = peer.report().await.1;
        assert_eq!((report.result, report.status), (expected, vec![]));
    }
    assert_eq!(rig.truth("power"), (1.0, 1), "the other device heard it, and nobody can know");
    peer.run("op2", "mute").await;
    rig.until(|h| matches!(h, Happened::Acted { action, .. } if action == "mute")).await;
    for expected in [ReportResult::Received, ReportResult::Executing] {
        assert_eq!(peer.report().await.1.result, expected);
    }
    let state = peer.query("q1").await;
    assert_eq!((state.status, state.seen), (vec![], vec![]));
}

#[tokio::test]
async fn four_relays_move_apart_from_each_other() {
    let mut rig = Rig::of(Kind::Relays, 1.0, Fault::None).await;
    let (mut peer, _, hello) = rig.greeted("s1").await;
    assert_eq!(hello.exclusive, [["relay_3", "relay_4"]]);
    for n in 1..=4 {
        peer.set_to(&format!("op{n}"), &format!("relay_{n}"), Scalar::Bool(true), 60_000).await;
    }
    for _ in 1..=4 {
        let end = peer.reports_until_end().await.pop().unwrap();
        assert_eq!(end.result, ReportResult::Completed);
    }
    for n in 1..=4 {
        assert_eq!(rig.truth(&format!("relay_{n}")), (1.0, 1));
    }
    let mut seen = peer.query("q1").await.seen;
    seen.sort();
    let expected: Vec<_> = (1..=4).map(|n| (format!("relay_{n}").into(), format!("op{n}").into())).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_touch_at_the_wall_is_told_as_local() {
    let (rig, mut peer) = healthy(Kind::Relays, 1.0).await;
    assert!(rig.sim.handle().touch(Some("relay_2"), Some(1.0)));
    let state = peer.unasked().await;
    assert_eq!((state.cause, value(&state.status, "relay_2")), (CauseWord::Local, Some(&Scalar::Bool(true))));
    assert_eq!((state.seen, rig.truth("relay_2")), (vec![], (1.0, 1)));
    assert!(!rig.sim.handle().touch(Some("relay_9"), None));
}

#[tokio::test]
async fn s5_3_what_moves_without_a_connection_is_finished_and_told_in_the_next_session() {
    let (mut rig, mut peer) = healthy(Kind::Blind, 10.0).await;
    peer.set_to("op1", "position", Scalar::Number(60.0), 60_000).await;
    while peer.report().await.1.result != ReportResult::Executing {}
    rig.sim.set_fault(Fault::Offline);
    rig.until(|h| matches!(h, Happened::Stopped { at, .. } if *at == 60.0)).await;
    rig.sim.set_fault(Fault::None);
    let (mut peer, _, hello) = rig.greeted("s2").await;
    assert_eq!(value(&hello.state, "position"), Some(&Scalar::Number(60.0)));
    let end = peer.reports_until_end().await.pop().unwrap();
    assert_eq!(facts(&[end]), [("op1", ReportResult::Completed, None, false)]);
    assert_eq!(peer.query("q1").await.seen, [("position".into(), "op1".into())]);
}
