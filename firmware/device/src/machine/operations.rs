//! What becomes of an operation: taken, begun, looked at, ended, repeated, withdrawn.

use truetwin_wire::{
    Scalar,
    words::{ReasonWord, ReportResult},
};

use super::{CHECK_MS, Dropped, Heard, Machine, Moving, Waiting};
use crate::{
    board::Board,
    ring::{Ended, Id},
    value,
};

impl Machine<'_> {
    pub(super) fn set(
        &mut self,
        op: &str,
        name: &str,
        value: &Scalar,
        (hub_ms, ttl_ms): (u64, u32),
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.repeated(op, "set", now_ms, board) {
            return Heard::Command;
        }
        let found = board.properties().iter().enumerate().find(|(_, spec)| spec.name == name);
        let checked = found.map(|(at, spec)| (at, value::checked(spec, value)));
        let (property, wish) = match checked {
            None => return self.reject(op, "set", None, ReasonWord::Unsupported, now_ms, board),
            Some((at, Err(reason))) => return self.reject(op, "set", Some(at), reason, now_ms, board),
            Some((at, Ok(wish))) => (at, wish),
        };
        if self.is_late(hub_ms, ttl_ms, now_ms) {
            return self.reject(op, "set", Some(property), ReasonWord::Expired, now_ms, board);
        }
        let Ok(own) = Id::try_from(op) else { return Heard::Dropped(Dropped::Unreadable) };
        if self.waiting.push_back(Waiting { op: own, property, wish, hub_ms, ttl_ms }).is_err() {
            return self.reject(op, "set", Some(property), ReasonWord::Busy, now_ms, board);
        }
        let now = board.read(property);
        self.report(op, "set", Some(property), ReportResult::Received, None, false, now, now_ms, board);
        Heard::Command
    }

    /// Answers an operation that is known already: its result, and the state read now.
    pub(super) fn repeated(&mut self, op: &str, action: &str, now_ms: u64, board: &mut impl Board) -> bool {
        let ended = self.ended.find(op).map(|e| (e.property, e.result, e.reason));
        let moving =
            self.moving.as_ref().filter(|m| m.op == op).map(|m| (Some(m.property), ReportResult::Executing, None));
        let waiting = self.waiting.iter().find(|w| w.op == op);
        let waiting = waiting.map(|w| (Some(w.property), ReportResult::Received, None));
        let Some((property, result, reason)) = ended.or(moving).or(waiting) else { return false };
        let now = property.and_then(|p| board.read(p));
        self.report(op, action, property, result, reason, true, now, now_ms, board);
        true
    }

    pub(super) fn withdraw(&mut self, op: &str, now_ms: u64, board: &mut impl Board) -> Heard {
        let begun = self.moving.as_ref().is_some_and(|m| m.op == op) || self.ended.find(op).is_some();
        if begun {
            return Heard::Command; // it is finished, and its result is or will be reported
        }
        let Ok(own) = Id::try_from(op) else { return Heard::Dropped(Dropped::Unreadable) };
        let mut property = None;
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { break };
            if waiting.op == own {
                property = Some(waiting.property);
            } else {
                // There is room: it was just taken out.
                let _always_room = self.waiting.push_back(waiting);
            }
        }
        let (result, reason) = (ReportResult::Failed, Some(ReasonWord::Withdrawn));
        self.ended.remember(Ended { op: own, property, result, reason });
        // One that never came is only remembered: after a reboot this could be an operation that was carried out.
        if property.is_some() {
            let now = property.and_then(|p| board.read(p));
            self.report(op, "set", property, result, reason, false, now, now_ms, board);
        }
        Heard::Command
    }

    pub(super) fn begin(&mut self, next: Waiting, now_ms: u64, board: &mut impl Board) {
        let Waiting { op, property, wish, hub_ms, ttl_ms } = next;
        if self.is_late(hub_ms, ttl_ms, now_ms) {
            self.reject(&op, "set", Some(property), ReasonWord::Expired, now_ms, board);
            return;
        }
        let now = board.read(property);
        if now.as_ref().is_some_and(|now| is_same(board, property, &wish, now)) {
            self.finish(op, property, ReportResult::Completed, None, now, now_ms, board);
            return;
        }
        if let Err(reason) = board.drive(property, &wish) {
            let now = board.read(property);
            self.finish(op, property, ReportResult::Failed, Some(reason), now, now_ms, board);
            return;
        }
        self.report(&op, "set", Some(property), ReportResult::Executing, None, false, now, now_ms, board);
        self.moving = Some(Moving { op, property, wish, begun_ms: now_ms, check_ms: now_ms + CHECK_MS });
    }

    /// Looks whether what moves has arrived.
    pub(super) fn look(&mut self, now_ms: u64, board: &mut impl Board) {
        let Some(mut moving) = self.moving.take_if(|m| now_ms >= m.check_ms) else { return };
        let now = board.read(moving.property);
        let until_ms = moving.begun_ms + u64::from(board.settle_ms(moving.property));
        if now.as_ref().is_some_and(|now| is_same(board, moving.property, &moving.wish, now)) {
            self.finish(moving.op, moving.property, ReportResult::Completed, None, now, now_ms, board);
        } else if now_ms >= until_ms {
            let stuck = Some(ReasonWord::Stuck);
            self.finish(moving.op, moving.property, ReportResult::Failed, stuck, now, now_ms, board);
        } else {
            moving.check_ms = until_ms.min(now_ms + CHECK_MS);
            self.moving = Some(moving);
        }
    }

    /// Ends an operation that was carried out or tried.
    #[expect(clippy::too_many_arguments, reason = "the facts of one report")]
    pub(super) fn finish(
        &mut self,
        op: Id,
        property: usize,
        result: ReportResult,
        reason: Option<ReasonWord>,
        now: Option<Scalar>,
        now_ms: u64,
        board: &impl Board,
    ) {
        // What failed must not pass for done when somebody at the wall brings the value about later.
        if let (ReportResult::Completed, Some(seen)) = (result, self.seen.get_mut(property)) {
            *seen = Some(op.clone());
        }
        self.report(&op, "set", Some(property), result, reason, false, now, now_ms, board);
        self.ended.remember(Ended { op, property: Some(property), result, reason });
    }

    /// Ends an operation that was not begun.
    pub(super) fn reject(
        &mut self,
        op: &str,
        action: &str,
        property: Option<usize>,
        reason: ReasonWord,
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.repeated(op, action, now_ms, board) {
            return Heard::Command;
        }
        let now = property.and_then(|p| board.read(p));
        self.report(op, action, property, ReportResult::Rejected, Some(reason), false, now, now_ms, board);
        if let Ok(op) = Id::try_from(op) {
            self.ended.remember(Ended { op, property, result: ReportResult::Rejected, reason: Some(reason) });
        }
        Heard::Command
    }
}

fn is_same(board: &impl Board, property: usize, wish: &Scalar, now: &Scalar) -> bool {
    board.properties().get(property).is_some_and(|spec| value::is_same(spec, wish, now))
}
