//! One held wish: how it stands, when it is sent again, what of it outlives the hub, and the ids of its sendings.

use std::time::{Duration, Instant};

use crate::{
    property::{PropertyName, Value},
    twin::{
        ledger::SENT_STEP,
        operation::Operation,
        waiter::Waiter,
        wish::Target,
        words::{HeldState, OpId, Reason},
    },
};

/// The first pause before a held wish is sent again, and the longest (semantics 6.2): a heater that is off the air for a
/// moment is set at once, one that never obeys is not worn out.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Sendings of one held wish in one run of the hub: three days of the longest pause. More of them, and a start soon after that
/// is told by what was written ([`SENT_STEP`]).
const SENDINGS_OF_A_RUN: u32 = 1_024;

/// A wish that outlives its operation; opaque but to the twin and to recordings of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub(crate) value: Value,
    /// The operation that it came with.
    pub(crate) op: OpId,
    pub(crate) since: Instant,
    pub(crate) valid_until: Option<Instant>,
    /// How often it was sent in vain since it was last true.
    pub(crate) attempts: u32,
    /// How often it was sent at all: part of the ids of its operations.
    pub(crate) sent: u32,
    /// When it may be sent again.
    pub(crate) next_at: Instant,
    /// It is so, as far as is known; or the device has its own way.
    pub(crate) met: bool,
    /// It has come true since it was wished, and the device has not lost it by itself: what is otherwise was changed by
    /// somebody. Before that, that it is otherwise is why it is wished.
    pub(crate) came_true: bool,
    /// What was held before, in case that the caller of this one is refused.
    pub(crate) before: Option<Box<Held>>,
    /// It was wished while the device was away: its first operation is still to come, and its callers were told so. Empty: it
    /// was not, or that has been sent.
    pub(crate) stored: Vec<Waiter>,
    /// Somebody at the device has changed it, and that counts.
    pub(crate) overridden: bool,
    /// It does not fit the description any more: kept, shown, never sent (semantics 2.7).
    pub(crate) blocked: bool,
    /// Why it is not so, where its last operation said that.
    pub(crate) reason: Option<Reason>,
}

/// What of a held wish outlives the hub: what is wished, not how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What it shall be.
    pub value: Value,
    /// The operation that it came with.
    pub op: OpId,
    /// Since when it is wished.
    pub since: Instant,
    /// Until when, if not for ever.
    pub valid_until: Option<Instant>,
    /// How often it was sent: part of the ids of its operations, so that none comes twice.
    pub sent: u32,
    /// It has come true, and the device has not lost it by itself.
    pub came_true: bool,
    /// Somebody at the device has changed it, and that counts.
    pub overridden: bool,
    /// It does not fit the description.
    pub blocked: bool,
}

impl Held {
    /// A wish that nothing was done for yet.
    pub(in crate::twin) fn new(value: Value, op: OpId, since: Instant, valid_until: Option<Instant>) -> Self {
        Self {
            value,
            op,
            since,
            valid_until,
            attempts: 0,
            sent: 0,
            next_at: since,
            met: false,
            came_true: false,
            before: None,
            stored: Vec::new(),
            overridden: false,
            blocked: false,
            reason: None,
        }
    }

    /// The first operation of a wish that was stored.
    pub(in crate::twin) fn operation(&self, name: &PropertyName) -> Option<Operation> {
        let first = self.stored.first()?.clone();
        let mut operation = Operation::new(self.since, 0, first, name.clone(), Target::To(self.value.clone()));
        operation.waiters.clone_from(&self.stored);
        Some(operation)
    }

    /// What of it outlives the hub.
    pub fn kept(&self) -> Kept {
        let Self { value, op, since, valid_until, sent, came_true, overridden, blocked, .. } = self.clone();
        Kept { value, op, since, valid_until, sent, came_true, overridden, blocked }
    }

    /// Goes on after the hub began anew: it is wanted until the device says that it is so (semantics 5.8). The ids of its
    /// sendings are derived from their number, so that begins beyond all that can have been sent before: `epoch` grows with
    /// each start of the hub, also where what was written last is lost.
    pub fn resumed(kept: Kept, now: Instant, epoch: u32) -> Self {
        let Kept { value, op, since, valid_until, sent, came_true, overridden, blocked } = kept;
        let sent = sent.saturating_add(SENT_STEP).max(epoch.saturating_mul(SENDINGS_OF_A_RUN));
        let fresh = Self::new(value, op, since, valid_until);
        Self { sent, next_at: now, met: overridden, came_true, overridden, blocked, ..fresh }
    }

    pub(in crate::twin) fn wants(&self) -> bool {
        !self.met && !self.blocked
    }

    pub(in crate::twin) fn due(&self, now: Instant) -> bool {
        self.wants() && self.next_at <= now
    }

    pub(in crate::twin) fn state(&self, online: bool) -> HeldState {
        match (self.blocked, self.overridden, self.met, online) {
            (true, ..) => HeldState::Blocked,
            (_, true, true, _) => HeldState::LocalOverride,
            (_, _, true, _) => HeldState::Met,
            (_, _, _, false) => HeldState::Offline,
            (_, _, _, true) => HeldState::Pursued,
        }
    }
}

/// The id of a sending of a held wish, as a number of 48 bits.
pub(super) fn sending(op: &OpId, sent: u32) -> u64 {
    mixed(op, sent) & 0xFFFF_FFFF_FFFF
}

/// Whether an id is that of a sending of a wish that was held under `op`, in the run of the hub in which it was wished.
pub(in crate::twin) fn is_sending_of(op: &OpId, id: &OpId) -> bool {
    u64::from_str_radix(id.as_str(), 16).is_ok_and(|id| (1..=SENDINGS_OF_A_RUN).any(|sent| sending(op, sent) == id))
}

/// How long to wait after so many attempts in vain: doubling, and a quarter more or less by the operation's id, so that a
/// house full of heaters does not ask all at once.
pub(super) fn pause(op: &OpId, attempts: u32) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(PAUSE_MAX);
    let permille = u32::try_from(mixed(op, attempts) % 501).unwrap_or(250) + 750;
    (doubled * permille / 1_000).min(PAUSE_MAX)
}

/// FNV-1a of an id and a number: as good as chance here, and the same in each run.
fn mixed(op: &OpId, number: u32) -> u64 {
    let bytes = op.as_str().bytes().chain(number.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
