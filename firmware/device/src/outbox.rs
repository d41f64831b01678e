//! The events that wait to be sent: encoded, in order, in one fixed piece of memory.

use heapless::Deque;
use truetwin_wire::{device::NoRoom, limits::EVENT_BYTES_MAX};

/// Room for the longest hello and several reports after it. What does not fit is lost and counted: the hub then asks (an
/// unanswered query costs it less than a board that stops driving because nobody listens).
const BYTES: usize = EVENT_BYTES_MAX + 2048;

/// Most events; a report takes some 250 bytes, so the memory is full first.
const EVENTS: usize = 24;

pub(crate) struct Outbox {
    bytes: [u8; BYTES],
    lengths: Deque<u16, EVENTS>,
    used: usize,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES], lengths: Deque::new(), used: 0 }
    }

    /// Lets `write` put one event into the free memory.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, NoRoom>) -> Result<(), NoRoom> {
        let end = BYTES.min(self.used + EVENT_BYTES_MAX);
        let length = write(self.bytes.get_mut(self.used..end).ok_or(NoRoom)?)?;
        self.lengths.push_back(u16::try_from(length).map_err(|_| NoRoom)?).map_err(|_| NoRoom)?;
        self.used += length;
        Ok(())
    }

    /// The event that is next.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(*self.lengths.front()?))
    }

    /// Drops the event that was next.
    pub(crate) fn pop(&mut self) {
        if let Some(length) = self.lengths.pop_front() {
            self.bytes.copy_within(usize::from(length)..self.used, 0);
            self.used -= usize::from(length);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.used = 0;
    }
}
