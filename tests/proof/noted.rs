//! What has gone out of a twin and what has reached it, by the evidence alone: what the invariants compare it with.

use truetwin_proof::{
    property::Value,
    twin::{
        input::{ActionResult, Body, Command, Effect, Found, Input, Report, Status},
        words::{OpId, Outcome, Reason, Stage},
    },
};

use crate::{
    ends,
    house::House,
    log::number,
    unit::{Call, For, LastWord},
};

impl House {
    /// What the twin decided to send is noted: an operation begins anew with it.
    pub(crate) fn note_decided(&mut self, unit: usize, command: &Command) {
        let (op, ttl, value) = match command {
            Command::Set { op, ttl, value, .. } => (op, *ttl, Some(*value == Value::Bool(true))),
            Command::Run { op, ttl, .. } => (op, *ttl, None),
            Command::GetState { op, .. } => {
                let of = op.as_str().rsplit_once('-').map(|(of, _)| OpId::new(of));
                if let Some(call) = of.and_then(|of| self.calls.get_mut(&of)) {
                    call.questions.push((op.clone(), self.now));
                }
                return;
            }
            Command::Withdraw { op } => {
                self.withdrawn.insert(op.clone());
                return;
            }
            Command::Welcome { .. } => return,
        };
        if !self.calls.contains_key(op) {
            self.nobody(unit, op);
        }
        self.units[unit].claimed = None;
        let (now, session) = (self.now, self.units[unit].session.clone());
        let session = session.filter(|_| self.units[unit].hub_connection.is_some());
        let call = self.calls.get_mut(op).expect("a call");
        // Of a sending before this one nobody said that it was not written: the device may have it.
        call.written |= !call.sent.is_empty() && call.stage == Stage::WaitingBroker;
        call.sent.push((now, ttl, session));
        call.stage = Stage::WaitingBroker;
        (call.completed_at, call.read_back) = (None, None);
        call.value = value.or(call.value);
        // A stored wish that outlived its actor is sent only now.
        call.ended = false;
        if !call.active {
            call.active = true;
            self.units[unit].active.push(op.clone());
        }
        ends::is_sent(self, unit, op);
    }

    /// A held wish is sent again under an id of its own: nobody waits for it.
    fn nobody(&mut self, unit: usize, op: &OpId) {
        let (made, _) = self.call(unit, For::Nobody, 100_000_000, Self::who(0));
        self.order[unit].pop();
        self.units[unit].active.pop();
        let mut call = self.calls.remove(&made).expect("just made");
        (call.gone, call.active) = (true, false);
        *self.tally.outcomes.entry("pursued").or_default() += 1;
        self.calls.insert(op.clone(), call);
    }

    /// Notes what reaches the twin with an input.
    pub(crate) fn before(&mut self, unit: usize, input: &Input) {
        self.units[unit].heard_before = self.units[unit].twin.last_heard();
        for op in &self.units[unit].active {
            let call = self.calls.get_mut(op).expect("a call");
            call.stage_before = call.stage;
        }
        match input {
            Input::Connected { connection } => {
                (self.units[unit].hub_connection, self.units[unit].session) = (Some(*connection), None);
            }
            Input::Disconnected { connection } if self.units[unit].hub_connection == Some(*connection) => {
                (self.units[unit].hub_connection, self.units[unit].session) = (None, None);
            }
            // Nothing of it went out: it waits again as if it had not been sent.
            Input::NotWritten { op } => {
                let call = self.calls.get_mut(op).expect("a call");
                if !call.written && !call.ended {
                    // Should its time be over at this very moment, it was still with the broker.
                    call.stage = Stage::Queued;
                }
            }
            Input::Verified { found, .. } => {
                if let Found::Value(Value::Bool(load)) = found {
                    self.units[unit].measured = Some(*load);
                }
            }
            Input::Written { op } => {
                self.reached(unit, op, Stage::WaitingDeviceAck);
                self.calls.get_mut(op).expect("a call").written = true;
            }
            Input::Set { .. }
            | Input::Run { .. }
            | Input::Query { .. }
            | Input::Cancel { .. }
            | Input::Disconnected { .. }
            | Input::Greeted { .. }
            | Input::Heard(_)
            | Input::Unreadable
            | Input::BusDown
            | Input::BusUp
            | Input::Restored(_)
            | Input::ShutDown
            | Input::Removed
            | Input::Tick => {}
        }
    }

    fn reached(&mut self, unit: usize, op: &OpId, stage: Stage) {
        let now = self.now;
        let of = |call: &&mut Call| call.device == unit && !call.ended && !call.sent.is_empty();
        if let Some(call) = self.calls.get_mut(op).filter(of) {
            call.stage = call.stage.max(stage);
            // Who speaks of it has its command, should the notice of its writing be lost.
            call.written = true;
            if stage >= Stage::WaitingReadBack && call.read_back.is_none() {
                call.completed_at.get_or_insert(now);
            }
        }
    }

    /// Notes what a report has told the twin, unless the twin said that it counts for nothing; and what has ended.
    pub(crate) fn after(&mut self, unit: usize, input: &Input, effects: &[Effect]) {
        let ignored = effects.iter().any(|e| matches!(e, Effect::Ignored(_)));
        if let Input::Greeted { hello, .. } = input {
            let boot = number(&hello.boot);
            if self.units[unit].hub_boot != Some(boot) || !ignored {
                self.units[unit].last_word = None;
            }
            self.units[unit].hub_boot = Some(boot);
            if !ignored {
                self.word_of(unit, boot, hello.seq);
                for (_, op) in &hello.seen {
                    let completed_at = self.calls.get(op).and_then(|call| call.completed_at);
                    self.reached(unit, op, Stage::WaitingReadBack);
                    if let Some(call) = self.calls.get_mut(op) {
                        // Both checks in one: when it was completed it does not say.
                        (call.completed_at, call.read_back) = (completed_at, Some(self.now));
                    }
                }
            }
        } else if let Input::Heard(report) = input
            && !ignored
        {
            self.note_report(unit, report);
        }
        self.units[unit].newly_ended.clear();
        if effects.iter().any(|e| matches!(e, Effect::Ended { .. })) {
            self.note_ends(unit);
        }
    }

    fn note_report(&mut self, unit: usize, report: &Report) {
        self.word_of(unit, number(&report.boot), report.seq);
        match &report.body {
            Body::Action { op, result, reason, .. } => self.reached(unit, op, shown(*result, *reason, &report.status)),
            // An answer that does not name the operation as finished was read before its end.
            Body::State { op: Some(question), seen, .. } => {
                let of = question.as_str().rsplit_once('-').map(|(of, _)| OpId::new(of));
                let of = of.filter(|of| seen.iter().any(|(_, op)| op == of));
                if let Some(call) = of.and_then(|of| self.calls.get_mut(&of)) {
                    let asked = call.questions.iter().find(|(id, _)| id == question).map(|(_, at)| *at);
                    call.read_back = call.read_back.max(asked);
                }
            }
            Body::State { op: None, .. } | Body::Heartbeat => {}
        }
    }

    fn note_ends(&mut self, unit: usize) {
        let now = self.time(self.now);
        for op in self.units[unit].active.clone() {
            let call = self.calls.get_mut(&op).expect("a call");
            if call.ended || call.sent.is_empty() {
                continue;
            }
            let of = &mut self.units[unit];
            // Of a held wish an earlier answer may still stand while it is sent again.
            let settled = of.twin.check(now, Some(&op)).filter(|_| !of.twin.is_open(&op));
            if let Some(settled) = settled.filter(|settled| settled.outcome != Outcome::Working) {
                call.ended = true;
                of.newly_ended.push(settled);
            }
        }
    }

    fn word_of(&mut self, unit: usize, boot: u32, seq: u32) {
        let of = &mut self.units[unit];
        let truth = of.thing.log().reports.get(&(boot, seq));
        if let Some(truth) = truth.filter(|truth| truth.carried)
            && of.last_word.as_ref().is_none_or(|word| word.seq < seq)
        {
            let finished = [truth.finished.clone(), truth.about.clone()];
            of.last_word = Some(LastWord { seq, relay: truth.relay, finished, alone: truth.alone });
        }
    }
}

/// The stage that a report about an operation shows (semantics 8.1).
fn shown(result: ActionResult, reason: Option<Reason>, status: &[Status]) -> Stage {
    let unreadable = status.iter().any(|s| matches!(s.value, Value::Integer(_)));
    match result {
        ActionResult::Received => Stage::WaitingDeviceStart,
        ActionResult::Executing | ActionResult::Working => Stage::WaitingDeviceReport,
        ActionResult::Completed if unreadable => Stage::WaitingDeviceReport,
        ActionResult::Completed => Stage::WaitingReadBack,
        ActionResult::Failed if matches!(reason, Some(Reason::Withdrawn | Reason::Expired | Reason::Superseded)) => {
            Stage::WaitingDeviceAck
        }
        ActionResult::Failed => Stage::WaitingDeviceReport,
        ActionResult::Rejected | ActionResult::Unknown => Stage::WaitingDeviceAck,
    }
}
