//! The callers of one operation: each waits, is answered once, and may be owed a correction (semantics 4.3, 4.8, 6.3).

use std::time::{Duration, Instant};

use crate::twin::{
    wish::CallerId,
    words::{OpId, Outcome},
};

/// One caller of an operation; opaque but to the twin and to recordings of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiter {
    /// Its own id: what its answer names, whichever operation the device knows.
    pub(crate) op: OpId,
    pub(crate) caller: CallerId,
    /// How much later than the operation's first caller it asked.
    pub(crate) behind: Duration,
    /// `answer_by` less the margin: when it is answered at the latest (semantics 4.8).
    pub(crate) expires_at: Instant,
    pub(crate) hears: Hears,
}

/// What a caller has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// Nothing: it waits.
    Waits,
    /// It was told this.
    Told {
        /// What.
        outcome: Outcome,
        /// When: what changes later is owed to it for a while (semantics 6.3).
        at: Instant,
    },
    /// It stopped waiting, and was told nothing (semantics 4.7).
    Gone,
}

impl Waiter {
    pub(super) fn new(op: OpId, caller: CallerId, expires_at: Instant) -> Self {
        Self { op, caller, behind: Duration::ZERO, expires_at, hears: Hears::Waits }
    }

    pub(super) fn waits(&self) -> bool {
        self.hears == Hears::Waits
    }

    /// What it was told, and when.
    pub(super) fn told(&self) -> Option<(Outcome, Instant)> {
        match self.hears {
            Hears::Told { outcome, at } => Some((outcome, at)),
            Hears::Waits | Hears::Gone => None,
        }
    }
}
