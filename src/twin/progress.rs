//! What a report means for the operations in flight: `converged(op)` = predicate on the merged value, fresh, attributed,
//! with the evidence required, and still so at the read-back (semantics 3).

use std::time::{Duration, Instant};

use crate::{
    property::{Evidence, PropertyName},
    twin::{
        Twin,
        evidence::Verdict,
        input::{ActionResult, Body, Cause, Command, Effect, Report},
        operation::Operation,
        planted::{self, Planted},
        reported::{ChangedBy, Merged},
        words::{OpId, Outcome, Reason, Stage},
    },
};

impl Twin {
    pub(super) fn heard(&mut self, now: Instant, report: &Report) {
        if let Err(why) = self.reported.admit(report) {
            self.effects.push_back(Effect::Ignored(why));
            return;
        }
        self.alive(now);
        if let Body::Action { op, .. } = &report.body {
            // Who speaks of an operation has its command, should the notice of its writing be late.
            self.written(now, op);
        }
        let description = self.description.clone().unwrap_or_default();
        let by = match &report.body {
            Body::Action { op, .. } => ChangedBy::Operation(op.clone()),
            Body::State { cause, .. } => ChangedBy::Cause(*cause),
            Body::Heartbeat => ChangedBy::Cause(Cause::Unknown),
        };
        let merged = self.reported.merge(now, report.seq, &report.status, &description, &by);
        self.note_malformed(report.seq, &merged);
        if !merged.carried.is_empty() {
            self.line.told_at = Some(now);
        }
        match &report.body {
            Body::Heartbeat => {}
            Body::Action { op, result, reason, eta, clamped } => {
                self.note_changes(now, &merged.changes, Cause::Command);
                if self.operations.get(op).is_some_and(Operation::sent) {
                    self.act(now, report.seq, op, *result, *reason, *eta, *clamped, &merged);
                } else {
                    self.finish_recorded(report.seq, op, *result);
                }
                self.note_late_drive(now, op, &merged);
                if *result == ActionResult::Completed {
                    // Its word is the first check; only a pin read in the report is the second as well.
                    self.note_late(now, report.seq, &[op], Evidence::Pin);
                    self.note_late_action(now, op);
                }
            }
            Body::State { op, cause, seen } => {
                for (property, finished) in seen {
                    self.reported.finish(report.seq, property, finished, &description);
                }
                self.note_changes(now, &merged.changes, *cause);
                self.note_drift(now, &merged.changes, *cause, false);
                if let Some(question) = op {
                    self.answered(now, question, &merged);
                }
                self.watch_contacts(now, &merged);
                self.watch_read_backs(now, &merged);
                let finished: Vec<&OpId> = seen.iter().map(|(_, op)| op).collect();
                self.note_late(now, report.seq, &finished, Evidence::Firmware);
            }
        }
    }

    /// A report about an operation whose command went out.
    #[expect(clippy::too_many_arguments, reason = "the fields of one report, taken apart once")]
    fn act(
        &mut self,
        now: Instant,
        seq: u32,
        op: &OpId,
        result: ActionResult,
        reason: Option<Reason>,
        eta: Option<Duration>,
        clamped: bool,
        merged: &Merged,
    ) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        let begun = operation.begun();
        match result {
            ActionResult::Received if planted::is(Planted::AckIsSuccess) => self.converge(now, op),
            ActionResult::Received => self.advance(now, op, Stage::WaitingDeviceStart),
            ActionResult::Executing => self.executing(now, op),
            ActionResult::Working => {
                self.advance(now, op, Stage::WaitingDeviceReport);
                if let (Some(eta), Some(operation)) = (eta, self.operations.get_mut(op)) {
                    // Overtaken by its completion, it says nothing of the read-back.
                    if operation.stage == Stage::WaitingDeviceReport {
                        operation.extend(now, eta, &self.settings);
                    }
                }
            }
            ActionResult::Completed => self.completed(now, seq, op, clamped, merged),
            // Refused; but what it said to have begun it cannot refuse.
            ActionResult::Rejected if !begun && operation.reboots == 0 => {
                self.end(now, op, Outcome::Rejected, Some(reason.unwrap_or(Reason::Unknown)));
            }
            ActionResult::Rejected | ActionResult::Failed => self.device_failed(now, op, result, reason),
            ActionResult::Unknown => operation.unreadable = true,
        }
    }

    /// Enters a stage that lies ahead; a report that was overtaken leads nowhere back.
    pub(super) fn advance(&mut self, now: Instant, op: &OpId, stage: Stage) {
        if self.operations.get(op).is_some_and(|operation| operation.stage < stage) {
            self.enter(now, op, stage);
        }
    }

    /// The device says that it is done. That is the first check; the read-back is the second (semantics 3.6).
    fn completed(&mut self, now: Instant, seq: u32, op: &OpId, clamped: bool, merged: &Merged) {
        if self.action_completed(now, op, merged) {
            return;
        }
        let Some(property) = self.operations.get(op).map(|o| o.property.clone()) else { return };
        if merged.malformed.iter().any(|(name, _)| *name == property) {
            // It has driven; what it says of the end cannot be read.
            return self.advance(now, op, Stage::WaitingDeviceReport);
        }
        self.finish(seq, &property, op);
        if self.operations.get(op).is_some_and(|o| o.superseded_by.is_some()) {
            // Nobody waits for its read-back.
            self.advance(now, op, Stage::WaitingDeviceReport);
            return self.end(now, op, Outcome::Superseded, None);
        }
        self.advance(now, op, Stage::WaitingReadBack);
        if clamped {
            self.take_clamped(op, &property, merged);
        }
        let Some(operation) = self.operations.get(op) else { return };
        let verdict = self.verdict(operation);
        let attributed = self.attributed(operation);
        let at_pin = self.reported.get(&property).is_some_and(|known| known.evidence >= Evidence::Pin);
        let met_at_pin = verdict == Verdict::Met && at_pin && merged.carried.contains(&property);
        match verdict {
            Verdict::Other if attributed => self.contradict(now, op, Reason::ReadBackDiffers),
            // Read after driving inside the report itself: both checks in one message.
            Verdict::Met if attributed && met_at_pin && operation.stable.is_zero() => self.converge(now, op),
            Verdict::Met | Verdict::Weak | Verdict::Other | Verdict::Nothing => self.ask_due(now),
        }
    }

    /// The device says that it tried in vain, or that it never began. Should it read as wished all the same, nobody knows
    /// what happened.
    fn device_failed(&mut self, now: Instant, op: &OpId, result: ActionResult, reason: Option<Reason>) {
        let reason = reason.unwrap_or(Reason::Unknown);
        // It never began: the stage that broke is the one in which it waited.
        if result == ActionResult::Failed && !matches!(reason, Reason::Withdrawn | Reason::Expired | Reason::Superseded)
        {
            self.advance(now, op, Stage::WaitingDeviceReport);
        }
        let Some(operation) = self.operations.get(op) else { return };
        let in_vain = operation.begun();
        let outcome = match self.verdict(operation) {
            // It speaks of this run; what an earlier one did nobody can say (semantics 5.4).
            _ if operation.reboots > 0 && !in_vain => Outcome::Interrupted,
            _ if operation.cancelled && reason == Reason::Withdrawn => Outcome::Cancelled,
            Verdict::Met | Verdict::Weak => Outcome::Interrupted,
            Verdict::Other | Verdict::Nothing => Outcome::Failed,
        };
        self.end(now, op, outcome, Some(reason));
    }

    /// An answer to a question: of a caller, or of an operation.
    fn answered(&mut self, now: Instant, question: &OpId, merged: &Merged) {
        if let Some(asked) = self.questions.remove(question) {
            let state = self.state_report(now, Some(asked.asked_at));
            return self.tell_state(question.clone(), Ok(state));
        }
        let is_own = |o: &&Operation| {
            let any = planted::is(Planted::EarlierQueryCounts) && question.as_str().starts_with(o.op.as_str());
            any || o.question.as_ref() == Some(question)
        };
        let asked = self.operations.values().find(is_own);
        let Some((op, property)) = asked.map(|o| (o.op.clone(), o.property.clone())) else { return };
        if !merged.carried.contains(&property) {
            return;
        }
        match self.operations.get_mut(&op) {
            Some(operation) if !operation.sent() => {
                operation.base_by = None;
            }
            Some(_) | None => self.judge(now, &op),
        }
    }

    /// The device has said, unasked or asked, what the value is and what it has finished last.
    pub(super) fn judge(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let attributed = self.attributed(operation);
        match self.verdict(operation) {
            // What an action moves arrives when it arrives: until its time is over it is on its way.
            Verdict::Met if operation.through() && operation.stage < Stage::WaitingReadBack && attributed => {
                self.enter(now, op, Stage::WaitingReadBack);
                self.ask_due(now);
            }
            Verdict::Other if operation.through() && operation.stage < Stage::WaitingReadBack => {}
            // Finished, it says, and it is so: a lost report is no failure (semantics 3.6).
            Verdict::Met if attributed && (!operation.must_hold() || planted::is(Planted::EarlierQueryCounts)) => {
                self.converge(now, op);
            }
            Verdict::Other if attributed => {
                self.advance(now, op, Stage::WaitingReadBack);
                self.contradict(now, op, Reason::ReadBackDiffers);
            }
            // Not finished, or not said well enough: it goes on waiting until its allowance is over.
            Verdict::Met | Verdict::Weak | Verdict::Other | Verdict::Nothing => {}
        }
    }

    /// A value that the device itself says has gone away between completion and read-back did not hold (semantics 3.7).
    fn watch_read_backs(&mut self, now: Instant, merged: &Merged) {
        let changed = |property: &PropertyName| merged.changes.iter().any(|c| c.property == *property);
        let gone: Vec<OpId> = self
            .operations
            .values()
            .filter(|o| o.stage >= Stage::WaitingReadBack && changed(&o.property))
            .filter(|o| self.attributed(o) && self.verdict(o) == Verdict::Other)
            .map(|o| o.op.clone())
            .collect();
        for op in gone {
            self.contradict(now, &op, Reason::DidNotHold);
        }
    }

    /// Notes which operation the device has finished last on a property.
    pub(super) fn finish(&mut self, seq: u32, property: &PropertyName, op: &OpId) {
        if let Some(description) = &self.description {
            self.reported.finish(seq, property, op, description);
        }
    }

    pub(super) fn written(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        if operation.stage == Stage::WaitingBroker {
            operation.written_at = Some(now);
            operation.reached = true;
            self.enter(now, op, Stage::WaitingDeviceAck);
        }
    }

    pub(super) fn unreadable(&mut self, now: Instant) {
        self.alive(now);
        for operation in self.operations.values_mut().filter(|o| o.written_at.is_some()) {
            operation.unreadable = true;
        }
    }

    pub(super) fn note_malformed(&mut self, of_seq: u32, merged: &Merged) {
        for (property, error) in &merged.malformed {
            let hit = self.operations.values_mut().filter(|o| o.written_at.is_some() && o.property == *property);
            hit.for_each(|o| o.unreadable = true);
            self.effects.push_back(Effect::Malformed { of_seq, property: property.clone(), error: error.clone() });
        }
    }

    /// Ends, answers or asks for what is due at `now`.
    pub(super) fn expire_operations(&mut self, now: Instant) {
        let due: Vec<OpId> = self
            .operations
            .values()
            .filter(|o| o.wakes_at().is_some_and(|at| at <= now))
            .map(|o| o.op.clone())
            .collect();
        for op in due {
            let Some(operation) = self.operations.get(&op) else { continue };
            let late = operation.soonest().is_some_and(|soonest| soonest <= now);
            // Nobody else to go on for.
            let all_late = late && operation.waiting().all(|waiter| waiter.expires_at <= now);
            if !operation.sent() {
                self.expire_waiting(now, &op);
            } else if operation.stage_ends_at <= now || (all_late && !operation.begun()) {
                self.run_out(now, &op);
            } else if late {
                self.answer_late(now, &op);
            }
        }
        self.ask_due(now);
    }

    /// Asks the device about operations whose question is due.
    pub(super) fn ask_due(&mut self, now: Instant) {
        let due = self.operations.values_mut().filter(|o| o.ask_at.is_some_and(|at| at <= now));
        let questions: Vec<(OpId, PropertyName)> = due.map(|o| (o.next_question(), o.property.clone())).collect();
        for (op, property) in questions {
            self.send(Command::GetState { op, property: Some(property) });
        }
    }
}
