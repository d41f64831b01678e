//! What may come back: the packets of a stream, read by the codec, and which answer each of them wants.

use std::collections::VecDeque;

use truetwin::broker::{
    MqttVersion::{self, V3_1_1, V5},
    codec::{Packet, Publish, decode, decode_connect},
};

use super::bench::GIVEN_UP;
use crate::packets::DEVICE;

/// The largest packet that the broker takes.
const PACKET_BYTES_MAX: usize = 4096;

/// A packet of the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) first: u8,
    pub(super) body: Vec<u8>,
}

/// An answer that is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    SubAck { id: u16, codes: usize },
    UnsubAck { id: u16, codes: usize },
    PingResp,
}

/// A PUBACK that is awaited. One for an id that is under way already may be left out: it is the same message said again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ack {
    id: u16,
    wanted: bool,
}

/// What a stream asks for.
pub(super) struct Model {
    version: MqttVersion,
    answers: VecDeque<Answer>,
    acks: VecDeque<Ack>,
    /// Reports that reach the hub: at least, at most.
    pub(super) reports: (usize, usize),
    /// It may be let in. Else it must not be.
    plausible: bool,
    /// The broker may end it, for what is in the stream.
    may_end: bool,
    /// It must.
    must_end: bool,
}

impl Model {
    pub(super) fn of(stream: &[u8]) -> Self {
        let mut model = Self {
            version: V5,
            answers: VecDeque::new(),
            acks: VecDeque::new(),
            reports: (0, 0),
            plausible: false,
            may_end: true,
            must_end: false,
        };
        match decode_connect(stream, PACKET_BYTES_MAX) {
            Ok(Some((connect, used))) => {
                model.version = connect.version;
                model.plausible = connect.user == Some(DEVICE) && connect.password == Some(b"pw-lamp");
                // Whether the rest of it is allowed shows in the CONNACK; this one must be let in.
                model.may_end = stream[..used] != super::login(connect.version)[..];
                model.must_end = !model.plausible;
                model.later(&stream[used..]);
            }
            Ok(None) => {} // it waits, and is closed
            Err(_) => model.must_end = true,
        }
        model
    }

    fn later(&mut self, mut stream: &[u8]) {
        let mut seen = Vec::new();
        loop {
            match decode(stream, self.version, PACKET_BYTES_MAX) {
                Ok(Some((packet, used))) => {
                    self.packet(&packet, &mut seen);
                    if self.must_end {
                        return;
                    }
                    stream = &stream[used..];
                }
                Ok(None) => return,
                Err(_) => {
                    (self.may_end, self.must_end) = (true, true);
                    return;
                }
            }
        }
    }

    fn packet(&mut self, packet: &Packet<'_>, seen: &mut Vec<u16>) {
        match packet {
            Packet::Publish(publish) => self.publish(publish, seen),
            Packet::PubAck(_) => {}
            Packet::Subscribe(subscribe) => {
                let codes = subscribe.subscriptions().count();
                self.answers.push_back(Answer::SubAck { id: subscribe.packet_id, codes });
            }
            Packet::Unsubscribe(unsubscribe) => {
                let codes = if self.version == V5 { unsubscribe.filters().count() } else { 0 };
                self.answers.push_back(Answer::UnsubAck { id: unsubscribe.packet_id, codes });
            }
            Packet::PingReq => self.answers.push_back(Answer::PingResp),
            Packet::Disconnect(_) => (self.may_end, self.must_end) = (true, true),
        }
    }

    fn publish(&mut self, publish: &Publish<'_>, seen: &mut Vec<u16>) {
        // What CONNACK says is not offered ends it.
        if publish.qos == 2 || publish.alias.is_some() || (publish.retain && self.version == V5) {
            (self.may_end, self.must_end) = (true, true);
            return;
        }
        let own = publish.topic.strip_prefix("truetwin/lamp/").is_some_and(|last| matches!(last, "event" | "status"));
        // 3.1.1 has no code for a foreign topic, nor for a report that the hub did not take in.
        if self.version == V3_1_1 && (!own || publish.payload == GIVEN_UP) {
            self.may_end = true;
        }
        if self.version == V3_1_1 && !own {
            self.must_end = true;
            return;
        }
        let again = publish.qos == 1 && seen.contains(&publish.packet_id);
        if own {
            self.reports.0 += usize::from(!again);
            self.reports.1 += 1;
        }
        if publish.qos == 1 {
            self.acks.push_back(Ack { id: publish.packet_id, wanted: !again });
            seen.push(publish.packet_id);
        }
    }

    /// It gives no cause to be ended.
    pub(super) fn innocent(&self) -> bool {
        self.plausible && !self.may_end
    }

    pub(super) fn progress(&self) -> Progress<'_> {
        let (answers, acks) = (self.answers.clone(), self.acks.clone());
        Progress { model: self, answers, acks, accepted: false, first: true, over: false }
    }
}

/// How far the answers have come.
pub(super) struct Progress<'a> {
    model: &'a Model,
    answers: VecDeque<Answer>,
    acks: VecDeque<Ack>,
    /// CONNACK said yes.
    pub(super) accepted: bool,
    first: bool,
    /// CONNACK said no, or DISCONNECT was said: nothing may follow.
    over: bool,
}

impl Progress<'_> {
    /// Whether nothing more is awaited, not even an end.
    pub(super) fn all_answered(&self) -> bool {
        let quiet = self.answers.is_empty() && !self.acks.iter().any(|ack| ack.wanted);
        let begun = self.accepted || !self.model.plausible;
        !self.model.must_end && begun && quiet && !self.over
    }

    /// One more packet of the broker.
    pub(super) fn take(&mut self, reply: &Reply) {
        let Reply { first, body } = reply;
        assert!(!self.over, "something came behind the last packet: {reply:?}");
        if std::mem::take(&mut self.first) {
            return self.connack(*first, body);
        }
        let id = || u16::from_be_bytes([body[0], body[1]]);
        let v5 = self.model.version == V5;
        match first {
            0x90 | 0xB0 => {
                let codes = body.len() - 2 - usize::from(v5);
                let answer = match *first {
                    0x90 => Answer::SubAck { id: id(), codes },
                    _ => Answer::UnsubAck { id: id(), codes: if v5 { codes } else { 0 } },
                };
                assert_eq!(self.answers.pop_front(), Some(answer), "each packet is answered once, in order");
            }
            0xD0 => assert_eq!(self.answers.pop_front(), Some(Answer::PingResp)),
            0x40 => {
                assert!(body.len() == 2 || (v5 && body.len() == 3 && body[2] >= 0x80), "{reply:?}");
                let mut skipped = std::iter::from_fn(|| self.acks.pop_front());
                let found = skipped.find(|ack| ack.id == id() || ack.wanted);
                assert_eq!(found.map(|ack| ack.id), Some(id()), "each QoS 1 publish is answered once, in order");
            }
            0x30 => assert!(body.starts_with(b"\0\x15truetwin/lamp/command"), "{reply:?}"),
            0xE0 => {
                assert!(v5 && body[0] >= 0x80, "{reply:?}");
                assert!(self.model.may_end, "an innocent one was ended: {reply:?}");
                self.over = true;
            }
            _ => panic!("a packet that a server never sends, or a second CONNACK: {reply:?}"),
        }
    }

    fn connack(&mut self, first: u8, body: &[u8]) {
        assert_eq!(first, 0x20, "a CONNACK comes first: {body:?}");
        assert_eq!(body[0], 0, "no session is ever present");
        let code = body[1];
        if code == 0 {
            assert!(self.model.plausible, "it was let in without a login");
            self.accepted = true;
            return;
        }
        assert!(self.model.may_end, "it must be let in: {code}");
        assert!(if body.len() == 2 { code <= 5 } else { code >= 0x80 }, "{body:?}");
        self.over = true;
    }

    /// The broker closed it.
    pub(super) fn ended(&self) {
        assert!(self.model.may_end, "an innocent one was closed");
    }
}
