//! The last operations and how they ended: what makes a repeated command an answer and not a movement.

use heapless::Deque;
use truetwin_wire::{
    limits::ID_BYTES_MAX,
    words::{ReasonWord, ReportResult},
};

use crate::board::Part;

/// An `op`, `session`, `boot` or `hub`.
pub(crate) type Id = heapless::String<ID_BYTES_MAX>;

/// How many operations are remembered (protocol, level 2). The hub has one in flight per property and repeats only that, so
/// eight cover a board of [`crate::machine::PROPERTIES_MAX`] properties. The oldest is forgotten, and with it a report that
/// nobody acknowledged: the hub then finds the end in `seen`, or asks.
const REMEMBERED: usize = 8;

/// Whether the hub has the report of an operation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It found no room, or its connection ended before it was acknowledged: it is told again.
    Owed,
    /// It is on its way as the event with this `seq`.
    Sent(u32),
    /// It was acknowledged, or there is nothing to tell.
    Done,
}

/// One operation that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) op: Id,
    /// `None` if it was never tied to a property or an action.
    pub(crate) part: Option<Part>,
    pub(crate) result: ReportResult,
    pub(crate) reason: Option<ReasonWord>,
    pub(crate) clamped: bool,
    pub(crate) told: Told,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ring(Deque<Ended, REMEMBERED>);

impl Ring {
    pub(crate) fn find(&self, op: &str) -> Option<&Ended> {
        self.0.iter().find(|ended| ended.op == op)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Ended> {
        self.0.iter_mut()
    }

    /// The oldest end that the hub does not know and that can be told.
    pub(crate) fn owed(&self) -> Option<&Ended> {
        self.0.iter().find(|ended| ended.told == Told::Owed && ended.part.is_some())
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
