//! A target: whatever a client sends, a real broker on a real socket answers each packet once and in order, or ends the
//! connection with a code, and tells the hub a whole story of it.

mod bench;
mod model;

use std::io::Write as _;

use truetwin::broker::MqttVersion::{self, V3_1_1, V5};

use self::{
    bench::{Bench, Heard},
    model::Model,
};
use crate::{
    packets::{ACCOUNT, DEVICE, connect, later, mutate, packet},
    random::{About, Source},
};

/// Packets of one session at most: fewer than the window is wide, so that none is held back for long.
const PACKETS_MAX: usize = 9;

/// A client's whole life, chosen from this source, against the broker of this process.
///
/// # Panics
/// If the broker does not keep its promises.
pub fn check(source: &mut Source<'_>) {
    let version = if source.once_in(2) { V5 } else { V3_1_1 };
    let user = if source.once_in(3) { ACCOUNT } else { DEVICE };
    let stream = script(source, version, user);
    let _about = About(&stream);
    run(&stream, source.once_in(2));
}

/// What the client sends: a CONNECT, mostly a good one, and packets behind it, mostly good ones.
fn script(source: &mut Source<'_>, version: MqttVersion, user: &str) -> Vec<u8> {
    let mut stream = if source.once_in(6) { connect(source, version, user) } else { login(version, user) };
    if source.once_in(24) {
        mutate(&mut stream, source);
    }
    for _ in 0..source.below(PACKETS_MAX) {
        let mut bytes = later(source, version);
        if source.once_in(8) {
            mutate(&mut bytes, source);
        }
        stream.extend_from_slice(&bytes);
        if source.is_empty() {
            break;
        }
    }
    stream
}

/// A CONNECT that must be let in.
pub fn login(version: MqttVersion, user: &str) -> Vec<u8> {
    let v5 = version == V5;
    let mut body = b"\0\x04MQTT".to_vec();
    body.extend_from_slice(&[if v5 { 5 } else { 4 }, 0xC6, 0, 60]);
    body.extend_from_slice(if v5 { b"\0\0\x01c\0" } else { b"\0\x01c" });
    let (topic, password) = (if user == DEVICE { "truetwin/lamp/status" } else { "a/will" }, format!("pw-{user}"));
    for text in [topic, "gone", user, &password] {
        body.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    packet(0x10, &body)
}

/// Sends this, piece by piece or in one, reads all that comes, and holds it against what may come.
fn run(stream: &[u8], at_once: bool) {
    let bench = Bench::of_this_process();
    let model = Model::of(stream);
    let mut client = bench.connect();
    let pieces = if at_once { stream.len().max(1) } else { 7 };
    for piece in stream.chunks(pieces) {
        if client.write_all(piece).is_err() {
            break; // it was closed; why, is in what it sent
        }
    }
    let mut progress = model.progress();
    let ended = loop {
        if progress.all_answered() {
            break false;
        }
        match client.reply() {
            Some(reply) => progress.take(&reply),
            None => break true,
        }
    };
    if ended {
        progress.ended();
    } else {
        client.close();
        while let Some(reply) = client.reply() {
            progress.take(&reply);
        }
    }
    if progress.accepted && model.user == DEVICE {
        story(bench, &model);
    }
}

/// What the hub heard of it: a beginning, reports, one end, and the will but after a goodbye.
fn story(bench: &Bench, model: &Model) {
    assert_eq!(bench.heard(), Heard::Connected, "a connection begins");
    let (mut reports, mut wills) = (0, 0);
    let clean = loop {
        match bench.heard() {
            Heard::Connected => panic!("a connection began twice"),
            Heard::Report => reports += 1,
            Heard::Will => wills += 1,
            Heard::Disconnected { clean } => break clean,
        }
        assert!(wills == 0 || reports <= model.reports.1, "more reports than were sent");
    };
    assert!(wills <= 1 && (!clean || wills == 0), "a will is told once, and never after a goodbye");
    assert!(reports <= model.reports.1, "{reports} reports came of {} at most", model.reports.1);
    if model.innocent() {
        assert!(reports >= model.reports.0, "{reports} reports came of {} at least", model.reports.0);
    }
    assert!(!bench.connected(DEVICE), "it is gone");
}
