//! The hub's part: one input into a twin, its effects carried out as `src/device.rs` does, what must be kept given to the
//! journal first; actors that crash, and the whole hub.

use std::time::Instant;

use truetwin_proof::{
    property::Value,
    twin::{
        Twin,
        admission::Lasts,
        input::{Command, Effect, Found, Input},
        ledger::Asked,
        planted::{self, Planted},
        wish::CallerId,
        words::{OpId, Outcome, Reply, Stage},
    },
};

use crate::{
    checks,
    fault::Fault,
    house::{House, Moment, Parcel},
    unit::{Call, Deferred, For},
};

/// Moments that are told of a seed that broke something.
const TRACE_MAX: usize = 400;

impl House {
    /// One input of a twin, and whatever its effects bring about at once.
    pub(crate) fn feed(&mut self, unit: usize, input: Input) {
        if !self.hub_up || self.units[unit].quarantined {
            return;
        }
        if std::mem::take(&mut self.units[unit].crash) {
            self.crash(unit, &input);
            return;
        }
        if let Some((asked, by)) = asked(&self.units[unit].twin, &input) {
            let of = &mut self.units[unit];
            if let Some((fact, lasts)) = of.ledger.first(&of.twin, &asked) {
                let commit = self.keep(unit, vec![fact], lasts, true);
                self.units[unit].deferred.push(Deferred { commit, op: asked.op, by, input });
                return self.settle_disk(unit);
            }
        }
        if let Input::Cancel { op } = &input {
            self.given_up(unit, op);
        }
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.apply(unit, input, &mut inputs);
        }
        self.settle_disk(unit);
        self.spring(unit);
    }

    pub(crate) fn apply(&mut self, unit: usize, input: Input, follow_ups: &mut Vec<Input>) {
        let now = self.time(self.now);
        self.tally.inputs += 1;
        self.before(unit, &input);
        let left = if let Input::Restored(memory) = &input { Some(memory.in_flight.clone()) } else { None };
        self.units[unit].twin.apply(now, input.clone());
        let mut effects = Vec::new();
        while let Some(effect) = self.units[unit].twin.poll() {
            effects.push(effect);
        }
        self.after(unit, &input, &effects);
        let moment = Moment { unit, now, input, effects };
        if self.trace.is_some() {
            self.note_trace(&moment);
        }
        self.record(&moment);
        checks::after_each_input(self, &moment);
        for effect in moment.effects {
            follow_ups.extend(self.carry_out(unit, now, effect));
        }
        let of = &mut self.units[unit];
        if let Some(left) = left {
            of.ledger.resume(&of.twin, &left);
        }
        let in_flight = if of.twin.in_flight() == 0 { Vec::new() } else { of.twin.memory(now).in_flight };
        let facts = of.ledger.catch_up(now, &of.twin, &in_flight);
        if !facts.is_empty() {
            self.keep(unit, facts, Lasts::OverCrash, false);
        }
        self.note_pairs(unit);
    }

    /// Sets when the twin wakes, or somebody has waited for the disk long enough.
    pub(crate) fn arm(&mut self, unit: usize) {
        let of = &self.units[unit];
        let twin = of.twin.deadline().map(|at| self.ms(at) + of.lag);
        let disk =
            of.answers.iter().map(|answer| answer.by).chain(of.deferred.iter().map(|deferred| deferred.by)).min();
        let wake = twin.into_iter().chain(disk.map(|at| self.ms(at))).min().unwrap_or(u64::MAX);
        let asleep = !self.hub_up || of.quarantined;
        self.units[unit].wake = if asleep { u64::MAX } else { wake };
    }

    pub(crate) fn wake(&mut self, unit: usize) {
        let due = self.units[unit].twin.deadline().map(|at| self.ms(at) + self.units[unit].lag);
        if due.is_some_and(|at| at <= self.now) {
            self.feed(unit, Input::Tick);
        } else {
            self.settle_disk(unit);
        }
    }

    fn carry_out(&mut self, unit: usize, now: Instant, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Send(command) => {
                if let Command::Welcome { session } = &command {
                    self.units[unit].session = Some(session.clone());
                }
                self.note_decided(unit, &command);
                self.send(unit, now, command);
            }
            Effect::Reply { op, reply } => {
                let word = match &reply {
                    Reply::Settled(settled) => settled.outcome.as_str(),
                    Reply::Refused(refusal) => refusal.word().as_str(),
                };
                *self.tally.outcomes.entry(word).or_default() += 1;
                let call = self.calls.get_mut(&op).expect("a call");
                call.decided += 1;
                match &reply {
                    Reply::Settled(settled) => call.told.push(settled.outcome),
                    Reply::Refused(_) => call.refused = true,
                }
                (call.decided_at, call.promise) = (now, self.units[unit].held_facts.len());
                let (by, caller) = (call.answer_by, call.caller.clone());
                self.tell(unit, &op, &reply, by, &caller);
            }
            Effect::State { op, .. } => {
                let call = self.calls.get_mut(&op).expect("a call");
                call.decided += 1;
                call.ended = true;
            }
            Effect::Ask { question, .. } => {
                let load = Found::Value(Value::Bool(self.units[unit].thing.load()));
                let (mut at, run) = (self.now + 1 + self.random.below(40), self.run);
                let mut found = load;
                if self.unlucky() {
                    let fault = self.random.of(&[Fault::Lost, Fault::Doubled, Fault::Delayed]);
                    self.note_fault(unit, fault);
                    match fault {
                        Fault::Lost => found = self.random.of(&[Found::Offline, Found::Silent].each_ref()).clone(),
                        Fault::Doubled => {
                            let input = Input::Verified { question: question.clone(), found: found.clone() };
                            self.put(at + 300, unit, Parcel::ToTwin { run, input });
                        }
                        _ => at += self.random.below(3_000),
                    }
                }
                self.put(at, unit, Parcel::ToTwin { run, input: Input::Verified { question, found } });
            }
            Effect::LateSuccess { .. } => *self.tally.outcomes.entry("late_success").or_default() += 1,
            Effect::Reverted { .. } => *self.tally.outcomes.entry("reverted").or_default() += 1,
            Effect::LocalOverride { .. } => *self.tally.outcomes.entry("local_override").or_default() += 1,
            Effect::Owed { .. } => *self.tally.outcomes.entry("owed").or_default() += 1,
            Effect::Ignored(why) => *self.tally.outcomes.entry(why.as_str()).or_default() += 1,
            Effect::Presence(_)
            | Effect::Ended { .. }
            | Effect::StageLeft { .. }
            | Effect::Described(_)
            | Effect::Malformed { .. }
            | Effect::StaleHello { .. } => {}
        }
        None
    }

    /// What a call is, as far as the checks want to know it.
    pub(crate) fn call(&mut self, unit: usize, what: For, limit_ms: u64, caller: CallerId) -> (OpId, Instant) {
        self.calls_ever += 1;
        let op = OpId::new(&format!("{:x}", 4_096 + self.calls_ever));
        let answer_by = self.time(self.now + limit_ms);
        let call = Call {
            device: unit,
            what,
            asked_at: self.now,
            answer_by,
            run: self.run,
            gone: false,
            told_by_fleet: false,
            decided: 0,
            told: Vec::new(),
            refused: false,
            promise: 0,
            caller,
            decided_at: self.time(self.now),
            heard: Vec::new(),
            value: None,
            sent: Vec::new(),
            ended: false,
            written: false,
            really_sent: false,
            stage: Stage::WaitingBroker,
            stage_before: Stage::WaitingBroker,
            completed_at: None,
            questions: Vec::new(),
            read_back: None,
            active: true,
            met: std::collections::BTreeMap::new(),
        };
        self.calls.insert(op.clone(), call);
        self.units[unit].active.push(op.clone());
        self.order[unit].push(op.clone());
        (op, answer_by)
    }

    /// Which operations met which faults in which stage.
    fn note_pairs(&mut self, unit: usize) {
        let mut wrong = 0_u64;
        for fault in &self.units[unit].wrong {
            wrong |= 1 << fault.number();
        }
        if self.disk.full {
            wrong |= 1 << Fault::DiskFull.number();
        }
        if self.disk.stalled || self.disk_slow {
            wrong |= 1 << Fault::DiskStalled.number();
        }
        if wrong != 0 {
            self.meet(unit, wrong);
        }
    }

    /// A fault has happened to a device, or to all.
    pub(crate) fn note_fault(&mut self, unit: usize, fault: Fault) {
        *self.tally.faults.entry(fault).or_default() += 1;
        if self.hub_up && !self.units[unit].quarantined {
            self.meet(unit, 1 << fault.number());
        }
        if let Some(trace) = &mut self.trace {
            trace.push_back(format!("{:>8} {} fault {}", self.now, self.units[unit].id, fault.word()));
        }
    }

    fn meet(&mut self, unit: usize, faults: u64) {
        for (op, stage) in self.units[unit].twin.stages() {
            let Some(call) = self.calls.get_mut(op) else { continue };
            let met = call.met.entry(stage).or_default();
            let new = faults & !*met;
            *met |= faults;
            if new != 0 {
                for fault in Fault::ALL.iter().filter(|fault| new & (1 << fault.number()) != 0) {
                    *self.tally.pairs.entry((stage, *fault)).or_default() += 1;
                }
            }
        }
    }

    fn note_trace(&mut self, moment: &Moment) {
        let id = &self.units[moment.unit].id;
        let line = format!("{:>8} {id} {:?}\n           -> {:?}", self.now, moment.input, moment.effects);
        if let Some(trace) = &mut self.trace {
            if trace.len() > TRACE_MAX {
                trace.pop_front();
            }
            trace.push_back(line);
        }
    }
}

/// The call that an input is, and when its caller must have its answer.
pub(crate) fn asked(twin: &Twin, input: &Input) -> Option<(Asked, Instant)> {
    match input {
        Input::Set { op, caller, wish, answer_by } => {
            let (what, wished) = (wish.property.clone(), wish.target.value().cloned());
            let first = twin.is_recorded_first(&what);
            Some((Asked { op: op.clone(), caller: caller.clone(), what, wish: wished, first }, *answer_by))
        }
        Input::Run { op, caller, action, answer_by, .. } => {
            let (first, what) = (twin.is_action_recorded_first(action), action.clone());
            Some((Asked { op: op.clone(), caller: caller.clone(), what, wish: None, first }, *answer_by))
        }
        Input::Query { .. }
        | Input::Cancel { .. }
        | Input::Connected { .. }
        | Input::Disconnected { .. }
        | Input::Greeted { .. }
        | Input::Heard(_)
        | Input::Unreadable
        | Input::Written { .. }
        | Input::NotWritten { .. }
        | Input::Verified { .. }
        | Input::BusDown
        | Input::BusUp
        | Input::Restored(_)
        | Input::ShutDown
        | Input::Removed
        | Input::Tick => None,
    }
}

/// Whether the simulator's ingress makes its mistake.
pub(crate) fn newest_only() -> bool {
    planted::is(Planted::IngressNewestOnly)
}

/// Whether an outcome is an end, for its caller.
pub(crate) fn is_end(outcome: Outcome) -> bool {
    outcome != Outcome::Working
}
