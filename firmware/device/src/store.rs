//! What survives a reboot: a few bytes for the actions that must not run twice (protocol, level 2).
//!
//! Before such an action the core writes its `op` as an intent; after the result it writes how it ended. What is found at the
//! next start goes into the ring of known operations: one that ended is answered with its result, one that did not is
//! `failed`, `interrupted`, because nobody can say whether it ran. Either way the same `op` is not carried out again.
//!
//! One operation is kept, the last: flash wears, and the hub has one operation of an action in flight. A body implements
//! this over a wear-levelled store (`sequential-storage`), an RTC memory that keeps its power, or an FRAM; not over a raw
//! sector, because power may go in the middle of a write. Sets are not kept: an absolute value may be set twice.

use truetwin_wire::limits::ID_BYTES_MAX;

/// The id of an operation.
pub type Op = heapless::String<ID_BYTES_MAX>;

/// How far a kept operation had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was about to begin; what became of it is not known.
    Begun,
    /// It was completed.
    Completed,
    /// It failed.
    Failed,
}

/// The memory could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFailed;

/// Keeps one operation: 17 bytes. Calls must not return before the change survives a loss of power.
pub trait Store {
    /// What was kept, if anything. Asked once at start.
    ///
    /// # Errors
    /// The memory cannot be read; the core then rejects non-repeatable actions (`unsupported`).
    fn kept(&mut self) -> Result<Option<(Op, Fate)>, StoreFailed>;

    /// Keeps an operation instead of the one before. Called with [`Fate::Begun`] before driving, and again with its end.
    ///
    /// # Errors
    /// It could not be written. Before driving the core then does not drive (`rejected`, `unsupported`); afterwards it goes
    /// on, and a reboot will find [`Fate::Begun`] and answer `interrupted`, which is safe.
    fn keep(&mut self, op: &str, fate: Fate) -> Result<(), StoreFailed>;
}
