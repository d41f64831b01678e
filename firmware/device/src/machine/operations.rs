//! What becomes of a command when it is heard: taken, answered again, rejected, withdrawn. Nothing begins to move here.

use truetwin_wire::{
    Scalar,
    device::Args,
    words::{OnWithdraw, ReasonWord, ReportResult},
};

use super::{Dropped, Heard, Machine, Waiting, Wish, say::Report};
use crate::{
    board::{Board, Part},
    ring::{Ended, Id, Told},
    value,
};

impl Machine<'_> {
    pub(super) fn set(
        &mut self,
        op: &str,
        name: &str,
        value: &Scalar,
        limit: (u64, u32),
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.repeated(op, "set", now_ms, board) {
            return Heard::Command;
        }
        let found = board.properties().iter().enumerate().find(|(_, spec)| spec.name == name);
        let checked = found.map(|(at, spec)| (Part::Property(at), value::checked(spec, value)));
        match checked {
            None => self.reject(op, "set", None, ReasonWord::Unsupported, now_ms, board),
            Some((part, Err(reason))) => self.reject(op, "set", Some(part), reason, now_ms, board),
            Some((part, Ok((wish, clamped)))) => self.take(op, part, Wish::Value(wish), clamped, limit, now_ms, board),
        }
    }

    pub(super) fn run(
        &mut self,
        op: &str,
        name: &str,
        args: Args<'_>,
        limit: (u64, u32),
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.repeated(op, name, now_ms, board) {
            return Heard::Command;
        }
        let found = board.actions().iter().position(|spec| spec.name == name).map(Part::Action);
        match (found, args.as_str().try_into()) {
            (None, _) => self.reject(op, name, None, ReasonWord::Unsupported, now_ms, board),
            (Some(part), Err(_)) => self.reject(op, name, Some(part), ReasonWord::Malformed, now_ms, board),
            (Some(part), Ok(args)) => self.take(op, part, Wish::Args(args), false, limit, now_ms, board),
        }
    }

    /// Lets a command wait for its turn.
    #[expect(clippy::too_many_arguments, reason = "the facts of one command")]
    fn take(
        &mut self,
        op: &str,
        part: Part,
        wish: Wish,
        clamped: bool,
        (hub_ms, ttl_ms): (u64, u32),
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.is_late(hub_ms, ttl_ms, now_ms) {
            return self.reject(op, "set", Some(part), ReasonWord::Expired, now_ms, board);
        }
        if let Err(reason) = board.accepts(part) {
            return self.reject(op, "set", Some(part), reason, now_ms, board);
        }
        let Ok(own) = Id::try_from(op) else { return Heard::Dropped(Dropped::Unreadable) };
        // A newer wish takes the place of one that has not begun; actions are no wishes, each is its own.
        if let Part::Property(_) = part {
            self.drop_waiting(|waiting| waiting.part == part, ReasonWord::Superseded, now_ms, board);
        }
        if self.waiting.push_back(Waiting { op: own, part, wish, clamped, hub_ms, ttl_ms }).is_err() {
            return self.reject(op, "set", Some(part), ReasonWord::Busy, now_ms, board);
        }
        let now = self.read(Some(part), board);
        let received = Report::new(op, Some(part), ReportResult::Received, now);
        self.report(Report { clamped, ..received }, now_ms, board);
        Heard::Command
    }

    /// Answers an operation that is known already: its result, and the state read now.
    pub(super) fn repeated(&mut self, op: &str, asked: &str, now_ms: u64, board: &mut impl Board) -> bool {
        let ended = self.ended.find(op).map(|e| (e.part, e.result, e.reason, e.clamped));
        let moving = self.moving.iter().find(|m| m.op == op);
        let moving = moving.map(|m| (Some(m.part), ReportResult::Executing, None, m.clamped));
        let waiting = self.waiting.iter().find(|w| w.op == op);
        let waiting = waiting.map(|w| (Some(w.part), ReportResult::Received, None, w.clamped));
        let Some((part, result, reason, clamped)) = ended.or(moving).or(waiting) else { return false };
        let now = self.read(part, board);
        let report = Report::new(op, part, result, now);
        self.report(Report { asked, reason, clamped, dup: true, ..report }, now_ms, board);
        true
    }

    pub(super) fn withdraw(&mut self, op: &str, now_ms: u64, board: &mut impl Board) -> Heard {
        if let Some(at) = self.moving.iter().position(|m| m.op == op) {
            self.stop(at, now_ms, board);
            return Heard::Command;
        }
        if self.ended.find(op).is_some() {
            return Heard::Command; // its result is or will be reported
        }
        if self.drop_waiting(|waiting| waiting.op == op, ReasonWord::Withdrawn, now_ms, board) {
            return Heard::Command;
        }
        // One that never came is only remembered: after a reboot this could be an operation that was carried out.
        let Ok(op) = Id::try_from(op) else { return Heard::Dropped(Dropped::Unreadable) };
        let (result, reason) = (ReportResult::Failed, Some(ReasonWord::Withdrawn));
        self.ended.remember(Ended { op, part: None, result, reason, clamped: false, told: Told::Done });
        Heard::Command
    }

    /// Stops what has begun, if the description says so; else it is finished, and its result will be reported.
    fn stop(&mut self, at: usize, now_ms: u64, board: &mut impl Board) {
        let Some(Part::Property(property)) = self.moving.get(at).map(|m| m.part) else { return };
        let spec = board.properties().get(property);
        if spec.and_then(|spec| spec.on_withdraw) == Some(OnWithdraw::Stop) {
            board.stop(property);
            let stopped = self.moving.swap_remove(at);
            let now = self.read(Some(stopped.part), board);
            self.finish(stopped, ReportResult::Failed, Some(ReasonWord::Withdrawn), now, now_ms, board);
        }
    }

    /// Ends what waits and is meant, in order; whether there was any.
    fn drop_waiting(
        &mut self,
        is_meant: impl Fn(&Waiting) -> bool,
        reason: ReasonWord,
        now_ms: u64,
        board: &mut impl Board,
    ) -> bool {
        let mut any = false;
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { break };
            if is_meant(&waiting) {
                any = true;
                let Waiting { op, part, clamped, .. } = waiting;
                self.end(op, part, ReportResult::Failed, Some(reason), clamped, now_ms, board);
            } else {
                // There is room: it was just taken out.
                let _always_room = self.waiting.push_back(waiting);
            }
        }
        any
    }

    /// Reports and remembers the end of an operation that moves nothing (any more).
    #[expect(clippy::too_many_arguments, reason = "the facts of one end")]
    pub(super) fn end(
        &mut self,
        op: Id,
        part: Part,
        result: ReportResult,
        reason: Option<ReasonWord>,
        clamped: bool,
        now_ms: u64,
        board: &mut impl Board,
    ) {
        let now = self.read(Some(part), board);
        let report = Report::new(&op, Some(part), result, now);
        let told = self.report(Report { reason, clamped, ..report }, now_ms, board);
        self.ended.remember(Ended { op, part: Some(part), result, reason, clamped, told });
    }

    /// Ends an operation that was not begun.
    pub(super) fn reject(
        &mut self,
        op: &str,
        asked: &str,
        part: Option<Part>,
        reason: ReasonWord,
        now_ms: u64,
        board: &mut impl Board,
    ) -> Heard {
        if self.repeated(op, asked, now_ms, board) {
            return Heard::Command;
        }
        let (result, now) = (ReportResult::Rejected, self.read(part, board));
        let reason = Some(reason);
        let told = self.report(Report { asked, reason, ..Report::new(op, part, result, now) }, now_ms, board);
        if let Ok(op) = Id::try_from(op) {
            self.ended.remember(Ended { op, part, result, reason, clamped: false, told });
        }
        Heard::Command
    }
}
