//! Callers who ask how a device is (semantics 8.2): the device is asked, and each is told what it says, or in time what is known.

use std::time::Instant;

use crate::twin::{
    Twin,
    input::{Command, Effect},
    words::{OpId, Presence, Refusal, StateReport},
};

/// A caller's question about the state.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) asked_at: Instant,
    /// When its caller is told what is known, if the device has not answered.
    pub(super) expires_at: Instant,
}

impl Twin {
    pub(super) fn query(&mut self, now: Instant, op: OpId, answer_by: Instant) {
        if self.stopping {
            return self.tell_state(op, Err(Refusal::ShuttingDown));
        }
        if self.line.presence == Presence::Offline || self.line.bus_down {
            let state = self.state(now);
            return self.tell_state(op, Ok(state));
        }
        if self.questions.len() >= self.settings.queries_max {
            return self.tell_state(op, Err(Refusal::QueueFull { limit: self.settings.queries_max }));
        }
        let expires_at = self.expires_at(answer_by).min(now + self.settings.read_back);
        if expires_at <= now {
            let state = self.state(now);
            return self.tell_state(op, Ok(state));
        }
        self.questions.insert(op.clone(), Question { asked_at: now, expires_at });
        self.send(Command::GetState { op, property: None });
    }

    /// The question never reached the device: there is nothing to wait for. Whether there is such a question.
    pub(super) fn question_not_written(&mut self, now: Instant, op: &OpId) -> bool {
        let is_one = self.questions.remove(op).is_some();
        if is_one {
            let state = self.state(now);
            self.tell_state(op.clone(), Ok(state));
        }
        is_one
    }

    /// Tells those whose time is over what is known.
    pub(super) fn expire_questions(&mut self, now: Instant) {
        let late: Vec<OpId> =
            self.questions.iter().filter(|(_, q)| q.expires_at <= now).map(|(op, _)| op.clone()).collect();
        for op in late {
            self.questions.remove(&op);
            let state = self.state(now);
            self.tell_state(op, Ok(state));
        }
    }

    pub(super) fn tell_state(&mut self, op: OpId, state: Result<StateReport, Refusal>) {
        self.effects.push_back(Effect::State { op, state });
    }
}
