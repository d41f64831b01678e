//! What survives a reboot. Designed, not used yet: a relay's sets can be repeated, and flash wears.
//!
//! Wanted for actions that must not run twice (protocol, level 2): before driving, the `op` is written as an intent; after
//! the result it is cleared. An intent that is found at start means that nobody can say whether the action ran: its op goes
//! into the ring as `failed`, `interrupted`, so that a repeated command is answered and not carried out. A body implements
//! this over a wear-levelled store (`sequential-storage`), not over a raw sector: power may go in the middle of a write.

use truetwin_wire::limits::ID_BYTES_MAX;

/// Most intents at a time: one, because one thing moves at a time.
pub type Op = heapless::String<ID_BYTES_MAX>;

/// Keeps the one intent. Calls must not return before the change survives a loss of power.
pub trait Store {
    /// Why it failed.
    type Error: core::fmt::Debug;

    /// The intent that was not cleared, if any. Called once at start.
    ///
    /// # Errors
    /// The store cannot be read; the core then refuses non-repeatable actions.
    fn intent(&mut self) -> Result<Option<Op>, Self::Error>;

    /// Writes an intent. Called before driving.
    ///
    /// # Errors
    /// It could not be written; the core then does not drive.
    fn intend(&mut self, op: &str) -> Result<(), Self::Error>;

    /// Clears the intent. Called after the result is known.
    ///
    /// # Errors
    /// It could not be cleared; a reboot will then find it and answer `interrupted`, which is safe.
    fn done(&mut self) -> Result<(), Self::Error>;
}
