//! What waits for one account's connection: messages in order, retained ones that a subscription asked for, and the window of
//! QoS 1 messages that it has not acknowledged. Pure; the session fills its buffer from here.
//!
//! | bound | at it |
//! |---|---|
//! | bytes that wait | a QoS 0 message is dropped and counted; for a QoS 1 message the connection is closed, so that nothing is lost in silence |
//! | QoS 1 messages that are not acknowledged | the rest waits |
//! | the client's largest packet | the message is dropped and counted (3.1.2.11.4) |

use std::{collections::VecDeque, sync::Arc};

use super::{message::Message, retained::Next, wanted::Wanting};
use crate::broker::{MqttVersion, door::codec::encode};

/// Bytes in the session's buffer above which nothing more is put in: a few packets ahead of the socket are enough.
const AHEAD_BYTES: usize = 32 << 10;

/// Retained topics, and subscriptions that want them, that are looked at in one filling: some 0.1 ms. All filters of one SUBSCRIBE
/// over all that is retained are seconds, in which nobody else would have a turn.
pub(in crate::broker) const LOOKS_AT_ONCE: usize = 1_024;

/// One connection's outbox.
pub(in crate::broker) struct Outbox {
    version: MqttVersion,
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    bytes_max: usize,
    /// Subscriptions whose retained messages are still to be sent.
    wanted: Wanting,
    /// Packet ids of QoS 1 messages that are not acknowledged.
    inflight: Vec<u16>,
    inflight_max: usize,
    last_id: u16,
    packet_bytes_max: usize,
}

struct Queued {
    message: Arc<Message>,
    qos: u8,
    retain: bool,
}

/// What became of a message that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) enum Offered {
    /// It waits.
    Taken,
    /// It was dropped: QoS 0, and too much waits already.
    Dropped,
    /// It could not be taken and must not be dropped: the connection is to be closed.
    Overrun,
}

/// What came of filling the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::broker) struct Filled {
    /// Messages put in.
    pub(in crate::broker) sent: u64,
    /// Messages that had expired.
    pub(in crate::broker) expired: u64,
    /// Messages larger than the client takes.
    pub(in crate::broker) too_large: u64,
    /// It has looked at as much as it may in one turn: there is more to do, once others had theirs.
    pub(in crate::broker) more: bool,
}

impl Outbox {
    pub(in crate::broker) fn new(
        version: MqttVersion,
        bytes_max: usize,
        inflight_max: u16,
        packet_bytes_max: usize,
    ) -> Self {
        Self {
            version,
            queue: VecDeque::new(),
            queued_bytes: 0,
            bytes_max,
            wanted: Wanting::default(),
            inflight: Vec::new(),
            inflight_max: usize::from(inflight_max),
            last_id: 0,
            packet_bytes_max,
        }
    }

    /// Puts a message in line.
    pub(in crate::broker) fn offer(&mut self, message: &Arc<Message>, qos: u8, retain: bool) -> Offered {
        let bytes = message.bytes();
        // One message is taken whatever its size: what may come in may go out.
        if self.queued_bytes + bytes > self.bytes_max && !self.queue.is_empty() {
            return if qos == 0 { Offered::Dropped } else { Offered::Overrun };
        }
        self.queued_bytes += bytes;
        self.queue.push_back(Queued { message: message.clone(), qos, retain });
        Offered::Taken
    }

    /// A subscription wants what is retained.
    pub(in crate::broker) fn want(&mut self, filter: &str, qos: u8) {
        self.wanted.push(filter, qos);
    }

    /// It does not any more.
    pub(in crate::broker) fn unwant(&mut self, filter: &str) {
        self.wanted.remove(filter);
    }

    /// Whether retained messages are still to be sent.
    #[cfg(test)]
    fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The client has acknowledged a message. An id that nobody waits for is of no meaning.
    pub(in crate::broker) fn acknowledged(&mut self, packet_id: u16) {
        if let Some(at) = self.inflight.iter().position(|id| *id == packet_id) {
            self.inflight.swap_remove(at);
        }
        if self.inflight.is_empty() {
            self.inflight = Vec::new(); // an idle connection keeps no memory
        }
    }

    /// Puts packets into a buffer until it is full enough, the window is, nothing waits, or [`LOOKS_AT_ONCE`] are made. What is
    /// retained goes first. `next_retained`: the next message that a filter matches behind a topic, within so many looks, of
    /// which it takes those that it made.
    pub(in crate::broker) fn fill(
        &mut self,
        out: &mut Vec<u8>,
        now_ms: u64,
        mut next_retained: impl FnMut(&str, Option<&str>, &mut usize) -> Next,
    ) -> Filled {
        let mut filled = Filled::default();
        let mut looks = LOOKS_AT_ONCE;
        while out.len() < AHEAD_BYTES
            && let Some(wanted) = self.wanted.first()
        {
            if looks == 0 {
                filled.more = true;
                return filled;
            }
            looks -= 1; // also what matches nothing is one
            let (topic, message) = match next_retained(&wanted.filter, wanted.after.as_deref(), &mut looks) {
                Next::Found(topic, message) => (topic, message),
                Next::StoppedAt(topic) => {
                    wanted.after = Some(topic);
                    continue;
                }
                Next::NoMore => {
                    self.wanted.pop();
                    continue;
                }
            };
            let qos = wanted.qos.min(message.qos);
            if !self.put(out, &message, qos, true, now_ms, &mut filled) {
                return filled;
            }
            if let Some(wanted) = self.wanted.first() {
                wanted.after = Some(topic);
            }
        }
        while out.len() < AHEAD_BYTES
            && let Some(next) = self.queue.front()
        {
            let (message, qos, retain) = (next.message.clone(), next.qos, next.retain);
            if !self.put(out, &message, qos, retain, now_ms, &mut filled) {
                return filled;
            }
            self.queue.pop_front();
            self.queued_bytes -= message.bytes();
        }
        if self.queue.is_empty() && self.queue.capacity() > 0 {
            self.queue = VecDeque::new();
        }
        filled
    }

    /// Puts one packet into the buffer, or drops what cannot be sent. False: the window is full.
    fn put(
        &mut self,
        out: &mut Vec<u8>,
        message: &Message,
        qos: u8,
        retain: bool,
        now_ms: u64,
        filled: &mut Filled,
    ) -> bool {
        if message.expired(now_ms) {
            filled.expired += 1;
            return true;
        }
        if qos == 1 && self.inflight.len() >= self.inflight_max {
            return false;
        }
        let packet_id = if qos == 1 { self.free_id() } else { 0 };
        let packet = message.outgoing(packet_id, retain, now_ms);
        if encode::publish_bytes(self.version, &packet) > self.packet_bytes_max {
            filled.too_large += 1;
            return true;
        }
        if packet_id != 0 {
            self.inflight.push(packet_id);
        }
        encode::publish(out, self.version, &packet);
        filled.sent += 1;
        true
    }

    /// A packet id that no message in flight has; there are 65 535, and far fewer messages in flight.
    fn free_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.inflight.contains(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::broker::relay::retained::Retained;

    fn message(payload: &str) -> Arc<Message> {
        Arc::new(Message::plain("a".to_owned(), Bytes::copy_from_slice(payload.as_bytes()), 1))
    }

    fn outbox(messages: usize, inflight_max: u16) -> Outbox {
        Outbox::new(MqttVersion::V3_1_1, messages * message("x").bytes(), inflight_max, 1_000)
    }

    fn filled(outbox: &mut Outbox) -> (Filled, Vec<u8>) {
        let mut out = Vec::new();
        (outbox.fill(&mut out, 0, |_, _, _| Next::NoMore), out)
    }

    #[test]
    fn at_its_bound_what_nobody_promised_is_dropped_and_what_was_promised_ends_the_connection() {
        let mut outbox = outbox(2, 10);
        assert_eq!(outbox.offer(&message("1"), 1, false), Offered::Taken);
        assert_eq!(outbox.offer(&message("2"), 0, false), Offered::Taken);
        assert_eq!(outbox.offer(&message("3"), 0, false), Offered::Dropped);
        assert_eq!(outbox.offer(&message("3"), 1, false), Offered::Overrun);
        let (all, out) = filled(&mut outbox);
        assert_eq!(all.sent, 2);
        assert_eq!(out, b"\x32\x06\0\x01a\0\x011\x30\x04\0\x01a2");
        assert_eq!(outbox.offer(&message("3"), 1, false), Offered::Taken);
    }

    #[test]
    fn no_more_are_sent_than_the_client_takes_unacknowledged_and_their_order_is_kept() {
        let mut outbox = outbox(10, 2);
        for text in ["1", "2", "3"] {
            outbox.offer(&message(text), 1, false);
        }
        outbox.offer(&message("4"), 0, false);
        assert_eq!(filled(&mut outbox).0.sent, 2);
        outbox.acknowledged(7);
        assert_eq!(filled(&mut outbox).0.sent, 0, "an id that nobody waits for");
        outbox.acknowledged(1);
        let (rest, out) = filled(&mut outbox);
        assert_eq!(rest.sent, 2);
        assert_eq!(out, b"\x32\x06\0\x01a\0\x033\x30\x04\0\x01a4");
    }

    #[test]
    fn ids_in_flight_are_not_given_again() {
        let mut outbox = outbox(200_000, 3);
        outbox.offer(&message("held"), 1, false);
        filled(&mut outbox);
        for _ in 0..70_000 {
            outbox.offer(&message("x"), 1, false);
            let (_, out) = filled(&mut outbox);
            let id = u16::from_be_bytes([out[5], out[6]]);
            assert!(id > 1, "1 is in flight, 0 is none");
            outbox.acknowledged(id);
        }
    }

    #[test]
    fn what_has_expired_or_is_larger_than_the_client_takes_is_not_sent() {
        let mut outbox = outbox(10, 10);
        outbox.offer(&Arc::new(Message { expires_ms: Some(5), ..(*message("1")).clone() }), 1, false);
        outbox.offer(&message(&"x".repeat(1_000)), 1, false);
        outbox.offer(&message("2"), 1, false);
        let mut out = Vec::new();
        let all = outbox.fill(&mut out, 5, |_, _, _| Next::NoMore);
        assert_eq!(all, Filled { sent: 1, expired: 1, too_large: 1, more: false });
        assert!(out.starts_with(b"\x32\x06\0\x01a") && out.ends_with(b"2"));
    }

    #[test]
    fn the_time_that_is_left_is_counted_down() {
        let mut outbox = Outbox::new(MqttVersion::V5, 10_000, 10, 1_000);
        for now_ms in [0, 4_000, 9_001] {
            outbox.offer(&Arc::new(Message { expires_ms: Some(10_000), ..(*message("1")).clone() }), 0, false);
            let mut out = Vec::new();
            outbox.fill(&mut out, now_ms, |_, _, _| Next::NoMore);
            let left = [10, 6, 1][usize::from(now_ms >= 4_000) + usize::from(now_ms > 9_000)];
            assert_eq!(out, [0x30, 10, 0, 1, b'a', 5, 0x02, 0, 0, 0, left, b'1'], "after {now_ms} ms");
        }
    }

    #[test]
    fn retained_messages_go_one_by_one_through_the_window() {
        let mut outbox = outbox(10, 1);
        outbox.want("#", 1);
        let all = ["a", "b", "c"].map(|topic| Arc::new(Message { topic: topic.into(), ..(*message("x")).clone() }));
        let mut told = Vec::new();
        while outbox.wants() {
            let mut out = Vec::new();
            outbox.fill(&mut out, 0, |_, after, _| {
                let next = all.iter().find(|m| after.is_none_or(|after| &*m.topic > after));
                next.map_or(Next::NoMore, |next| Next::Found((&*next.topic).into(), next.clone()))
            });
            if let [_, _, _, _, topic, high, low, ..] = out[..] {
                assert_eq!(out[0], 0x33, "QoS 1, retained");
                told.push(char::from(topic));
                outbox.acknowledged(u16::from_be_bytes([high, low]));
            }
        }
        assert_eq!(told, ['a', 'b', 'c']);
    }

    #[test]
    fn filters_that_match_nothing_of_much_that_is_retained_let_others_have_their_turn() {
        let mut retained = Retained::new(3_000, 10_000_000);
        for number in 0..3_000 {
            let topic = format!("a/d{number:04}/state").into();
            retained.set(Arc::new(Message { topic, ..(*message("x")).clone() }), 0).expect("room");
        }
        let mut outbox = outbox(10, 10);
        for number in 0..50 {
            outbox.want(&format!("+/+/n{number}"), 0);
        }
        outbox.want("+/d2999/+", 0);
        let (mut sent, mut turns) = (0, 0);
        while outbox.wants() {
            let (mut out, mut looked, mut left_before) = (Vec::new(), 0, LOOKS_AT_ONCE);
            let filled = outbox.fill(&mut out, 0, |filter, after, looks| {
                let next = retained.next(filter, after, 0, looks);
                looked += left_before - *looks;
                left_before = *looks;
                next
            });
            assert!(looked <= LOOKS_AT_ONCE);
            assert_eq!(filled.more, outbox.wants(), "whoever has not come to the end says so");
            (sent, turns) = (sent + filled.sent, turns + 1);
        }
        assert_eq!(sent, 1, "and nothing is passed over");
        assert!(turns >= 51 * 3_000 / LOOKS_AT_ONCE);
    }
}
