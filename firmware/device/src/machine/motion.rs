//! What moves: what is begun, looked at, ended; and what a device does by itself while the hub is gone.

use heapless::Vec;
use truetwin_wire::{
    Scalar,
    device::{Args, Event},
    words::{CauseWord, EvidenceWord, ReasonWord, ReportResult},
};

use super::{CHECK_MS, Machine, Moving, PROPERTIES_MAX, WAITING_MAX, WORKING_MS, Waiting, Wish, say::Report};
use crate::{
    board::{Board, Part},
    ring::Ended,
    store::{Fate, Store},
    value,
};

impl Machine<'_> {
    /// Does what is due: looks at what moves, begins what waits, notices what moved by itself, sends a heartbeat.
    pub fn step(&mut self, now_ms: u64, board: &mut impl Board) {
        self.fail_safe(now_ms, board);
        self.look(now_ms, board);
        self.tell_what_is_owed(now_ms, board);
        self.begin_what_can(now_ms, board);
        self.notice(now_ms, board);
        if self.session.is_some() && now_ms >= self.next_heartbeat_ms {
            self.next_heartbeat_ms = now_ms + self.heartbeat_ms;
            // Behind other events that could not be sent it would say nothing new.
            if self.outbox.is_empty() {
                self.emit(&Event::Heartbeat, now_ms);
            }
        }
    }

    /// Begins what waits, in order. What cannot begin yet stays, and keeps others of its group behind it; what is too late
    /// is ended even if it could not have begun.
    fn begin_what_can(&mut self, now_ms: u64, board: &mut impl Board) {
        let mut held: Vec<Part, WAITING_MAX> = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some(next) = self.waiting.pop_front() else { break };
            if self.is_late(next.hub_ms, next.ttl_ms, now_ms) {
                self.reject(&next.op, "set", Some(next.part), ReasonWord::Expired, now_ms, board);
            } else if self.may_begin(next.part, &held, now_ms, board) {
                self.begin(next, now_ms, board);
            } else {
                // There is room in both: it was just taken out, and no more than wait are held.
                let _always_room = held.push(next.part);
                let _always_room = self.waiting.push_back(next);
            }
        }
        self.retry_ms = (!self.waiting.is_empty()).then_some(now_ms + CHECK_MS);
    }

    fn may_begin(&self, part: Part, held: &[Part], now_ms: u64, board: &mut impl Board) -> bool {
        // A newer wish for what moves already takes nobody's turn: it need not stand behind others of its group.
        let moves = self.moving.iter().any(|m| m.part == part);
        let excluded = !moves
            && (self.moving.is_full()
                || held.iter().any(|other| excludes(board, part, *other))
                || self.moving.iter().any(|m| excludes(board, part, m.part)));
        !excluded && self.rested(part, now_ms, board) && board.ready(part)
    }

    /// Whether the property may move again: `min_interval_ms` since it last began, and an action has ended.
    fn rested(&self, part: Part, now_ms: u64, board: &impl Board) -> bool {
        match part {
            Part::Action(_) => !self.moving.iter().any(|m| m.part == part),
            Part::Property(property) => {
                let interval = board.properties().get(property).and_then(|spec| spec.min_interval_ms).unwrap_or(0);
                let begun = self.begun_ms.get(property).copied().flatten();
                begun.is_none_or(|begun| now_ms >= begun + u64::from(interval))
            }
        }
    }

    fn begin(&mut self, next: Waiting, now_ms: u64, board: &mut impl Board) {
        let Waiting { op, part, wish, clamped, .. } = next;
        let moving =
            Moving { op, part, wish: None, clamped, begun_ms: now_ms, check_ms: now_ms + CHECK_MS, working_ms: now_ms };
        match (part, wish) {
            (Part::Property(property), Wish::Value(value)) => {
                self.begin_set(Moving { wish: Some(value), ..moving }, property, now_ms, board);
            }
            (Part::Action(action), Wish::Args(args)) => self.begin_action(moving, action, &args, now_ms, board),
            // A command is taken with the sort of wish that its part has.
            (Part::Property(_), Wish::Args(_)) | (Part::Action(_), Wish::Value(_)) => {}
        }
    }

    fn begin_set(&mut self, moving: Moving, property: usize, now_ms: u64, board: &mut impl Board) {
        let part = moving.part;
        let older = self.moving.iter().position(|m| m.part == part).map(|at| self.moving.swap_remove(at));
        let still = older.is_none();
        if let Some(older) = older {
            let now = self.read(Some(part), board);
            self.finish(older, ReportResult::Failed, Some(ReasonWord::Superseded), now, now_ms, board);
        }
        let now = self.read(Some(part), board);
        // What moves is not where it is wished, even while it passes there.
        if still && is_same(board, property, moving.wish.as_ref(), now.as_ref()) && board.at_rest(property) {
            self.finish(moving, ReportResult::Completed, None, now, now_ms, board);
            return;
        }
        if let Some(begun) = self.begun_ms.get_mut(property) {
            *begun = Some(now_ms);
        }
        let driven = moving.wish.as_ref().map_or(Ok(()), |value| board.drive(property, value));
        let unheard = board.properties().get(property).is_some_and(|spec| spec.feedback == EvidenceWord::None);
        self.begun(moving, driven, unheard, now, now_ms, board);
    }

    fn begin_action(&mut self, moving: Moving, action: usize, args: &str, now_ms: u64, board: &mut impl Board) {
        let spec = board.actions().get(action);
        let (once, unheard) =
            spec.map_or((false, false), |spec| (!spec.repeatable, spec.feedback == Some(EvidenceWord::None)));
        let intended = |store: &mut dyn Store| store.keep(&moving.op, Fate::Begun).is_ok();
        if once && (self.store_failed || !board.store().is_none_or(intended)) {
            self.reject(&moving.op, "run", Some(moving.part), ReasonWord::Unsupported, now_ms, board);
            return;
        }
        let begun = Args::new(args).map_or(Err(ReasonWord::Malformed), |args| board.run(action, args));
        self.begun(moving, begun, unheard, None, now_ms, board);
    }

    /// Says that driving has begun, or why not.
    fn begun(
        &mut self,
        moving: Moving,
        begun: Result<(), ReasonWord>,
        unheard: bool,
        before: Option<Scalar>,
        now_ms: u64,
        board: &mut impl Board,
    ) {
        if let Err(reason) = begun {
            let now = self.read(Some(moving.part), board);
            self.finish(moving, ReportResult::Failed, Some(reason), now, now_ms, board);
        } else if unheard {
            // The telegram has left, and nobody will ever know more: that ends it.
            self.finish(moving, ReportResult::Executing, None, None, now_ms, board);
        } else {
            let report = Report::new(&moving.op, Some(moving.part), ReportResult::Executing, before);
            self.report(Report { clamped: moving.clamped, ..report }, now_ms, board);
            // There is room: `may_begin` looked.
            let _always_room = self.moving.push(moving);
        }
    }

    /// Looks whether what moves has arrived.
    fn look(&mut self, now_ms: u64, board: &mut impl Board) {
        let mut at = 0;
        while at < self.moving.len() {
            let due = self.moving.get(at).is_some_and(|m| now_ms >= m.check_ms);
            if !due || !self.look_at(at, now_ms, board) {
                at += 1;
            }
        }
    }

    /// Looks at one; whether it has ended, and another one stands in its place.
    fn look_at(&mut self, at: usize, now_ms: u64, board: &mut impl Board) -> bool {
        let Some(moving) = self.moving.get(at) else { return false };
        let (part, begun_ms) = (moving.part, moving.begun_ms);
        let now = self.read(Some(part), board);
        let Some(moving) = self.moving.get(at) else { return false };
        let (end, settle_ms) = match part {
            Part::Property(property) => {
                let there = is_same(board, property, moving.wish.as_ref(), now.as_ref());
                let settle_ms = board.settle_ms(property);
                // When its time is over what was read decides: it need not stand still for ever.
                let arrived = there && (board.at_rest(property) || now_ms >= begun_ms + u64::from(settle_ms));
                (arrived.then_some(Ok(())), settle_ms)
            }
            Part::Action(action) => (board.ended(action), board.action_settle_ms(action)),
        };
        let until_ms = begun_ms + u64::from(settle_ms);
        let end = end.or((now_ms >= until_ms).then_some(Err(ReasonWord::Stuck)));
        if let Some(end) = end {
            let moving = self.moving.swap_remove(at);
            let (result, reason) = match end {
                Ok(()) => (ReportResult::Completed, None),
                Err(reason) => (ReportResult::Failed, Some(reason)),
            };
            self.finish(moving, result, reason, now, now_ms, board);
            return true;
        }
        let eta_ms = if let Part::Property(property) = part { board.eta_ms(property) } else { None };
        let Some(moving) = self.moving.get_mut(at) else { return false };
        moving.check_ms = until_ms.min(now_ms + CHECK_MS);
        if eta_ms.is_some() && now_ms >= moving.working_ms {
            moving.working_ms = now_ms + WORKING_MS;
            let (op, clamped) = (moving.op.clone(), moving.clamped);
            let working = Report::new(&op, Some(part), ReportResult::Working, now);
            self.report(Report { eta_ms, clamped, ..working }, now_ms, board);
        }
        false
    }

    /// Ends an operation that was carried out or tried.
    pub(super) fn finish(
        &mut self,
        moving: Moving,
        result: ReportResult,
        reason: Option<ReasonWord>,
        now: Option<Scalar>,
        now_ms: u64,
        board: &mut impl Board,
    ) {
        let Moving { op, part, clamped, .. } = moving;
        match part {
            // What failed must not pass for done when somebody at the wall brings the value about later.
            Part::Property(property) => {
                if let (ReportResult::Completed, Some(seen)) = (result, self.seen.get_mut(property)) {
                    *seen = Some(op.clone());
                }
            }
            Part::Action(action) => {
                let once = board.actions().get(action).is_some_and(|spec| !spec.repeatable);
                let fate = if result == ReportResult::Failed { Fate::Failed } else { Fate::Completed };
                if let (true, Some(store)) = (once, board.store()) {
                    // Not written, the next run says `interrupted`, which is safe.
                    let _safe_either_way = store.keep(&op, fate);
                }
            }
        }
        let report = Report::new(&op, Some(part), result, now);
        let told = self.report(Report { reason, clamped, ..report }, now_ms, board);
        self.ended.remember(Ended { op, part: Some(part), result, reason, clamped, told });
    }

    /// Tells what changed without a command.
    fn notice(&mut self, now_ms: u64, board: &mut impl Board) {
        let Some(watch_ms) = board.watch_ms() else { return };
        if now_ms < self.watch_ms {
            return;
        }
        self.watch_ms = now_ms + u64::from(watch_ms.max(1));
        let Some(cause) = board.noticed() else { return };
        if self.session.is_some() {
            self.tell_state(cause, now_ms, board);
        } else {
            // The next hello says so; that a person did something outweighs that a measurement drifted.
            let outweighs = matches!(cause, CauseWord::Local | CauseWord::Failsafe);
            self.changed_alone = self.changed_alone.filter(|_| !outweighs).or(Some(cause));
        }
    }

    /// When the next output goes to its safe level.
    pub(super) fn next_failsafe_ms(&self, board: &impl Board) -> Option<u64> {
        let gone_ms = self.gone_ms?;
        let waiting = board.properties().iter().zip(&self.failed_safe).filter(|(_, done)| !**done);
        waiting.filter_map(|(spec, _)| spec.failsafe).map(|safe| gone_ms + u64::from(safe.after_ms)).min()
    }

    /// Carries out what the description promises for a hub that is gone (semantics 6.4): once in each absence.
    fn fail_safe(&mut self, now_ms: u64, board: &mut impl Board) {
        let Some(gone_ms) = self.gone_ms else { return };
        for property in 0..self.failed_safe.len().min(PROPERTIES_MAX) {
            let safe = board.properties().get(property).and_then(|spec| spec.failsafe);
            let Some((value, after_ms)) = safe.map(|safe| (safe.value.clone(), safe.after_ms)) else { continue };
            let Some(done) = self.failed_safe.get_mut(property) else { continue };
            if *done || now_ms < gone_ms + u64::from(after_ms) {
                continue;
            }
            *done = true;
            let part = Part::Property(property);
            let now = self.read(Some(part), board);
            let older = self.moving.iter().position(|m| m.part == part).map(|at| self.moving.swap_remove(at));
            let there = older.is_none() && is_same(board, property, Some(&value), now.as_ref());
            if let Some(older) = older {
                self.finish(older, ReportResult::Failed, Some(ReasonWord::Interrupted), now, now_ms, board);
            }
            if !there {
                self.changed_alone = Some(CauseWord::Failsafe);
                // What cannot be driven shows in the next hello's state.
                let _not_driven = board.drive(property, &value);
            }
        }
    }
}

/// Whether two properties stand in one group; one does not exclude itself, a newer set takes its place.
fn excludes(board: &impl Board, one: Part, other: Part) -> bool {
    let (Part::Property(one), Part::Property(other)) = (one, other) else { return false };
    let name = |at: usize| board.properties().get(at).map(|spec| spec.name);
    let (Some(one_name), Some(other_name)) = (name(one), name(other)) else { return false };
    one != other && board.exclusive().iter().any(|group| group.contains(&one_name) && group.contains(&other_name))
}

fn is_same(board: &impl Board, property: usize, wish: Option<&Scalar>, now: Option<&Scalar>) -> bool {
    let spec = board.properties().get(property);
    matches!((spec, wish, now), (Some(spec), Some(wish), Some(now)) if value::is_same(spec, wish, now))
}
