//! How operations end, and what is remembered of it.

use std::{
    iter::repeat_n,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    property::{DeviceId, Evidence, Predicate, Property, Value},
    twin::{
        Twin,
        evidence::required,
        input::{Command, Effect, Left},
        operation::Operation,
        owed::Correction,
        planted::{self, Planted},
        waiter::{Hears, Waiter},
        watch::may_have_moved,
        words::{Attribution, OpId, Outcome, Reason, Reply, Settled, Stage, Trust},
    },
};

/// An operation that ended.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) settled: Settled,
    pub(super) admitted_at: Instant,
    /// Its place in the order of arrival; 0: of an earlier actor.
    pub(super) number: u64,
    /// Who it was for, and what each was told (semantics 4.3, 6.3).
    pub(super) waiters: Vec<Waiter>,
    pub(super) ended_at: Instant,
    /// The evidence that a success would have needed.
    pub(super) required: Evidence,
    /// What its success was, and the value before: a late success is judged by that, too.
    pub(super) predicate: Option<Predicate>,
    pub(super) before: Option<Value>,
    /// An action that the device can report as done: its word is all there is.
    pub(super) reports_done: bool,
    /// What it brought about was changed again, by the device or by a person.
    pub(super) undone: bool,
}

impl Record {
    /// Whether a value is no other than what was confirmed. A set value is the same within all of the described tolerance,
    /// which may be more than what had to be reached.
    pub(super) fn still_met(&self, property: &Property, value: &Value) -> bool {
        let wished = self.settled.wish.as_ref().is_some_and(|wish| property.same(value, wish));
        wished || self.predicate.as_ref().is_some_and(|p| p.holds(self.before.as_ref(), value))
    }
}

impl Twin {
    /// Fresh, attributed, reported state equals the wish.
    pub(super) fn converge(&mut self, now: Instant, op: &OpId) {
        if self.await_sensor(now, op) {
            return;
        }
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

    /// Ends an operation: all who wait are told, and what was told otherwise is owed (semantics 6.3). One that was superseded
    /// ends so, whatever the device says of it.
    pub(super) fn end(&mut self, now: Instant, op: &OpId, outcome: Outcome, reason: Option<Reason>) {
        let superseded = self.operations.get(op).is_some_and(|operation| operation.superseded_by.is_some());
        let outcome = if superseded { Outcome::Superseded } else { outcome };
        let success = outcome.is_success();
        if success {
            self.enter(now, op, Stage::Settled);
        }
        let Some(mut operation) = self.forget(op) else { return };
        self.note_end(now, &operation, outcome, reason);
        self.held_ended(now, &operation, outcome, reason);
        let settled = self.settled(now, &operation, outcome, reason);
        if success {
            self.note_kept(now, &settled);
        }
        if let (false, Some((stage, spent))) = (success, settled.stages.last()) {
            self.effects.push_back(Effect::StageLeft { stage: *stage, spent: *spent });
        }
        self.effects.push_back(Effect::Ended { outcome, stage: settled.stage, reason, elapsed: settled.elapsed });
        for waiter in &mut operation.waiters {
            let own = seen_by(settled.clone(), waiter);
            match waiter.hears {
                Hears::Waits => {
                    waiter.hears = Hears::Told { outcome, at: now };
                    let reply = Reply::Settled(Box::new(own));
                    let mut to = waiter.op.clone();
                    if planted::is(Planted::ToldToAnother)
                        && let Some(other) = self.operations.values().find_map(|o| o.waiting().next())
                    {
                        to = other.op.clone();
                    }
                    self.effects.push_back(Effect::Reply { op: to, reply });
                }
                Hears::Told { outcome: told, .. } if told != outcome => {
                    // From now on this is what it knows.
                    waiter.hears = Hears::Told { outcome, at: now };
                    self.effects.push_back(owe(&self.device, waiter, own));
                }
                Hears::Told { .. } | Hears::Gone => {}
            }
        }
        let reports_done = operation.reports_done();
        let record = Record {
            settled,
            admitted_at: operation.admitted_at,
            number: operation.number,
            waiters: operation.waiters,
            ended_at: now,
            // What was to be measured is not done by the device's own word.
            required: if operation.check.is_some() { Evidence::Sensor } else { operation.required },
            reports_done,
            predicate: operation.predicate,
            before: operation.before,
            undone: false,
        };
        self.remember(record);
    }

    /// Tells one caller of an operation that lives on.
    pub(super) fn answer_one(
        &mut self,
        now: Instant,
        op: &OpId,
        caller: &OpId,
        outcome: Outcome,
        reason: Option<Reason>,
    ) {
        let Some(operation) = self.operations.get(op) else { return };
        let Some(waiter) = operation.waiters.iter().find(|waiter| waiter.op == *caller) else { return };
        let own = seen_by(self.settled(now, operation, outcome, reason), waiter);
        self.effects.push_back(Effect::Reply { op: caller.clone(), reply: Reply::Settled(Box::new(own)) });
        if let Some(operation) = self.operations.get_mut(op) {
            operation.tell(now, caller, outcome);
        }
    }

    /// The limit of some callers has come, and the operation goes on. Where the device is at work they hear `working`
    /// (semantics 4.2); where it has not said so, that nobody knows: for the others it goes on.
    pub(super) fn answer_late(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let (outcome, reason) = match operation.begun() {
            true => (Outcome::Working, None),
            false => (Outcome::TimedOut, Some(Reason::Timeout)),
        };
        let late = operation.waiting().filter(|waiter| waiter.expires_at <= now);
        let late: Vec<OpId> = late.map(|waiter| waiter.op.clone()).collect();
        for caller in late {
            self.answer_one(now, op, &caller, outcome, reason);
        }
    }

    /// How far an operation is, for its caller or for one who asks.
    pub(super) fn so_far(&self, now: Instant, operation: &Operation) -> Settled {
        let outcome = if operation.superseded_by.is_some() { Outcome::Superseded } else { Outcome::Working };
        self.settled(now, operation, outcome, None)
    }

    /// What each caller of the operations in flight would be told now: a successor goes on from there.
    pub(super) fn left(&self, now: Instant) -> Vec<Left> {
        let mut left = Vec::new();
        for operation in self.operations.values() {
            let each = repeat_n(self.so_far(now, operation), operation.waiters.len()).zip(&operation.waiters);
            left.extend(each.map(|(so_far, w)| Left {
                caller: w.caller.clone(),
                hears: w.hears,
                settled: seen_by(so_far, w),
            }));
        }
        left
    }

    fn settled(&self, now: Instant, operation: &Operation, outcome: Outcome, reason: Option<Reason>) -> Settled {
        let success = outcome.is_success();
        // Spoken of as present only if it was received after the command was written: an older value may be what the
        // command has changed.
        let mut found = self.reading(now, &operation.property, operation.written_at);
        if let (Outcome::Already, Some(found)) = (outcome, &mut found) {
            // As fresh as its caller asked for (semantics 3.8).
            found.trust = Trust::Now;
        }
        Settled {
            op: operation.op.clone(),
            device: self.device.clone(),
            property: operation.property.clone(),
            wish: operation.wish.clone(),
            outcome,
            stage: match planted::is(Planted::StageOffByOne) && operation.stage == Stage::WaitingDeviceAck {
                true => Stage::WaitingDeviceStart,
                false => operation.stage,
            },
            reason,
            confirmed_by: match success {
                true => operation.evidence(found.as_ref().map_or(Evidence::None, |r| r.evidence)),
                false => Evidence::None,
            },
            measured: operation.measured(),
            found,
            attribution: if operation.through() { Attribution::Inferred } else { Attribution::Named },
            eta: operation.eta_at.map(|at| at.saturating_duration_since(now)).filter(|_| outcome == Outcome::Working),
            elapsed: now.saturating_duration_since(operation.admitted_at),
            stages: operation.stages(now),
            late_success: false,
            reverted: false,
            joined: None,
            superseded_by: operation.superseded_by.clone(),
            limited: operation.limited,
            kept: !success && outcome != Outcome::Working && self.pursues(&operation.property, operation.wish.as_ref()),
            recorded: true,
        }
    }

    fn remember(&mut self, record: Record) {
        while self.records.len() >= self.settings.records_max.max(1) {
            // What moved nothing goes first: its callers were told at once, and nothing can change the truth of that (6.3).
            let idle = self.records.iter().position(|record| !may_have_moved(&record.settled));
            self.records.remove(idle.unwrap_or(0));
        }
        self.records.push_back(record);
    }

    /// Records what a crashed actor left in the middle; its callers heard it from the fleet (semantics 5.8).
    pub(super) fn remember_interrupted(&mut self, now: Instant, left: Vec<Left>) {
        let Some(mut settled) = left.first().map(|first| first.settled.clone()) else { return };
        let reason = Some(Reason::ActorRestarted);
        // The id that the device knows.
        settled.op = settled.joined.take().unwrap_or(settled.op);
        let told = Hears::Told { outcome: Outcome::Interrupted, at: now };
        let mut waiters = Vec::with_capacity(left.len());
        for left in left {
            let (op, caller) = (left.settled.op.clone(), left.caller);
            let hears = if left.hears == Hears::Waits { told } else { left.hears };
            let mut waiter = Waiter { op, caller, behind: Duration::ZERO, expires_at: now, hears };
            // Who was told that it is at work has not heard of the crash.
            if matches!(left.hears, Hears::Told { outcome: Outcome::Working, .. }) {
                let own = Settled { outcome: Outcome::Interrupted, reason, eta: None, ..left.settled };
                waiter.hears = told;
                self.effects.push_back(owe(&self.device, &waiter, own));
            }
            waiters.push(waiter);
        }
        settled.outcome = Outcome::Interrupted;
        settled.reason = reason;
        // A set point is wished all the same, and sent again; for those who were told nothing that is no news later.
        let told = waiters.iter().any(|waiter| waiter.told().is_some());
        settled.kept = told && self.pursues(&settled.property, settled.wish.as_ref());
        self.effects.push_back(Effect::Ended {
            outcome: settled.outcome,
            stage: settled.stage,
            reason: settled.reason,
            elapsed: settled.elapsed,
        });
        let property = self.description.as_ref().and_then(|d| d.property(&settled.property)).cloned().map(Arc::new);
        let verified = property.as_deref().zip(settled.wish.as_ref()).is_some_and(|(property, wish)| {
            property.terms.verify.as_ref().is_some_and(|verify| verify.of_wish(wish).is_some())
        });
        let own_word = property.as_deref().map_or(Evidence::Firmware, required);
        let required = if verified { Evidence::Sensor } else { own_word };
        self.remember(Record {
            admitted_at: now.checked_sub(settled.elapsed).unwrap_or(now),
            number: 0,
            waiters,
            ended_at: now,
            required,
            predicate: property.as_ref().zip(settled.wish.as_ref()).map(|(p, wish)| Predicate::of_wish(p, wish, None)),
            before: None,
            reports_done: false,
            undone: false,
            settled,
        });
    }

    /// Records what an earlier process had ended: to be told, never to be amended, since nobody knows any more what it
    /// would be judged by.
    pub(super) fn remember_ended(&mut self, ended_at: Instant, left: Left) {
        let Left { caller, hears, mut settled } = left;
        // Whether those were told anything whose hub died over it is known no more: that it is sent again is no news to them.
        settled.kept &= settled.reason != Some(Reason::ActorRestarted);
        let waiter = Waiter { op: settled.op.clone(), caller, behind: Duration::ZERO, expires_at: ended_at, hears };
        self.remember(Record {
            admitted_at: ended_at.checked_sub(settled.elapsed).unwrap_or(ended_at),
            number: 0,
            waiters: vec![waiter],
            ended_at,
            required: Evidence::Sensor,
            predicate: None,
            before: None,
            reports_done: false,
            undone: true,
            settled,
        });
    }

    /// What is known of an operation that ended, as it is told now to one of its callers.
    pub(super) fn recalled(&self, now: Instant, record: &Record, caller: Option<&OpId>) -> Settled {
        let waiter = record.waiters.iter().find(|waiter| Some(&waiter.op) == caller);
        let mut settled = record.settled.clone();
        if let Some(waiter) = waiter {
            settled = seen_by(settled, waiter);
        }
        let since = now.saturating_duration_since(record.ended_at);
        settled.kept &= self.pursues(&settled.property, settled.wish.as_ref());
        if let Some(found) = &mut settled.found {
            // A reading of then is no reading of now.
            found.age += since;
            found.trust = Trust::Old;
        }
        settled
    }
}

impl Record {
    /// What its callers are owed: those that were told something. How long that is news is watched from the record's end.
    pub(super) fn news(&self, device: &DeviceId) -> Vec<Effect> {
        let told = self.waiters.iter().filter(|waiter| waiter.told().is_some());
        told.map(|w| owe(device, w, seen_by(self.settled.clone(), w))).collect()
    }
}

fn owe(device: &DeviceId, waiter: &Waiter, settled: Settled) -> Effect {
    let correction = Correction { device: device.clone(), operation: waiter.op.clone(), settled };
    Effect::Owed { caller: waiter.caller.clone(), correction: Box::new(correction) }
}

/// An operation as one of its callers sees it: under the id of its own call, and since that.
pub(super) fn seen_by(mut settled: Settled, waiter: &Waiter) -> Settled {
    if waiter.op != settled.op {
        settled.joined = Some(std::mem::replace(&mut settled.op, waiter.op.clone()));
        settled.elapsed = settled.elapsed.saturating_sub(waiter.behind);
    }
    settled
}
