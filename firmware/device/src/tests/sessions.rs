//! Greeting, sessions, reboots, heartbeats.

use std::sync::Arc;

use truetwin_wire::{
    Scalar,
    hub::{Command, Event, encode},
    words::{CauseWord, EvidenceWord, KindWord, ReasonWord::*, ReportResult::*},
};

use super::rig::{Mechanics, Rig};
use crate::{
    Board, Identity, Machine, Start,
    machine::{Dropped, Heard, Unusable, WELCOME_MS_MAX},
};

fn own(text: &str) -> Arc<str> {
    text.into()
}

#[test]
fn the_hello_carries_the_description_and_the_state() {
    let mut rig = Rig::started(Start::Unclean);
    rig.connect();
    let hello = rig.hello();
    assert_eq!((hello.proto, hello.level, hello.inline), (1, 3, true));
    assert_eq!(hello.desc.len(), 16);
    let properties: Vec<_> = hello.properties.iter().map(|p| (&*p.name, p.kind, p.feedback)).collect();
    let expected = [
        ("relay", KindWord::Bool, EvidenceWord::Pin),
        ("target", KindWord::Number, EvidenceWord::Firmware),
        ("count", KindWord::Integer, EvidenceWord::Sensor),
    ];
    assert_eq!(properties, expected);
    let state = [("relay", Scalar::Bool(false)), ("target", Scalar::Number(20.0)), ("count", Scalar::Integer(0))];
    assert_eq!(hello.state, state.map(|(name, value)| (own(name), value)));
    assert_eq!(hello.seen, []);
}

#[test]
fn after_an_unclean_start_the_outputs_are_safe_and_the_hello_says_boot() {
    let mut rig = Rig::started(Start::Unclean);
    assert_eq!((rig.bench.safe, rig.bench.now[0].clone()), (1, Scalar::Bool(false)));
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Boot);
    let kept = Rig::started(Start::Clean);
    assert_eq!((kept.bench.safe, kept.bench.now[0].clone()), (0, Scalar::Bool(true)));
}

#[test]
fn only_the_hello_before_the_first_welcome_says_boot() {
    let mut rig = Rig::started(Start::Unclean);
    rig.connect();
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Boot, "nobody has heard it yet");
    rig.welcome("hub", 1);
    rig.connect();
    assert_eq!(rig.hello().cause, CauseWord::Periodic);
}

#[test]
fn s5_1_no_command_counts_before_the_welcome_or_of_another_session() {
    let mut rig = Rig::started(Start::Unclean);
    assert_eq!(rig.switch("op1", true), Heard::Dropped(Dropped::OtherSession), "not connected");
    rig.connect();
    assert_eq!(rig.switch("op1", true), Heard::Dropped(Dropped::OtherSession), "not welcomed");
    rig.welcome("hub", 1);
    rig.session = "s0";
    assert_eq!(rig.switch("op1", true), Heard::Dropped(Dropped::OtherSession));
    assert_eq!(rig.query("q1", None), Heard::Dropped(Dropped::OtherSession));
    assert_eq!(rig.withdraw("op1"), Heard::Dropped(Dropped::OtherSession));
    rig.pass(0);
    assert_eq!((rig.bench.drives, rig.results()), (0, vec![]));
}

#[test]
fn s5_1_a_retained_command_is_dropped() {
    let mut rig = Rig::welcomed();
    let command = encode(&rig.set_command("op1", "relay", Scalar::Bool(true)));
    let heard = rig.machine.handle(&command, true, rig.now_ms, &mut rig.bench);
    rig.pass(0);
    assert_eq!((heard, rig.bench.drives), (Heard::Dropped(Dropped::Retained), 0));
}

#[test]
fn a_welcome_of_the_same_hub_with_a_smaller_epoch_is_not_accepted() {
    let mut rig = Rig::welcomed();
    rig.connect();
    rig.session = "s2";
    assert_eq!(rig.welcome("hub", 6), Heard::Dropped(Dropped::EarlierEpoch));
    assert_eq!(rig.welcome("hub", 7), Heard::Welcome, "the same epoch");
    rig.connect();
    assert_eq!(rig.welcome("other", 1), Heard::Welcome, "another hub");
}

#[test]
fn a_welcome_that_comes_too_late_is_not_accepted_and_the_hello_is_overdue() {
    let mut rig = Rig::started(Start::Unclean);
    assert_eq!(rig.welcome("hub", 1), Heard::Dropped(Dropped::LateWelcome), "without a hello");
    rig.connect();
    assert_eq!(rig.machine.deadline(&rig.bench), Some(rig.now_ms + WELCOME_MS_MAX + 1));
    rig.now_ms += WELCOME_MS_MAX;
    assert!(!rig.machine.welcome_overdue(rig.now_ms));
    rig.now_ms += 1;
    assert!(rig.machine.welcome_overdue(rig.now_ms));
    assert_eq!(rig.welcome("hub", 1), Heard::Dropped(Dropped::LateWelcome));
}

#[test]
fn a_heartbeat_is_sent_by_the_step_that_drives_and_only_in_a_session() {
    let mut rig = Rig::welcomed();
    rig.pass(4_999);
    assert_eq!(rig.events(), []);
    rig.pass(1);
    let beat = &rig.events()[0];
    assert_eq!((&beat.event, &*beat.session, &*beat.boot), (&Event::Heartbeat, "s1", "b00t"));
    rig.machine.disconnected(rig.now_ms);
    rig.pass(10_000);
    assert_eq!(rig.events(), []);
}

#[test]
fn a_lost_connection_ends_the_session_and_forgets_what_has_not_begun() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.machine.disconnected(rig.now_ms);
    assert_eq!(rig.switch("op2", true), Heard::Dropped(Dropped::OtherSession), "even of the session that was");
    rig.pass(0);
    assert_eq!(rig.bench.drives, 0);
}

#[test]
fn s5_3_an_op_that_was_not_begun_may_come_again_in_the_next_session() {
    let mut rig = Rig::welcomed();
    rig.switch("op1", true);
    rig.connect();
    rig.session = "s2";
    rig.welcome("hub", 7);
    rig.events();
    rig.switch("op1", true);
    rig.pass(0);
    rig.pass(10);
    let results = [Received, Executing, Completed].map(|result| (own("op1"), result, None, false));
    assert_eq!(rig.results(), results);
}

#[test]
fn what_has_begun_is_finished_without_a_connection_and_seen_in_the_next_hello() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Slow;
    rig.switch("op1", true);
    rig.pass(0);
    rig.machine.disconnected(rig.now_ms);
    rig.bench.arrive();
    rig.pass(10);
    rig.connect();
    let hello = rig.hello();
    assert_eq!(hello.seen, [(own("relay"), own("op1"))]);
    assert_eq!(hello.state[0], (own("relay"), Scalar::Bool(true)));
    rig.session = "s2";
    rig.welcome("hub", 7);
    rig.switch("op1", true);
    assert_eq!(rig.results(), [(own("op1"), Completed, None, true)]);
}

#[test]
fn what_has_begun_reports_into_the_session_of_its_end() {
    let mut rig = Rig::welcomed();
    rig.bench.mechanics = Mechanics::Stuck;
    rig.switch("op1", true);
    rig.pass(0);
    rig.connect();
    rig.session = "s2";
    rig.welcome("hub", 7);
    rig.events();
    rig.pass(400);
    let events = rig.events();
    assert_eq!((events.len(), &*events[0].session), (1, "s2"));
    assert!(matches!(&events[0].event, Event::ActionReport(r) if r.reason == Some(Stuck)));
}

#[test]
fn seq_counts_from_one_over_all_sessions_of_a_run() {
    let mut rig = Rig::started(Start::Unclean);
    rig.connect();
    assert_eq!(rig.events()[0].seq, 1);
    rig.welcome("hub", 1);
    rig.query("q1", None);
    assert_eq!(rig.events()[0].seq, 2);
    rig.connect();
    assert_eq!(rig.events()[0].seq, 3);
}

#[test]
fn a_refusal_and_an_error_are_told_to_the_body() {
    let mut rig = Rig::started(Start::Unclean);
    rig.connect();
    let reason = truetwin_wire::words::ErrorWord::NoTolerance;
    assert_eq!(rig.tell(&Command::Refused { reason, path: None, allowed: None }), Heard::Refused);
    assert_eq!(rig.tell(&Command::Error { of_seq: Some(1), reason, path: None, allowed: None }), Heard::Error);
    assert_eq!(rig.tell(&Command::Describe { page: 0 }), Heard::Dropped(Dropped::NotYet));
}

#[test]
fn a_board_or_a_name_that_cannot_be_is_said_before_anything_is_connected() {
    let mut bench = Rig::started(Start::Clean).bench;
    let mut make = |device, boot| {
        let identity = Identity { device, model: "m", fw: "1" };
        Machine::new(identity, boot, Start::Clean, &mut bench).err()
    };
    assert_eq!(make("bench", ""), Some(Unusable::Boot));
    assert_eq!(make("bench", "12345678901234567"), Some(Unusable::Boot));
    assert_eq!(make("Bench", "b"), Some(Unusable::Device));
    assert_eq!(make("bench", "b"), None);
    assert_eq!(bench.properties().len(), 3);
}
