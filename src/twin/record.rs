//! How operations end, and what changes the truth of it afterwards: a late success, a revert (semantics 3.7, 6.1, 6.3).

use std::time::{Duration, Instant};

use crate::{
    property::{Evidence, Predicate, Property, PropertyName, Value},
    twin::{
        Twin,
        evidence::required,
        input::{ActionResult, Cause, Command, Effect},
        operation::Operation,
        reported::Change,
        words::{Attribution, OpId, Outcome, Reading, Reason, Reply, Settled, Stage, Trust},
    },
};

/// An operation that ended.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) settled: Settled,
    pub(super) admitted_at: Instant,
    ended_at: Instant,
    /// The evidence that a success would have needed.
    required: Evidence,
    /// What its success was, and the value before: a late success is judged by that, too.
    predicate: Option<Predicate>,
    before: Option<Value>,
    /// What it brought about was changed again, by the device or by a person.
    undone: bool,
}

impl Record {
    /// Whether a value is no other than what was confirmed. A set value is the same within all of the described tolerance,
    /// which may be more than what had to be reached.
    fn still_met(&self, property: &Property, value: &Value) -> bool {
        let wished = self.settled.wish.as_ref().is_some_and(|wish| property.same(value, wish));
        wished || self.predicate.as_ref().is_some_and(|p| p.holds(self.before.as_ref(), value))
    }
}

impl Twin {
    /// Fresh, attributed, reported state equals the wish.
    pub(super) fn converge(&mut self, now: Instant, op: &OpId) {
        if let Some(outcome) = self.operations.get(op).map(Operation::success) {
            self.end(now, op, outcome, None);
        }
    }

    /// It said completed; what is read says otherwise: an immediate failure with the actual value (semantics 3.7).
    pub(super) fn contradict(&mut self, now: Instant, op: &OpId, reason: Reason) {
        self.end(now, op, Outcome::Contradicted, Some(reason));
    }

    /// Ends an operation whose end the device has not told. It is told to withdraw what it has not begun (6.1).
    pub(super) fn give_up(&mut self, now: Instant, op: &OpId, outcome: Outcome, reason: Reason) {
        self.send(Command::Withdraw { op: op.clone() });
        self.end(now, op, outcome, Some(reason));
    }

    pub(super) fn end(&mut self, now: Instant, op: &OpId, outcome: Outcome, reason: Option<Reason>) {
        let success = outcome.is_success();
        if success {
            self.enter(now, op, Stage::Settled);
        }
        let Some(operation) = self.forget(op) else { return };
        let settled = self.settled(now, &operation, outcome, reason);
        if let (false, Some((stage, spent))) = (success, settled.stages.last()) {
            self.effects.push_back(Effect::StageLeft { stage: *stage, spent: *spent });
        }
        self.effects.push_back(Effect::Ended { outcome, stage: settled.stage, reason, elapsed: settled.elapsed });
        if !operation.answered {
            let reply = Reply::Settled(Box::new(settled.clone()));
            self.effects.push_back(Effect::Reply { op: op.clone(), reply });
        }
        let record = Record {
            settled,
            admitted_at: operation.admitted_at,
            ended_at: now,
            required: operation.required,
            predicate: operation.predicate.clone(),
            before: operation.before.clone(),
            undone: false,
        };
        self.remember(record);
        if !self.stopping {
            self.begin_next(now, &operation.property);
        }
    }

    /// Its caller must be answered, and the device is at work: the operation lives on (semantics 4.2).
    pub(super) fn answer_working(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let reply = Reply::Settled(Box::new(self.so_far(now, operation)));
        self.effects.push_back(Effect::Reply { op: op.clone(), reply });
        if let Some(operation) = self.operations.get_mut(op) {
            operation.answered = true;
        }
    }

    /// A caller stopped waiting (semantics 4.7). What was not sent is forgotten. What was sent goes on unheard: whether the
    /// device has begun it is not known before it says so, only then it is `cancelled`.
    pub(super) fn cancel(&mut self, op: &OpId) {
        if self.questions.remove(op).is_some() {
            return;
        }
        let Some(operation) = self.operations.get_mut(op) else { return };
        operation.answered = true;
        if !operation.sent() {
            self.forget(op);
        } else if !operation.begun() && !operation.cancelled {
            operation.cancelled = true;
            self.send(Command::Withdraw { op: op.clone() });
        }
    }

    /// How far an operation is, for its caller or for one who asks.
    pub(super) fn so_far(&self, now: Instant, operation: &Operation) -> Settled {
        self.settled(now, operation, Outcome::Working, None)
    }

    fn settled(&self, now: Instant, operation: &Operation, outcome: Outcome, reason: Option<Reason>) -> Settled {
        let success = outcome.is_success();
        // Spoken of as present only if it was received after the command was written: an older value may be what the
        // command has changed.
        let found = self.reading(now, &operation.property, operation.written_at);
        Settled {
            op: operation.op.clone(),
            device: self.device.clone(),
            property: operation.property.clone(),
            wish: operation.wish.clone(),
            outcome,
            stage: operation.stage,
            reason,
            confirmed_by: found.as_ref().filter(|_| success).map_or(Evidence::None, |r| r.evidence),
            found,
            attribution: Attribution::Named,
            eta: operation.eta_at.map(|at| at.saturating_duration_since(now)).filter(|_| outcome == Outcome::Working),
            elapsed: now.saturating_duration_since(operation.admitted_at),
            stages: operation.stages(now),
            late_success: false,
            reverted: false,
            joined: None,
            superseded_by: None,
            limited: false,
        }
    }

    fn remember(&mut self, record: Record) {
        while self.records.len() >= self.settings.records_max.max(1) {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// Records what a crashed actor left in the middle; its callers heard it from the fleet (semantics 5.8).
    pub(super) fn remember_interrupted(&mut self, now: Instant, mut settled: Settled) {
        settled.outcome = Outcome::Interrupted;
        settled.reason = Some(Reason::ActorRestarted);
        self.effects.push_back(Effect::Ended {
            outcome: settled.outcome,
            stage: settled.stage,
            reason: settled.reason,
            elapsed: settled.elapsed,
        });
        let property = self.description.as_ref().and_then(|d| d.property(&settled.property)).cloned();
        let required = property.as_ref().map_or(Evidence::Firmware, required);
        self.remember(Record {
            admitted_at: now.checked_sub(settled.elapsed).unwrap_or(now),
            ended_at: now,
            required,
            predicate: property.as_ref().zip(settled.wish.as_ref()).map(|(p, wish)| Predicate::of_wish(p, wish, None)),
            before: None,
            undone: false,
            settled,
        });
    }

    /// What is known of an operation that ended, as it is told now.
    pub(super) fn recalled(&self, now: Instant, record: &Record) -> Settled {
        let mut settled = record.settled.clone();
        let since = now.saturating_duration_since(record.ended_at);
        if let Some(found) = &mut settled.found {
            // A reading of then is no reading of now.
            found.age += since;
            found.trust = Trust::Old;
        }
        settled
    }

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
                late.push(settled.op.clone());
            }
        }
        self.effects.extend(late.into_iter().map(|op| Effect::LateSuccess { op }));
    }

    /// Looks whether a change undoes a success (semantics 3.7). One that somebody made at the device is nobody's fault, and
    /// ends the watch; any other is the device's: with nothing in flight, no command asked for it.
    pub(super) fn note_changes(&mut self, now: Instant, changes: &[Change], cause: Cause) {
        let Some(description) = self.description.clone() else { return };
        for change in changes {
            if self.operations.values().any(|o| o.property == change.property && o.sent()) {
                continue;
            }
            let moved = |r: &&mut Record| r.settled.property == change.property && may_have_moved(r.settled.outcome);
            let (Some(record), Some(property)) =
                (self.records.iter_mut().rev().find(moved), description.property(&change.property))
            else {
                continue;
            };
            let held = record.settled.outcome.is_success() || record.settled.late_success;
            let watched = now.saturating_duration_since(record.ended_at) <= self.settings.watch;
            if !held || !watched || record.undone || record.still_met(property, &change.to) {
                continue;
            }
            record.undone = true;
            match cause {
                Cause::Local => {}
                Cause::Command | Cause::Boot | Cause::Periodic | Cause::Query | Cause::Unknown => {
                    record.settled.reverted = true;
                    let (op, property) = (record.settled.op.clone(), change.property.clone());
                    self.effects.push_back(Effect::Reverted { op, property });
                }
            }
        }
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
fn may_have_moved(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Rejected | Outcome::Cancelled => false,
        Outcome::Converged
        | Outcome::Already
        | Outcome::Clamped
        | Outcome::Working
        | Outcome::Partial
        | Outcome::SentUnverified
        | Outcome::Superseded
        | Outcome::Failed
        | Outcome::Contradicted
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Removed
        | Outcome::DeviceCrashed => true,
    }
}
