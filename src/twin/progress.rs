//! What a report means for the operations in flight: `converged(op)` = predicate on the merged value, fresh, attributed,
//! with the evidence required, and still so at the read-back (semantics 3).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    property::{Description, Evidence, PropertyName},
    twin::{
        Twin,
        input::{ActionResult, Body, Cause, Command, Effect, Report},
        operation::Operation,
        reported::{Known, Merged},
        words::{OpId, Outcome, Reason, Refusal, Stage},
    },
};

/// What the merged twin says of an operation's wish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is so, with the evidence required.
    Met,
    /// It is so, with less evidence than required.
    Weak,
    /// It is otherwise.
    Other,
    /// Nothing newer than the command is known.
    Nothing,
}

impl Twin {
    pub(super) fn heard(&mut self, now: Instant, report: &Report) {
        if let Err(why) = self.reported.admit(report) {
            self.effects.push_back(Effect::Ignored(why));
            return;
        }
        self.alive(now);
        let description = self.description.clone().unwrap_or_default();
        let merged = self.reported.merge(now, report.seq, &report.status, &description);
        self.note_malformed(report.seq, &merged);
        match &report.body {
            Body::Heartbeat => {}
            Body::Action { op, result, reason, eta } => {
                self.note_changes(now, &merged.changes, Cause::Command);
                self.act(now, report.seq, op, *result, *reason, *eta, &merged);
            }
            Body::State { op, cause, seen } => {
                for (property, finished) in seen {
                    self.reported.finish(report.seq, property, finished);
                }
                self.note_changes(now, &merged.changes, *cause);
                if let Some(question) = op {
                    self.answered(now, question, &merged);
                }
                self.watch_read_backs(now, &merged);
                self.note_late(now);
            }
        }
    }

    /// A report about one operation.
    #[expect(clippy::too_many_arguments, reason = "the fields of one report, taken apart once")]
    fn act(
        &mut self,
        now: Instant,
        seq: u32,
        op: &OpId,
        result: ActionResult,
        reason: Option<Reason>,
        eta: Option<Duration>,
        merged: &Merged,
    ) {
        let property = match self.operations.get(op) {
            Some(operation) if operation.written_at.is_some() => operation.property.clone(),
            // Not written yet: nothing that comes can be its result (semantics 3.2).
            Some(_) => return,
            None => {
                self.finish_recorded(seq, op, result);
                return self.note_late(now);
            }
        };
        match result {
            ActionResult::Received => self.advance(now, op, Stage::WaitingDeviceStart),
            ActionResult::Executing => self.advance(now, op, Stage::WaitingDeviceReport),
            ActionResult::Working => {
                self.advance(now, op, Stage::WaitingDeviceReport);
                if let (Some(eta), Some(operation)) = (eta, self.operations.get_mut(op)) {
                    operation.extend(now, eta, &self.settings);
                }
            }
            ActionResult::Completed => {
                self.reported.finish(seq, &property, op);
                self.completed(now, seq, op, merged.carried.contains(&property));
            }
            ActionResult::Failed => {
                self.reported.finish(seq, &property, op);
                self.device_failed(now, op, reason);
            }
            ActionResult::Rejected => self.fail(now, op, Outcome::Rejected, reason.unwrap_or(Reason::Unknown)),
            ActionResult::Unknown => self.mark_unreadable(op),
        }
    }

    /// Enters a stage that lies ahead; a report that was overtaken leads nowhere back.
    fn advance(&mut self, now: Instant, op: &OpId, stage: Stage) {
        if self.operations.get(op).is_some_and(|operation| operation.stage < stage) {
            self.enter(now, op, stage);
        }
    }

    /// The device says that it is done. That is the first check; the read-back is the second (semantics 3.6).
    fn completed(&mut self, now: Instant, seq: u32, op: &OpId, read_in_it: bool) {
        self.advance(now, op, Stage::WaitingReadBack);
        if let Some(operation) = self.operations.get_mut(op) {
            operation.completed_seq.get_or_insert(seq);
        }
        let Some(operation) = self.operations.get(op) else { return };
        match self.verdict(operation) {
            Verdict::Other => self.contradict(now, op, Reason::ReadBackDiffers),
            // Read after driving inside the report itself: both checks in one message.
            Verdict::Met if read_in_it && operation.stable.is_zero() && self.at_pin(operation) => {
                self.converge(now, op);
            }
            Verdict::Met | Verdict::Weak | Verdict::Nothing => self.ask_due(now),
        }
    }

    fn at_pin(&self, operation: &Operation) -> bool {
        self.reported.get(&operation.property).is_some_and(|known| known.evidence >= Evidence::Pin)
    }

    /// The device says that it tried in vain. Should it read as wished all the same, nobody knows what happened.
    fn device_failed(&mut self, now: Instant, op: &OpId, reason: Option<Reason>) {
        let Some(operation) = self.operations.get(op) else { return };
        let reason = reason.unwrap_or(Reason::Unknown);
        let outcome = match self.verdict(operation) {
            Verdict::Met | Verdict::Weak => Outcome::Interrupted,
            Verdict::Other | Verdict::Nothing => Outcome::Failed,
        };
        match reason {
            // It never began: the stage that broke is the one in which it waited.
            Reason::Withdrawn | Reason::Expired | Reason::Superseded => {}
            Reason::Timeout
            | Reason::Stuck
            | Reason::OutOfRange
            | Reason::Busy
            | Reason::Interrupted
            | Reason::Unsupported
            | Reason::Malformed
            | Reason::Power
            | Reason::ReadBackDiffers
            | Reason::DidNotHold
            | Reason::ConnectionLost
            | Reason::DeviceRestarted
            | Reason::ActorRestarted
            | Reason::HubStopping
            | Reason::BrokerDown
            | Reason::UnreadableReport
            | Reason::Unknown => self.advance(now, op, Stage::WaitingDeviceReport),
        }
        self.fail(now, op, outcome, reason);
    }

    /// An answer to a question: of a caller, or of an operation.
    fn answered(&mut self, now: Instant, question: &OpId, merged: &Merged) {
        if self.questions.remove(question).is_some() {
            let state = self.state_report(now, Some(now));
            return self.tell_state(question.clone(), Ok(state));
        }
        let asked = self.operations.values().find(|o| o.question.as_ref() == Some(question));
        let Some((op, property)) = asked.map(|o| (o.op.clone(), o.property.clone())) else { return };
        if merged.carried.contains(&property) {
            self.answered_for(now, &op);
        }
    }

    /// The device has answered a question about this operation, with a value for its property.
    fn answered_for(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let attributed = self.reported.seen(&operation.property) == Some(op);
        let reading_back = operation.stage >= Stage::WaitingReadBack;
        match self.verdict(operation) {
            // Finished, it says, and it is so: a lost report is no failure (semantics 3.6).
            Verdict::Met if attributed => self.converge(now, op),
            Verdict::Other if attributed || reading_back => {
                self.advance(now, op, Stage::WaitingReadBack);
                self.contradict(now, op, Reason::ReadBackDiffers);
            }
            // Not finished, or not said well enough: it goes on waiting until its allowance is over.
            Verdict::Met | Verdict::Weak | Verdict::Other | Verdict::Nothing => {}
        }
    }

    /// A value that goes away between completion and read-back did not hold (semantics 3.7).
    fn watch_read_backs(&mut self, now: Instant, merged: &Merged) {
        let changed = |property: &PropertyName| merged.changes.iter().any(|c| c.property == *property);
        let gone: Vec<OpId> = self
            .operations
            .values()
            .filter(|o| o.stage >= Stage::WaitingReadBack && changed(&o.property))
            .filter(|o| self.verdict(o) == Verdict::Other)
            .map(|o| o.op.clone())
            .collect();
        for op in gone {
            self.contradict(now, &op, Reason::DidNotHold);
        }
    }

    /// What a hello means for what was in flight (semantics 5.3, 5.4). An operation that the device says it has finished
    /// converges or is contradicted; another of an earlier run is interrupted, its end unknown; one of the same run waits on.
    pub(super) fn after_hello(&mut self, now: Instant, same_boot: bool) {
        let sent: Vec<OpId> =
            self.operations.values().filter(|o| o.written_at.is_some()).map(|o| o.op.clone()).collect();
        for op in sent {
            let Some(operation) = self.operations.get(&op) else { continue };
            let finished = self.reported.seen(&operation.property) == Some(&op);
            if finished {
                self.answered_for(now, &op);
            } else if !same_boot {
                self.fail(now, &op, Outcome::Interrupted, Reason::DeviceRestarted);
            }
        }
        self.note_late(now);
    }

    /// The one predicate of this version: `equals` (semantics 3.1), on the merged value, received after the command was
    /// written to the device (3.2).
    fn verdict(&self, operation: &Operation) -> Verdict {
        let (Some(known), Some(written_at)) = (self.reported.get(&operation.property), operation.written_at) else {
            return Verdict::Nothing;
        };
        let overtaken = operation.completed_seq.is_some_and(|completed| known.seq < completed);
        if known.received_at < written_at || overtaken {
            return Verdict::Nothing;
        }
        match self.equals(operation, known) {
            false => Verdict::Other,
            true if known.evidence >= operation.required => Verdict::Met,
            true => Verdict::Weak,
        }
    }

    fn equals(&self, operation: &Operation, known: &Known) -> bool {
        let property = self.description.as_ref().and_then(|d| d.property(&operation.property));
        property.is_some_and(|p| p.same(&known.value, &operation.wish))
    }

    pub(super) fn written(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        if operation.stage == Stage::WaitingBroker {
            operation.written_at = Some(now);
            self.enter(now, op, Stage::WaitingDeviceAck);
        }
    }

    /// The command never reached the device's socket: nothing was sent.
    pub(super) fn not_written(&mut self, now: Instant, op: &OpId) {
        if self.operations.get(op).is_some_and(|o| o.stage == Stage::WaitingBroker) {
            let refusal = if self.line.bus_down { Refusal::BrokerDown } else { self.offline(now) };
            let name = self.operations.get(op).map(|o| o.property.clone());
            self.withdraw(op.clone());
            self.forget_wish(op);
            self.refuse_waiting(op, refusal);
            if let Some(name) = name {
                self.begin_next(now, &name);
            }
        }
    }

    pub(super) fn unreadable(&mut self, now: Instant) {
        self.alive(now);
        for operation in self.operations.values_mut().filter(|o| o.written_at.is_some()) {
            operation.unreadable = true;
        }
    }

    fn mark_unreadable(&mut self, op: &OpId) {
        if let Some(operation) = self.operations.get_mut(op) {
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
        let due: Vec<OpId> = self.operations.values().filter(|o| o.wakes_at() <= now).map(|o| o.op.clone()).collect();
        for op in due {
            let Some(operation) = self.operations.get(&op) else { continue };
            let late = operation.expires_at <= now && !operation.answered;
            if !operation.sent() {
                if operation.online_by.is_some_and(|by| by <= now) && self.line.session.is_none() {
                    let refusal = self.offline(now);
                    self.refuse_waiting(&op, refusal);
                } else if late {
                    let needed = operation.allowance + self.settings.begin_min;
                    self.refuse_waiting(&op, Refusal::DeadlineTooShort { needed });
                } else if let Some(operation) = self.operations.get_mut(&op) {
                    operation.online_by = operation.online_by.filter(|by| *by > now);
                }
            } else if operation.stage_ends_at <= now || (late && !operation.begun()) {
                let unreadable = operation.unreadable;
                self.fail(
                    now,
                    &op,
                    Outcome::TimedOut,
                    if unreadable { Reason::UnreadableReport } else { Reason::Timeout },
                );
            } else if late {
                self.answer_working(now, &op);
            }
        }
        self.ask_due(now);
    }

    /// Asks the device about operations whose question is due.
    fn ask_due(&mut self, now: Instant) {
        let due = self.operations.values_mut().filter(|o| o.ask_at.is_some_and(|at| at <= now));
        let questions: Vec<(OpId, PropertyName)> = due.map(|o| (o.next_question(), o.property.clone())).collect();
        for (op, property) in questions {
            self.send(Command::GetState { op, property: Some(property) });
        }
    }

    /// The description in force, or none: for the modules beside this one.
    pub(super) fn described(&self) -> Option<Arc<Description>> {
        self.description.clone()
    }
}
