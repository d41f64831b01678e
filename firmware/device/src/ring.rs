//! The last operations and how they ended: what makes a repeated command an answer and not a movement.

use heapless::Deque;
use truetwin_wire::{
    limits::ID_BYTES_MAX,
    words::{ReasonWord, ReportResult},
};

/// An `op`, `session`, `boot` or `hub`.
pub(crate) type Id = heapless::String<ID_BYTES_MAX>;

/// How many operations are remembered (protocol, level 2). The hub has one in flight per property and repeats only that, so
/// eight cover a board of [`crate::machine::PROPERTIES_MAX`] properties.
const REMEMBERED: usize = 8;

/// One operation that has ended.
#[derive(Clone)]
pub(crate) struct Ended {
    pub(crate) op: Id,
    /// `None` if it was never tied to a property.
    pub(crate) property: Option<usize>,
    pub(crate) result: ReportResult,
    pub(crate) reason: Option<ReasonWord>,
}

#[derive(Default)]
pub(crate) struct Ring(Deque<Ended, REMEMBERED>);

impl Ring {
    pub(crate) fn find(&self, op: &str) -> Option<&Ended> {
        self.0.iter().find(|ended| ended.op == op)
    }

    /// Remembers one, forgetting the oldest.
    pub(crate) fn remember(&mut self, ended: Ended) {
        if self.0.is_full() {
            self.0.pop_front();
        }
        // There is room: one was just taken out.
        let _always_room = self.0.push_back(ended);
    }
}
