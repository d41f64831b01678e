//! The session: the welcome, whose commands count, which of them are late.

use truetwin_wire::{
    device::{Head, ParseError},
    words::{CommandWord, ReasonWord},
};

use super::{Dropped, HEARTBEAT_MS_MIN, Heard, Machine, WELCOME_MS_MAX};
use crate::{board::Board, ring::Id};

impl Machine<'_> {
    pub(super) fn welcome(&mut self, head: &Head<'_>, hub: &str, epoch: u32, heartbeat_ms: u32, now_ms: u64) -> Heard {
        if self.hello_ms.is_none_or(|hello| now_ms > hello + WELCOME_MS_MAX) {
            return Heard::Dropped(Dropped::LateWelcome);
        }
        if self.hub.as_ref().is_some_and(|(known, last)| known == hub && epoch < *last) {
            return Heard::Dropped(Dropped::EarlierEpoch);
        }
        let (Ok(session), Ok(hub)) = (Id::try_from(head.session), Id::try_from(hub)) else {
            return Heard::Dropped(Dropped::Unreadable);
        };
        self.session = Some(session);
        self.hub = Some((hub, epoch));
        self.known = true;
        self.waiting.clear(); // they were of another session
        self.gone_ms = None;
        self.failed_safe.fill(false);
        self.changed_alone = None;
        self.greet_again = true;
        self.smallest_ms = Some(behind(now_ms, head.hub_ms));
        self.heartbeat_ms = u64::from(heartbeat_ms).max(HEARTBEAT_MS_MIN);
        self.next_heartbeat_ms = now_ms + self.heartbeat_ms;
        Heard::Welcome
    }

    /// Checks the session of a command and learns from its clock.
    pub(super) fn of_this_session(&mut self, head: &Head<'_>, now_ms: u64) -> Result<(), Dropped> {
        if self.session.as_ref().is_none_or(|session| session != head.session) {
            return Err(Dropped::OtherSession);
        }
        let behind = behind(now_ms, head.hub_ms);
        self.smallest_ms = Some(self.smallest_ms.map_or(behind, |smallest| smallest.min(behind)));
        Ok(())
    }

    /// Whether a command came, or would begin, later than it may: only differences of the two clocks count, so neither
    /// needs to know the time of day.
    pub(super) fn is_late(&self, hub_ms: u64, ttl_ms: u32, now_ms: u64) -> bool {
        let smallest = self.smallest_ms.unwrap_or(i64::MAX);
        behind(now_ms, hub_ms).saturating_sub(smallest) > i64::from(ttl_ms)
    }

    pub(super) fn unreadable(&mut self, error: ParseError<'_>, now_ms: u64, board: &mut impl Board) -> Heard {
        let ours = error.session.is_some() && error.session == self.session.as_deref();
        let action = match error.command {
            Some(CommandWord::Set) => "set",
            Some(CommandWord::Run) => "run",
            _ => return Heard::Dropped(Dropped::Unreadable),
        };
        match error.op {
            Some(op) if ours => self.reject(op, action, None, ReasonWord::Malformed, now_ms, board),
            _ => Heard::Dropped(Dropped::Unreadable),
        }
    }
}

/// How far this clock is ahead of the hub's; both are arbitrary, so only differences of this mean anything.
fn behind(now_ms: u64, hub_ms: u64) -> i64 {
    now_ms.wrapping_sub(hub_ms).cast_signed()
}
