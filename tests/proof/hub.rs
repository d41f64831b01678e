//! The hub's part: one input into a twin, its effects carried out as `src/device.rs` does, what must be kept given to the
//! journal first; actors that crash, and the whole hub.

use std::{collections::BTreeSet, time::Instant};

use truetwin_proof::{
    policy::Restarts,
    property::Value,
    twin::{
        Hears, Twin,
        gate::{Gate, Go},
        input::{Command, Effect, Found, Input, Left, Memory},
        ledger::{Admitted, Fact, Ledger, Sure, interrupted},
        planted::{self, Planted},
        settings::Settings,
        words::{OpId, Outcome, Reply, Settled, Stage},
    },
};

use crate::{
    checks,
    disk::Order,
    fault::Fault,
    house::{Call, For, House, Moment, Parcel, Thing},
};

/// How often an actor may crash (`fleet::Limits`).
const RESTARTS_MAX: usize = 5;
/// The number of a commit that is refused at once.
const NEVER: u64 = 0;
const RESTARTS_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

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
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.apply(unit, input, &mut inputs);
        }
        self.open_gate(unit);
        self.arm(unit);
        self.spring(unit);
    }

    fn apply(&mut self, unit: usize, input: Input, follow_ups: &mut Vec<Input>) {
        let now = self.time(self.now);
        self.tally.inputs += 1;
        self.before(unit, &input);
        let admitting = admitting(&input);
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
        checks::after_each_input(self, &moment);
        let of = &mut self.units[unit];
        let noted = of.ledger.note(now, &of.twin, admitting, &moment.effects);
        let held = noted.facts.iter().filter(|fact| matches!(fact, Fact::Held { .. })).cloned();
        of.held_facts.extend(held);
        let commit = self.keep(unit, noted.facts.clone(), noted.sure(), !noted.waits.is_empty());
        for (at, effect) in moment.effects.into_iter().enumerate() {
            let waits = commit.filter(|_| noted.waits.contains_key(&at));
            follow_ups.extend(self.carry_out(unit, now, effect, waits));
        }
        if commit == Some(NEVER) {
            self.units[unit].gate.kept(NEVER, false);
        }
        self.note_pairs(unit);
    }

    /// Gives facts to the journal. The commit that somebody waits for; `None`: nobody does, or it can't be kept and nobody
    /// need wait.
    fn keep(&mut self, unit: usize, facts: Vec<Fact>, sure: Sure, awaited: bool) -> Option<u64> {
        if facts.is_empty() && !awaited {
            return None;
        }
        self.commits += 1;
        let number = self.commits;
        if self.disk.waiting() == 0 {
            let slow = if self.disk_slow { self.random.below(4_000) } else { 0 };
            let at = self.now + self.random.below(4) + slow;
            self.put(at, unit, Parcel::Commit);
        }
        let commit = awaited.then_some(number);
        let taken = self.disk.give(Order { device: unit, facts, sure, commit });
        if !taken {
            self.units[unit].ledger.not_kept();
        }
        // Nobody waits for what is not even taken.
        commit.map(|commit| if taken { commit } else { NEVER })
    }

    /// The disk has written what waited, or has not.
    pub(crate) fn committed(&mut self) {
        let mut touched = BTreeSet::new();
        for done in self.disk.commit() {
            if let Some(commit) = done.commit {
                self.units[done.device].gate.kept(commit, done.kept);
            }
            if !done.kept {
                self.units[done.device].ledger.not_kept();
            }
            touched.insert(done.device);
        }
        if self.disk.waiting() > 0 {
            let at = self.now + 50;
            self.put(at, 0, Parcel::Commit);
        }
        for unit in touched {
            self.open_gate(unit);
            self.arm(unit);
        }
    }

    /// Carries out what the gate lets go.
    fn open_gate(&mut self, unit: usize) {
        let now = self.time(self.now);
        while let Some(go) = self.units[unit].gate.poll(now) {
            match go {
                Go::Send { command, at } => self.send(unit, at, command),
                Go::NotWritten { op } => {
                    let run = self.run;
                    self.put(self.now, unit, Parcel::ToTwin { run, input: Input::NotWritten { op } });
                }
                Go::Answer { op, reply, recorded } => self.answered(unit, &op, &reply, recorded),
            }
        }
    }

    /// A caller is told.
    fn answered(&mut self, unit: usize, op: &OpId, reply: &Reply, recorded: bool) {
        let outcome = match reply {
            Reply::Settled(settled) => Some(settled.outcome),
            Reply::Refused(_) => None,
        };
        if outcome.is_some() {
            let count = if recorded { &mut self.tally.recorded } else { &mut self.tally.unrecorded };
            *count += 1;
        }
        let held = self.units[unit].kinds.spec.held;
        let call = self.calls.get_mut(op).expect("a call");
        call.heard.push((outcome, recorded));
        assert!(call.heard.len() == 1, "{op}: {} answers were heard", call.heard.len());
        if recorded && outcome.is_some() && held && call.what != For::Run {
            // What was held when it was decided is on the disk.
            let promised = call.promise;
            self.units[unit].held_promised = self.units[unit].held_promised.max(promised);
        }
    }

    /// Sets when the twin or its gate wakes.
    pub(crate) fn arm(&mut self, unit: usize) {
        let of = &self.units[unit];
        let twin = of.twin.deadline().map(|at| self.ms(at) + of.lag);
        let gate = of.gate.deadline().map(|at| self.ms(at));
        let wake = twin.into_iter().chain(gate).min().unwrap_or(u64::MAX);
        let asleep = !self.hub_up || of.quarantined;
        self.units[unit].wake = if asleep { u64::MAX } else { wake };
    }

    pub(crate) fn wake(&mut self, unit: usize) {
        let due = self.units[unit].twin.deadline().map(|at| self.ms(at) + self.units[unit].lag);
        if due.is_some_and(|at| at <= self.now) {
            self.feed(unit, Input::Tick);
        } else {
            self.open_gate(unit);
            self.arm(unit);
        }
    }

    fn carry_out(&mut self, unit: usize, now: Instant, effect: Effect, waits: Option<u64>) -> Option<Input> {
        match effect {
            Effect::Send(command) => {
                if let Command::Welcome { session } = &command {
                    self.units[unit].session = Some(session.clone());
                }
                self.note_decided(unit, &command);
                self.units[unit].gate.send(now, command, waits);
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
                let by = call.answer_by;
                call.promise = self.units[unit].held_facts.len();
                self.units[unit].gate.answer(op, reply, by, waits);
            }
            Effect::State { op, .. } => {
                let call = self.calls.get_mut(&op).expect("a call");
                call.decided += 1;
                call.ended = true;
            }
            Effect::Ask { question, .. } => {
                let found = match (self.unlucky(), self.random.below(2)) {
                    (true, 0) => Found::Offline,
                    (true, _) => Found::Silent,
                    (false, _) => Found::Value(Value::Bool(self.units[unit].thing.load())),
                };
                let (at, run) = (self.now + 1 + self.random.below(40), self.run);
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

    /// The actor crashes over a message: another follows with what the fleet kept, or the device is set aside.
    fn crash(&mut self, unit: usize, over: &Input) {
        let now = self.time(self.now);
        self.note_fault(unit, Fault::Actor);
        let mut memory = self.units[unit].twin.memory(now);
        if let Some(Admitted { op, caller, what, wish }) = admitting(over) {
            let settled = Settled::unknown(op, self.units[unit].id.clone(), what, wish);
            memory.in_flight.push(Left { caller, hears: Hears::Waits, settled });
        }
        // The ports drop, and the fleet tells what it knows: that nobody knows.
        for op in self.units[unit].active.clone() {
            let call = self.calls.get_mut(&op).expect("a call");
            call.told_by_fleet |= call.heard.is_empty() && call.decided == 0 || call.heard.is_empty();
            call.ended = true;
        }
        let (max, within) = (RESTARTS_MAX, RESTARTS_WITHIN);
        if !self.units[unit].restarts.once_more(now, max, within) {
            self.units[unit].quarantined = true;
            self.units[unit].gate = Gate::default();
            self.units[unit].wake = u64::MAX;
            return;
        }
        self.begin_actor(unit, memory);
    }

    /// An actor begins with a memory.
    fn begin_actor(&mut self, unit: usize, memory: Memory) {
        let settings = self.settings.clone();
        let of = &mut self.units[unit];
        of.twin = Twin::new(of.id.clone(), settings);
        of.gate = Gate::default();
        of.tickets.clear();
        of.session.clone_from(&memory.session);
        of.ledger = Ledger::after(&memory);
        (of.last_word, of.claimed) = (None, None);
        let in_flight: BTreeSet<OpId> = memory
            .in_flight
            .iter()
            .map(|left| left.settled.joined.clone().unwrap_or_else(|| left.settled.op.clone()))
            .collect();
        let session = memory.session.is_some();
        let mut inputs = Vec::new();
        let sent_before: Vec<OpId> = in_flight.iter().filter(|op| self.was_sent(op)).cloned().collect();
        self.apply(unit, Input::Restored(memory), &mut inputs);
        assert!(inputs.is_empty());
        if session {
            checks::what_was_in_flight_is_withdrawn(self, unit, &sent_before);
        }
        self.open_gate(unit);
        self.arm(unit);
    }

    fn was_sent(&self, op: &OpId) -> bool {
        self.calls.get(op).is_some_and(|call| call.sent.last().is_some_and(|(_, _, session)| session.is_some()))
    }

    /// The process is gone, or its power.
    pub(crate) fn hub_dies(&mut self, fault: Fault) {
        if !self.hub_up {
            return;
        }
        for unit in 0..self.units.len() {
            self.note_fault(unit, fault);
        }
        self.hub_up = false;
        match fault {
            Fault::PowerCut => {
                let luck = self.random.below(1_000);
                self.disk.power_cut(luck);
            }
            _ => self.disk.killed(),
        }
        for unit in 0..self.units.len() {
            // The kernel closes its sockets; what was written to them may still arrive.
            if let Some(connection) = self.units[unit].connection {
                let at = self.now + self.random.below(40);
                self.put(at, unit, Parcel::Lost { connection });
            }
            self.units[unit].hub_connection = None;
            self.units[unit].wake = u64::MAX;
        }
        let at = self.now + 50 + self.random.below(3_000);
        let cut = fault == Fault::PowerCut;
        self.put(at, 0, Parcel::Starts);
        for call in self.calls.values_mut().filter(|call| call.active) {
            // Its connection is gone with the hub.
            call.gone = true;
            call.ended = true;
        }
        checks::at_the_end_of_the_hub(self, cut);
    }

    /// The hub starts and finds what its journal kept.
    pub(crate) fn hub_starts(&mut self) {
        self.run += 1;
        self.hub_up = true;
        self.bus_down = false;
        self.tally.hub_starts += 1;
        let now = self.time(self.now);
        self.settings = Settings { reconcile: self.settings.reconcile, ..Settings::new(now) };
        let epoch = u16::try_from(self.run).expect("few starts");
        for (unit, found) in self.disk.recover(self.units.len()).into_iter().enumerate() {
            let of = &mut self.units[unit];
            if let Thing::Core(core) = &mut of.thing {
                core.next_epoch();
            }
            (of.quarantined, of.restarts, of.crash) = (false, Restarts::default(), false);
            (of.hub_boot, of.measured) = (None, None);
            let id = of.id.clone();
            // The description is kept with the rest; it does not change here.
            let known = of.twin.description().cloned();
            let memory = Memory {
                description: known,
                held: found.held.into_iter().map(|(name, kept)| (name, kept.held(now, epoch))).collect(),
                in_flight: found.admitted.into_iter().map(|admitted| interrupted(id.clone(), admitted)).collect(),
                ..Memory::default()
            };
            // What is held has been read: from here on its changes count from what there is.
            of.held_facts.clear();
            for (property, held) in &memory.held {
                let kept = Some(held.kept());
                of.held_facts.push(Fact::Held { property: property.clone(), kept });
            }
            of.held_promised = of.held_facts.len();
            self.begin_actor(unit, memory);
        }
    }

    /// What a call is, as far as the checks want to know it.
    pub(crate) fn call(&mut self, unit: usize, what: For, limit_ms: u64) -> (OpId, Instant) {
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
            if trace.len() > 60 {
                trace.pop_front();
            }
            trace.push_back(line);
        }
    }
}

/// The call that an input is.
fn admitting(input: &Input) -> Option<Admitted> {
    match input {
        Input::Set { op, caller, wish, .. } => Some(Admitted {
            op: op.clone(),
            caller: caller.clone(),
            what: wish.property.clone(),
            wish: wish.target.value().cloned(),
        }),
        Input::Run { op, caller, action, .. } => {
            Some(Admitted { op: op.clone(), caller: caller.clone(), what: action.clone(), wish: None })
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
