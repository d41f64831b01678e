//! What changes the truth of an answer afterwards: a late success, a revert (semantics 3.7, 6.1, 6.3).

use std::time::{Duration, Instant};

use crate::{
    property::{Evidence, PropertyName},
    twin::{
        Twin,
        input::{ActionResult, Cause, Effect},
        operation::Operation,
        planted::{self, Planted},
        record::Record,
        reported::Change,
        words::{OpId, Outcome, Reading, Settled, Stage, Trust},
    },
};

impl Twin {
    /// A device reports on an operation that has already ended.
    pub(super) fn finish_recorded(&mut self, seq: u32, op: &OpId, result: ActionResult) {
        let record = self.records.iter().find(|r| r.settled.op == *op);
        let Some(property) = record.map(|r| r.settled.property.clone()) else { return };
        match result {
            ActionResult::Completed => self.finish(seq, &property, op),
            ActionResult::Received
            | ActionResult::Executing
            | ActionResult::Working
            | ActionResult::Failed
            | ActionResult::Rejected
            | ActionResult::Unknown => {}
        }
    }

    /// Finds operations that ended unconfirmed and are done after all: one and the same report says that they are the last
    /// that the device has finished, and, with at least this evidence, that it is so.
    pub(super) fn note_late(&mut self, now: Instant, seq: u32, finished: &[&OpId], least: Evidence) {
        let mut late = Vec::new();
        for record in &mut self.records {
            let settled = &mut record.settled;
            if !unconfirmed(settled.outcome)
                || settled.late_success
                || !finished.contains(&&settled.op)
                || self.reported.finished(&settled.property, &settled.op).is_none()
                || now.saturating_duration_since(record.ended_at) > self.settings.watch
            {
                continue;
            }
            let (Some(known), Some(predicate)) = (self.reported.get(&settled.property), &record.predicate) else {
                continue;
            };
            let met = known.seq == seq
                && known.evidence >= record.required.max(least)
                && predicate.holds(record.before.as_ref(), &known.value);
            if met {
                settled.late_success = true;
                settled.confirmed_by = known.evidence;
                settled.found = Some(Reading {
                    value: known.value.clone(),
                    evidence: known.evidence,
                    age: Duration::ZERO,
                    trust: Trust::Now,
                });
                record.ended_at = now;
                late.push(Effect::LateSuccess { op: settled.op.clone() });
                late.extend(record.news(&self.device));
            }
        }
        self.effects.extend(late);
    }

    /// An action that had ended unconfirmed is reported as done after all: more there is not to be known of it.
    pub(super) fn note_late_action(&mut self, now: Instant, op: &OpId) {
        let mut late = Vec::new();
        let watch = self.settings.watch;
        let waits = |r: &&mut Record| {
            let open = r.reports_done && unconfirmed(r.settled.outcome) && !r.settled.late_success;
            open && r.settled.op == *op && now.saturating_duration_since(r.ended_at) <= watch
        };
        if let Some(record) = self.records.iter_mut().find(waits) {
            record.settled.late_success = true;
            record.settled.confirmed_by = Evidence::Firmware;
            record.ended_at = now;
            late.push(Effect::LateSuccess { op: op.clone() });
            late.extend(record.news(&self.device));
        }
        self.effects.extend(late);
    }

    /// Looks whether a change undoes a success (semantics 3.7). One that somebody made at the device is nobody's fault, and
    /// ends the watch; any other is the device's: with nothing in flight, no command asked for it.
    pub(super) fn note_changes(&mut self, now: Instant, changes: &[Change], cause: Cause) {
        let Some(description) = self.description.clone() else { return };
        if planted::is(Planted::RevertUnnoticed) {
            return;
        }
        for change in changes {
            let claims = |r: &&Record| r.settled.property == change.property && r.settled.outcome.is_success();
            let claimed = self.records.iter().filter(claims).map(|r| r.number).max();
            // A device that pre-empts has taken the newer wish in an older one's stead: that one moves nothing any more (4.4).
            let overtaken = |number| claimed.is_some_and(|claimed| number < claimed);
            let moves = |o: &Operation| o.sent() && !(o.superseded_by.is_some() && overtaken(o.number));
            if self.operations.values().any(|o| o.property == change.property && moves(o)) {
                continue;
            }
            let Some(property) = description.property(&change.property) else { continue };
            // From the latest back, as long as they claim what is no longer so: what joined or was found so before it had
            // the same claim.
            let of_property = |r: &&mut Record| r.settled.property == change.property && may_have_moved(&r.settled);
            let mut first = true;
            let mut undone = Vec::new();
            for record in self.records.iter_mut().rev().filter(of_property) {
                if first && overtaken(record.number) && record.settled.outcome == Outcome::Superseded {
                    continue;
                }
                let held = record.settled.outcome.is_success() || record.settled.late_success;
                let watched = now.saturating_duration_since(record.ended_at) <= self.settings.watch;
                if !held || !watched || record.undone || record.still_met(property, &change.to) {
                    break;
                }
                record.undone = true;
                match cause {
                    Cause::Local => {}
                    Cause::Command
                    | Cause::Boot
                    | Cause::Failsafe
                    | Cause::Periodic
                    | Cause::Query
                    | Cause::Unknown => {
                        record.settled.reverted = true;
                        if first {
                            let (op, property) = (record.settled.op.clone(), change.property.clone());
                            undone.push(Effect::Reverted { op, property });
                        }
                        undone.extend(record.news(&self.device));
                    }
                }
                first = false;
            }
            self.effects.extend(undone);
        }
    }

    /// Operations whose answer is no longer true, for whoever asks for the state: the latest of each property, while that is
    /// news (semantics 6.3).
    pub(super) fn amended(&self, now: Instant) -> Vec<Settled> {
        let mut latest: Vec<&Record> = Vec::new();
        for record in self.records.iter().rev() {
            if latest.iter().all(|r| r.settled.property != record.settled.property) {
                latest.push(record);
            }
        }
        let news = |r: &&Record| {
            let changed = r.settled.late_success || r.settled.reverted;
            changed && now.saturating_duration_since(r.ended_at) <= self.settings.watch
        };
        latest.into_iter().filter(news).map(|r| self.recalled(now, r, None)).collect()
    }

    /// Properties whose latest operation had converged and was undone by the device itself.
    pub(super) fn reverted_properties(&self) -> Vec<PropertyName> {
        let mut latest: Vec<&Settled> = Vec::new();
        for record in self.records.iter().rev() {
            if latest.iter().all(|s| s.property != record.settled.property) {
                latest.push(&record.settled);
            }
        }
        latest.into_iter().filter(|s| s.reverted).map(|s| s.property.clone()).collect()
    }
}

/// Whether nobody knew, when it ended, if it was done (semantics 8.3).
fn unconfirmed(outcome: Outcome) -> bool {
    match outcome {
        Outcome::TimedOut | Outcome::SentUnverified | Outcome::Interrupted | Outcome::DeviceCrashed => true,
        Outcome::Converged
        | Outcome::Already
        | Outcome::Clamped
        | Outcome::Working
        | Outcome::Partial
        | Outcome::Superseded
        | Outcome::Rejected
        | Outcome::Failed
        | Outcome::Contradicted
        | Outcome::Cancelled
        | Outcome::Removed => false,
    }
}

/// Whether an operation that ended so can have moved anything.
pub(super) fn may_have_moved(settled: &Settled) -> bool {
    match settled.outcome {
        Outcome::Rejected | Outcome::Cancelled => false,
        // What waited behind another was never sent.
        Outcome::Superseded => settled.stage > Stage::Queued,
        Outcome::Converged
        | Outcome::Already
        | Outcome::Clamped
        | Outcome::Working
        | Outcome::Partial
        | Outcome::SentUnverified
        | Outcome::Failed
        | Outcome::Contradicted
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Removed
        | Outcome::DeviceCrashed => true,
    }
}
