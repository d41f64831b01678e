//! An independent measurement (semantics 3.10): another property, of this or another device, is asked before the command
//! goes out (the baseline) and after completion. The twin only asks and hears; who asks whom, the actors see to.

use std::time::{Duration, Instant};

use crate::{
    property::{Evidence, Predicate, Value, Verify},
    twin::{
        Twin,
        input::{Effect, Found},
        operation::Operation,
        words::{Measured, OpId, Outcome, Reason, Refusal, Stage},
    },
};

/// The shortest time between two questions to a measuring device, milliseconds: a meter that reports each second tells
/// nothing new in between, and its own commands come first.
const ASK_EVERY_MS: u64 = 500;

/// What is to be verified of one operation, and how far that is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    verify: Verify,
    predicate: Predicate,
    /// What was measured before the command went out.
    baseline: Option<Value>,
    /// The question that is under way.
    question: Option<OpId>,
    /// What was measured last, after completion.
    last: Option<Value>,
    /// Until when the measurement may show it; known once the device's own word has converged.
    until: Option<Instant>,
    agreed: bool,
}

impl Twin {
    /// Takes from the property what must be verified of this wish.
    pub(super) fn fit_check(operation: &mut Operation) {
        let verify = operation.spec.as_ref().and_then(|spec| spec.terms.verify.clone());
        let wanted = verify.zip(operation.wish.as_ref()).and_then(|(v, wish)| Some((v.of_wish(wish)?.clone(), v)));
        match (wanted, &operation.check) {
            (None, _) => operation.check = None,
            (Some((predicate, verify)), Some(check)) if check.verify == verify && check.predicate == predicate => {}
            (Some((predicate, verify)), _) => {
                operation.check = Some(Check {
                    verify,
                    predicate,
                    baseline: None,
                    question: None,
                    last: None,
                    until: None,
                    agreed: false,
                });
            }
        }
    }

    /// Asks for the baseline where one is needed. Whether the operation has to wait for it.
    pub(super) fn wants_baseline(&mut self, now: Instant, operation: &mut Operation) -> bool {
        let wants = operation.check.as_ref().is_some_and(|check| check.baseline.is_none());
        if wants {
            operation.base_by = Some(now + self.settings.read_back);
            self.ask(now, operation);
        }
        wants
    }

    fn ask(&mut self, now: Instant, operation: &mut Operation) {
        let answer_by = now + self.settings.read_back;
        let question = operation.next_question();
        operation.question = None;
        let Some(check) = &mut operation.check else { return };
        check.question = Some(question.clone());
        let (device, property) = (check.verify.device.clone(), check.verify.property.clone());
        self.effects.push_back(Effect::Ask { question, device, property, answer_by });
    }

    /// What a question to another device came to.
    pub(super) fn verified(&mut self, now: Instant, question: &OpId, found: Found) {
        let asked = |o: &&Operation| o.check.as_ref().is_some_and(|check| check.question.as_ref() == Some(question));
        let Some(op) = self.operations.values().find(asked).map(|o| o.op.clone()) else { return };
        let Some(operation) = self.operations.get_mut(&op) else { return };
        let sent = operation.sent();
        let Some(check) = &mut operation.check else { return };
        check.question = None;
        match (found, sent) {
            (Found::Value(value), false) => {
                check.baseline = Some(value);
                operation.base_by = None;
            }
            // Nothing has moved, and nothing shall that cannot be verified.
            (Found::Offline | Found::Silent, false) => self.refuse_unverified(now, &op),
            (Found::Value(value), true) => {
                check.agreed = check.predicate.holds(check.baseline.as_ref(), &value);
                check.last = Some(value);
                if check.agreed {
                    self.converge(now, &op);
                }
            }
            (Found::Offline | Found::Silent, true) => {}
        }
    }

    /// The baseline did not come.
    pub(super) fn refuse_unverified(&mut self, now: Instant, op: &OpId) {
        let check = self.operations.get(op).and_then(|operation| operation.check.as_ref());
        let Some(device) = check.map(|check| check.verify.device.clone()) else { return };
        self.refuse_waiting(now, op, &Refusal::VerifierOffline { device: Some(device) });
    }

    /// The device's own word and its read-back are good: now the measurement counts. Whether it is still awaited.
    pub(super) fn await_sensor(&mut self, now: Instant, op: &OpId) -> bool {
        let Some(operation) = self.operations.get_mut(op) else { return false };
        let Some(check) = operation.check.as_mut().filter(|check| !check.agreed) else { return false };
        if check.until.is_none() {
            let within = Duration::from_millis(check.verify.within_ms.into()).min(self.settings.driving_max);
            check.until = Some(now + within);
            self.enter(now, op, Stage::WaitingSensor);
            if let Some(operation) = self.operations.get_mut(op) {
                // A question takes its time as well.
                operation.ask_at = None;
                operation.stage_ends_at = now + within + self.settings.read_back;
                operation.sensor_at = Some(now);
            }
            self.ask_sensors(now);
        }
        true
    }

    /// Asks the measuring devices whose turn it is, once more after each interval while there is time.
    pub(super) fn ask_sensors(&mut self, now: Instant) {
        let due = |o: &&Operation| o.sensor_at.is_some_and(|at| at <= now);
        for op in self.operations.values().filter(due).map(|o| o.op.clone()).collect::<Vec<_>>() {
            let Some(mut operation) = self.operations.remove(&op) else { continue };
            let next = now + Duration::from_millis(ASK_EVERY_MS);
            let until = operation.check.as_ref().and_then(|check| check.until);
            operation.sensor_at = Some(next).filter(|next| until.is_some_and(|until| *next <= until));
            self.ask(now, &mut operation);
            self.operations.insert(op, operation);
        }
    }

    /// The measurement's time is over: it disagrees, or it never came.
    pub(super) fn sensor_run_out(&mut self, now: Instant, op: &OpId) {
        let measured = self.operations.get(op).and_then(|o| o.check.as_ref()).is_some_and(|check| check.last.is_some());
        let (outcome, reason) = match measured {
            true => (Outcome::Contradicted, Reason::SensorDiffers),
            false => (Outcome::TimedOut, Reason::Timeout),
        };
        self.end(now, op, outcome, Some(reason));
    }
}

impl Operation {
    /// Whether it waits for a baseline.
    pub(super) fn asks_verifier(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.question.is_some() && check.baseline.is_none())
    }

    /// It is sent again: what was measured of the earlier run says nothing of this one.
    pub(super) fn measure_anew(&mut self) {
        self.sensor_at = None;
        if let Some(check) = &mut self.check {
            // Nor does the answer to a question that is still under way.
            (check.until, check.last, check.agreed, check.question) = (None, None, false, None);
        }
    }

    /// What was measured, for the answer.
    pub(super) fn measured(&self) -> Option<Measured> {
        let check = self.check.as_ref()?;
        let (device, property) = (check.verify.device.clone(), check.verify.property.clone());
        let value = check.last.clone().filter(|_| !check.verify.sensitive);
        Some(Measured { device, property, value, agrees: check.agreed })
    }

    /// The evidence of a success: what was reported, or that a measurement agrees.
    pub(super) fn evidence(&self, reported: Evidence) -> Evidence {
        match &self.check {
            Some(check) if check.agreed => Evidence::Sensor,
            Some(_) | None if self.is_run() => Evidence::Firmware,
            Some(_) | None => reported,
        }
    }
}
