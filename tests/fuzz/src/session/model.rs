//! What may come back: the packets of a stream, read by the codec, and which answer each of them wants.

use std::collections::{BTreeSet, VecDeque};

use truetwin::broker::{
    MqttVersion::{self, V3_1_1, V5},
    Settings,
    codec::{Packet, Publish, decode, decode_connect},
};

use super::bench::GIVEN_UP;
use crate::packets::{ACCOUNT, DEVICE, packet};

/// The largest topic alias that an account may use.
const ALIASES_MAX: u16 = 16;

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
    /// Who it says it is, if it may be let in as such.
    pub(super) user: &'static str,
    /// The largest packet that it takes.
    packet_bytes_max: usize,
    /// The QoS 1 messages that it takes without acknowledging them.
    receive_max: usize,
    /// It acknowledges something.
    acknowledges: bool,
    /// Its topic aliases.
    aliases: BTreeSet<u16>,
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
    /// And a v5 client must hear why.
    for_a_reason: bool,
}

impl Model {
    pub(super) fn of(stream: &[u8]) -> Self {
        let mut model = Self {
            version: V5,
            user: "",
            packet_bytes_max: usize::MAX,
            receive_max: 0,
            acknowledges: false,
            aliases: BTreeSet::new(),
            answers: VecDeque::new(),
            acks: VecDeque::new(),
            reports: (0, 0),
            plausible: false,
            may_end: true,
            must_end: false,
            for_a_reason: false,
        };
        match decode_connect(stream, Settings::default().connect_bytes_max) {
            Ok(Some((connect, used))) => {
                model.version = connect.version;
                let known = |user: &str| {
                    connect.user == Some(user) && connect.password == Some(format!("pw-{user}").as_bytes())
                };
                model.user = [DEVICE, ACCOUNT].into_iter().find(|user| known(user)).unwrap_or_default();
                model.plausible = !model.user.is_empty();
                model.packet_bytes_max = connect.packet_bytes_max.map_or(usize::MAX, |bytes| bytes as usize);
                model.receive_max = usize::from(connect.receive_max);
                // Whether the rest of it is allowed shows in the CONNACK; this one must be let in.
                model.may_end = stream[..used] != super::login(connect.version, model.user)[..];
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
        let settings = Settings::default();
        let account = self.user == ACCOUNT;
        let bytes_max = if account { settings.accounts.packet_bytes_max } else { settings.packet_bytes_max };
        loop {
            match decode(stream, self.version, bytes_max) {
                Ok(Some((packet, used))) => {
                    self.packet(&packet, &mut seen);
                    if self.must_end {
                        return;
                    }
                    stream = &stream[used..];
                }
                Ok(None) => return,
                Err(_) => return self.end(),
            }
        }
    }

    /// What comes now must end it, with a code.
    fn end(&mut self) {
        (self.may_end, self.must_end, self.for_a_reason) = (true, true, true);
    }

    fn packet(&mut self, packet: &Packet<'_>, seen: &mut Vec<u16>) {
        match packet {
            Packet::Publish(publish) => self.publish(publish, seen),
            Packet::PubAck(_) => self.acknowledges = true,
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
        if publish.qos == 2 {
            return self.end(); // CONNACK says that it is not offered
        }
        if self.user == ACCOUNT {
            return self.publish_of_account(publish, seen);
        }
        if publish.alias.is_some() || (publish.retain && self.version == V5) {
            return self.end(); // CONNACK says that they are not offered to a device
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
        self.acknowledged(publish, again, seen);
        if own {
            self.reports.0 += usize::from(!again);
            self.reports.1 += 1;
        }
    }

    fn publish_of_account(&mut self, publish: &Publish<'_>, seen: &mut Vec<u16>) {
        if let Some(alias) = publish.alias {
            if alias > ALIASES_MAX || (publish.topic.is_empty() && !self.aliases.contains(&alias)) {
                return self.end();
            }
            self.aliases.insert(alias);
            self.may_end |= publish.dup; // what was said again is not looked into, and its alias is not known then
        }
        // 3.1.1 has no code for a topic that the account may not write.
        if self.version == V3_1_1 && publish.topic != "a" && !publish.topic.starts_with("a/") {
            (self.may_end, self.must_end) = (true, true);
            return;
        }
        let again = publish.qos == 1 && seen.contains(&publish.packet_id);
        self.acknowledged(publish, again, seen);
    }

    fn acknowledged(&mut self, publish: &Publish<'_>, again: bool, seen: &mut Vec<u16>) {
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
        let under_way = BTreeSet::new();
        Progress { model: self, answers, acks, under_way, accepted: false, first: true, over: false }
    }
}

/// How far the answers have come.
pub(super) struct Progress<'a> {
    model: &'a Model,
    answers: VecDeque<Answer>,
    acks: VecDeque<Ack>,
    /// Ids of QoS 1 messages that came to it.
    under_way: BTreeSet<u16>,
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
        assert!(2 + body.len() <= self.model.packet_bytes_max, "more than the client takes: {reply:?}");
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
            0x30..=0x3F => self.message(reply),
            0xE0 => {
                assert!(v5 && body[0] >= 0x80, "{reply:?}");
                assert!(self.model.may_end, "an innocent one was ended: {reply:?}");
                self.over = true;
            }
            _ => panic!("a packet that a server never sends, or a second CONNACK: {reply:?}"),
        }
    }

    fn message(&mut self, reply: &Reply) {
        let bytes = packet(reply.first, &reply.body);
        let Ok(Some((Packet::Publish(publish), _))) = decode(&bytes, self.model.version, bytes.len()) else {
            panic!("a PUBLISH that is none: {reply:?}");
        };
        assert!(publish.qos < 2 && publish.alias.is_none() && !publish.topic.is_empty(), "{reply:?}");
        if self.model.user == DEVICE {
            assert!(reply.first == 0x30 && publish.topic == "truetwin/lamp/command", "{reply:?}");
        } else if publish.qos == 1 && !self.model.acknowledges {
            assert!(self.under_way.insert(publish.packet_id), "an id that is under way: {reply:?}");
            assert!(self.under_way.len() <= self.model.receive_max, "more than the client takes at once: {reply:?}");
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
        if self.accepted && self.model.for_a_reason && self.model.version == V5 {
            assert!(self.over, "it was closed without a word");
        }
    }
}
