//! The events that wait to be sent: encoded, in order, in one fixed piece of memory.

use core::fmt;

use heapless::Deque;
use truetwin_wire::{device::NoRoom, limits::EVENT_BYTES_MAX};

/// Room for the longest hello and several reports after it. What does not fit is lost and counted; of those the ends of
/// operations are told again when there is room (see [`crate::ring::Told`]), and for the rest the hub asks (an unanswered
/// query costs it less than a board that stops driving because nobody listens).
const BYTES: usize = EVENT_BYTES_MAX + 2048;

/// Most events; a report takes some 250 bytes, so the memory is full first.
const EVENTS: usize = 24;

/// Longest report of one operation, bytes: names, ids and a text value at their bounds, each character escaped.
pub(crate) const REPORT_BYTES_MAX: usize = 640;

#[derive(Clone)]
pub(crate) struct Outbox {
    bytes: [u8; BYTES],
    /// Length and `seq` of each.
    events: Deque<(u16, u32), EVENTS>,
    used: usize,
}

impl fmt::Debug for Outbox {
    /// What is in it, not what was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outbox").field(&self.bytes.get(..self.used)).finish()
    }
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES], events: Deque::new(), used: 0 }
    }

    /// Lets `write` put one event into the free memory.
    pub(crate) fn push(
        &mut self,
        seq: u32,
        write: impl FnOnce(&mut [u8]) -> Result<usize, NoRoom>,
    ) -> Result<(), NoRoom> {
        let end = BYTES.min(self.used + EVENT_BYTES_MAX);
        let length = write(self.bytes.get_mut(self.used..end).ok_or(NoRoom)?)?;
        self.events.push_back((u16::try_from(length).map_err(|_| NoRoom)?, seq)).map_err(|_| NoRoom)?;
        self.used += length;
        Ok(())
    }

    /// Whether a report of any length would find room.
    pub(crate) fn has_room(&self) -> bool {
        !self.events.is_full() && BYTES - self.used >= REPORT_BYTES_MAX
    }

    /// The event that is next, and its `seq`.
    pub(crate) fn front(&self) -> Option<(&[u8], u32)> {
        let (length, seq) = *self.events.front()?;
        Some((self.bytes.get(..usize::from(length))?, seq))
    }

    /// Drops the event that was next.
    pub(crate) fn pop(&mut self) {
        if let Some((length, _)) = self.events.pop_front() {
            self.bytes.copy_within(usize::from(length)..self.used, 0);
            self.used -= usize::from(length);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.used = 0;
    }
}
