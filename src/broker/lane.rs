//! One direction of the bus: numbers, keeps and repeats. Pure: no clock, no socket, no router.
//!
//! Frames are numbered densely from 0 (8 bytes before the body). The reader takes only the next number, so order is
//! kept and nothing comes twice; after a gap the sender goes back and sends again from there (go-back-N). A frame is
//! kept here until it came out of the router, whatever becomes of the router meanwhile.
//!
//! **Bytes inside the router are bounded** by `room`, because its log forgets the oldest when it is full: sending
//! again more than the log keeps would rotate it away again, without end. What went in is counted until it came out,
//! that which was sent in vain before going back included. Bytes that the router forgot would be counted for ever, so
//! a canary carries how many went in before it: when it comes out, all of those have left.
//!
//! A canary is a frame outside the numbering that also says which number follows it, so a lost tail is seen as well.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};

/// The number of a canary; no frame reaches it.
const CANARY: u64 = u64::MAX;

/// Bytes of the number before a frame's body.
const NUMBER_BYTES: usize = 8;

/// What rumqttd's log counts for a publish besides topic and payload (`router/logs.rs:40`).
const LOG_OVERHEAD_BYTES: u64 = 4;

/// Bytes of a canary: its mark, the number that follows, bytes that went in before it.
const CANARY_BYTES: usize = 3 * NUMBER_BYTES;

/// One direction. `C` is what belongs to a frame and cannot be written as bytes (a place in a channel, a connection).
pub(super) struct Lane<C> {
    /// Bytes that may be inside the router.
    room: u64,
    /// Bytes of the topic that each frame is published on, counted by the log.
    topic_bytes: u64,
    /// Frames not yet out of the router; the first has number `expect`.
    waiting: VecDeque<(Bytes, C)>,
    /// Bytes in `waiting`.
    waiting_bytes: usize,
    /// The number that the reader takes next.
    expect: u64,
    /// The number that goes into the router next; `expect <= cursor <= expect + waiting.len()`.
    cursor: u64,
    /// Bytes that went into this router, and how many of the first of them have left it: read or forgotten.
    injected: u64,
    left: u64,
    /// What went in before this was sent in vain: the sender has gone back since, so a gap in it is no news.
    in_vain: u64,
    /// When a canary last came out of the router.
    canary_ms: u64,
}

/// What came out of the router.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived<C> {
    /// The next frame: its body, and what belongs to it.
    Next(Bytes, C),
    /// A frame that came before.
    Duplicate,
    /// Something is missing; this many frames will be sent again at the next pump.
    Gap(u64),
    /// Something is missing, and that is known already.
    StillGap,
    /// A canary, and nothing is missing.
    Canary,
    /// No frame of ours.
    Foreign,
}

impl<C> Lane<C> {
    /// A lane whose frames are published on a topic of `topic_bytes` bytes, with at most `room` bytes inside the router.
    pub(super) fn new(topic_bytes: usize, room: u64) -> Self {
        Self {
            room,
            topic_bytes: topic_bytes as u64,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            expect: 0,
            cursor: 0,
            injected: 0,
            left: 0,
            in_vain: 0,
            canary_ms: 0,
        }
    }

    /// Puts a frame at the end. `write` writes its body.
    pub(super) fn push(&mut self, cargo: C, body_bytes: usize, write: impl FnOnce(&mut BytesMut)) {
        let number = self.expect + self.waiting.len() as u64;
        let mut frame = BytesMut::with_capacity(NUMBER_BYTES + body_bytes);
        frame.put_u64(number);
        write(&mut frame);
        self.waiting_bytes += frame.len();
        self.waiting.push_back((frame.freeze(), cargo));
    }

    /// The next frame that may go into the router now.
    pub(super) fn next_to_inject(&mut self) -> Option<Bytes> {
        if self.inside() >= self.room {
            return None;
        }
        let at = usize::try_from(self.cursor - self.expect).expect("at most waiting.len()");
        let frame = self.waiting.get(at)?.0.clone();
        self.cursor += 1;
        self.injected += self.counted(&frame);
        Some(frame)
    }

    /// Whether a frame waits that may go into the router now.
    pub(super) fn has_more(&self) -> bool {
        self.inside() < self.room && self.cursor < self.expect + self.waiting.len() as u64
    }

    /// Bytes inside the router, as it counts them; never fewer than there are. At most the room, one frame and the canaries.
    pub(super) fn inside(&self) -> u64 {
        self.injected - self.left
    }

    /// A canary, to go in behind what was injected. There is always room for one: they are few and small.
    pub(super) fn canary(&mut self) -> Bytes {
        let mut frame = BytesMut::with_capacity(CANARY_BYTES);
        frame.put_u64(CANARY);
        frame.put_u64(self.cursor);
        frame.put_u64(self.injected);
        let frame = frame.freeze();
        self.injected += self.counted(&frame);
        frame
    }

    /// Takes what came out of the router. Pump afterwards: room may have become free, or frames must go in again.
    pub(super) fn arrived(&mut self, frame: &Bytes, now_ms: u64) -> Arrived<C> {
        let Some(number) = read_number(frame, 0) else { return Arrived::Foreign };
        if number == CANARY {
            let numbers = (read_number(frame, NUMBER_BYTES), read_number(frame, 2 * NUMBER_BYTES));
            let (Some(follows), Some(before)) = numbers else { return Arrived::Foreign };
            self.canary_ms = now_ms;
            self.leave(before.saturating_sub(self.left) + self.counted(frame));
            return if follows > self.expect { self.gap(before) } else { Arrived::Canary };
        }
        let before = self.left;
        self.leave(self.counted(frame));
        if number < self.expect {
            return Arrived::Duplicate;
        }
        if number > self.expect {
            return self.gap(before);
        }
        let Some((kept, cargo)) = self.waiting.pop_front() else { return Arrived::Foreign };
        self.waiting_bytes -= kept.len();
        if self.waiting.is_empty() {
            self.waiting.shrink_to(64);
        }
        self.expect += 1;
        self.cursor = self.cursor.max(self.expect);
        Arrived::Next(frame.slice(NUMBER_BYTES..), cargo)
    }

    /// Everything that has not come out must go in again: the router is a new one. Says how many frames.
    pub(super) fn restart(&mut self, now_ms: u64) -> u64 {
        self.canary_ms = now_ms;
        (self.injected, self.left) = (0, 0);
        self.go_back()
    }

    /// Takes out all that has not come out of the router, in order: there will be no router any more.
    pub(super) fn take_all(&mut self) -> Vec<(Bytes, C)> {
        self.waiting_bytes = 0;
        self.expect += self.waiting.len() as u64;
        self.cursor = self.expect;
        self.waiting.drain(..).map(|(frame, cargo)| (frame.slice(NUMBER_BYTES..), cargo)).collect()
    }

    /// Milliseconds since a canary came out of the router.
    pub(super) fn canary_age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.canary_ms)
    }

    /// Bytes that have not come out of the router.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Frames that have not come out of the router.
    pub(super) fn waiting_frames(&self) -> usize {
        self.waiting.len()
    }

    /// Something is missing before a frame that had so many bytes in front of it.
    fn gap(&mut self, before: u64) -> Arrived<C> {
        if before < self.in_vain { Arrived::StillGap } else { Arrived::Gap(self.go_back()) }
    }

    fn go_back(&mut self) -> u64 {
        let again = self.cursor - self.expect;
        self.cursor = self.expect;
        self.in_vain = self.injected;
        again
    }

    fn leave(&mut self, bytes: u64) {
        self.left = self.injected.min(self.left + bytes);
    }

    fn counted(&self, frame: &Bytes) -> u64 {
        LOG_OVERHEAD_BYTES + self.topic_bytes + frame.len() as u64
    }
}

fn read_number(frame: &[u8], at: usize) -> Option<u64> {
    let bytes = frame.get(at..at + NUMBER_BYTES)?;
    Some(u64::from_be_bytes(bytes.try_into().expect("a slice of eight bytes")))
}

#[cfg(test)]
mod tests;
