//! The hub's part: one input into a twin, its effects carried out as `src/device.rs` does, what must be kept given to the
//! journal first; actors that crash, and the whole hub.

use std::{collections::BTreeSet, time::Instant};

use truetwin_proof::{
    policy::Restarts,
    property::Value,
    twin::{
        Hears, Twin,
        admission::Lasts,
        held::Held,
        input::{Command, Effect, Found, Input, Left, Memory},
        ledger::{Asked, Fact, Ledger},
        planted::{self, Planted},
        settings::Settings,
        wish::CallerId,
        words::{OpId, Outcome, Reply, Settled, Stage},
    },
};

use crate::{
    checks,
    disk::Order,
    fault::Fault,
    house::{Answer, Call, Deferred, For, House, Moment, Parcel, Thing},
};

/// Moments that are told of a seed that broke something.
const TRACE_MAX: usize = 400;

/// How often an actor may crash (`fleet::Limits`).
const RESTARTS_MAX: usize = 5;
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

    /// Who gave up before the twin knew of it.
    fn given_up(&mut self, unit: usize, op: &OpId) {
        self.units[unit].deferred.retain(|deferred| deferred.op != *op);
        if let Some(fact) = self.units[unit].ledger.given_up(op) {
            self.keep(unit, vec![fact], Lasts::OverCrash, false);
        }
    }

    fn apply(&mut self, unit: usize, input: Input, follow_ups: &mut Vec<Input>) {
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

    /// Gives facts to the journal, as one commit behind all that was given before. Its number.
    fn keep(&mut self, unit: usize, facts: Vec<Fact>, sure: Lasts, awaited: bool) -> u64 {
        self.commits += 1;
        let number = self.commits;
        let held = facts.iter().filter(|fact| matches!(fact, Fact::Held(..) | Fact::Unheld(_))).cloned();
        self.units[unit].held_facts.extend(held);
        if self.disk.waiting() == 0 {
            let slow = if self.disk_slow { self.random.below(4_000) } else { 0 };
            let at = self.now + self.random.below(4) + slow;
            self.put(at, unit, Parcel::Commit);
        }
        let taken = self.disk.give(Order { device: unit, facts, sure, commit: awaited.then_some(number) });
        if !taken && awaited {
            self.refused.push((unit, number));
        }
        number
    }

    /// The disk has written what waited, or has not.
    pub(crate) fn committed(&mut self) {
        let done = self.disk.commit();
        if self.disk.waiting() > 0 {
            let at = self.now + 50;
            self.put(at, 0, Parcel::Commit);
        }
        for done in done {
            if let Some(commit) = done.commit {
                self.kept(done.device, commit, done.kept);
                self.settle_disk(done.device);
            }
        }
    }

    /// What became of one commit that somebody waits for.
    fn kept(&mut self, unit: usize, commit: u64, kept: bool) {
        if let Some(at) = self.units[unit].answers.iter().position(|answer| answer.commit == commit) {
            let answer = self.units[unit].answers.remove(at);
            self.heard(unit, &answer.op, Some(answer.outcome), kept);
        }
        if let Some(at) = self.units[unit].deferred.iter().position(|deferred| deferred.commit == commit) {
            let deferred = self.units[unit].deferred.remove(at);
            match kept {
                true => self.feed(unit, deferred.input),
                false => self.journal_down(unit, &deferred.op),
            }
        }
    }

    /// What must be written first was not: its caller hears so, and the twin never hears of it.
    fn journal_down(&mut self, unit: usize, op: &OpId) {
        *self.tally.outcomes.entry("journal_down").or_default() += 1;
        let call = self.calls.get_mut(op).expect("a call");
        (call.refused, call.decided) = (true, 1);
        self.heard(unit, op, None, true);
        self.given_up(unit, op);
    }

    /// What waits for the disk does so no longer than its caller may be kept; and what the journal did not even take.
    fn settle_disk(&mut self, unit: usize) {
        for (unit, commit) in std::mem::take(&mut self.refused) {
            self.kept(unit, commit, false);
        }
        let now = self.time(self.now);
        let late: Vec<Answer> = self.units[unit].answers.extract_if(.., |answer| answer.by <= now).collect();
        for answer in late {
            self.heard(unit, &answer.op, Some(answer.outcome), false);
        }
        let late: Vec<Deferred> = self.units[unit].deferred.extract_if(.., |deferred| deferred.by <= now).collect();
        for deferred in late {
            self.journal_down(unit, &deferred.op);
        }
        self.arm(unit);
    }

    /// A caller is told.
    fn heard(&mut self, unit: usize, op: &OpId, outcome: Option<Outcome>, recorded: bool) {
        if outcome.is_some() {
            let count = if recorded { &mut self.tally.recorded } else { &mut self.tally.unrecorded };
            *count += 1;
        }
        let held = self.units[unit].kinds.spec.held;
        let now = self.time(self.now);
        let call = self.calls.get_mut(op).expect("a call");
        call.heard.push((outcome, recorded));
        assert!(call.heard.len() == 1, "{op}: {} answers were heard", call.heard.len());
        let late = self.units[unit].lag > 0 || call.decided_at >= call.answer_by;
        assert!(late || now <= call.answer_by, "{op}: heard of after its limit");
        if recorded && outcome.is_some() && held && call.what != For::Run {
            // What was held when it was decided is on the disk.
            self.units[unit].held_promised = self.units[unit].held_promised.max(call.promise);
        }
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

    /// Answers a caller once its record is kept.
    fn tell(&mut self, unit: usize, op: &OpId, reply: &Reply, by: Instant, caller: &CallerId) {
        let Reply::Settled(settled) = reply else { return self.heard(unit, op, None, true) };
        let of = &mut self.units[unit];
        let (facts, lasts) = of.ledger.answer(&of.twin, caller, settled);
        let outcome = settled.outcome;
        let commit = self.keep(unit, facts, lasts, true);
        self.calls.get_mut(op).expect("a call").promise = self.units[unit].held_facts.len();
        if planted::is(Planted::ReplyBeforeCommit) {
            return self.heard(unit, op, Some(outcome), true);
        }
        self.units[unit].answers.push(Answer { commit, op: op.clone(), outcome, by });
    }

    /// The actor crashes over a message: another follows with what the fleet kept, or the device is set aside.
    fn crash(&mut self, unit: usize, over: &Input) {
        let now = self.time(self.now);
        self.note_fault(unit, Fault::Actor);
        let mut memory = self.units[unit].twin.memory(now);
        if let Some((Asked { op, caller, what, wish, .. }, _)) = asked(&self.units[unit].twin, over) {
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
            self.units[unit].answers.clear();
            self.units[unit].deferred.clear();
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
        of.answers.clear();
        of.deferred.clear();
        of.tickets.clear();
        of.session.clone_from(&memory.session);
        of.ledger = Ledger::default();
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
        self.settle_disk(unit);
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
        let epoch = u32::try_from(self.run).expect("few starts");
        for (unit, found) in self.disk.recover(self.units.len()).into_iter().enumerate() {
            let of = &mut self.units[unit];
            if let Thing::Core(core) = &mut of.thing {
                core.next_epoch();
            }
            (of.quarantined, of.restarts, of.crash) = (false, Restarts::default(), false);
            (of.hub_boot, of.measured) = (None, None);
            // The description is kept with the rest; it does not change here.
            let known = of.twin.description().cloned();
            let gone = |(caller, settled, told): (CallerId, Settled, Option<Outcome>)| {
                let hears = told.map_or(Hears::Gone, |outcome| Hears::Told { outcome, at: now });
                Left { caller, hears, settled }
            };
            let ended = |(caller, settled): (CallerId, Settled)| {
                let hears = Hears::Told { outcome: settled.outcome, at: now };
                (now, Left { caller, hears, settled })
            };
            let memory = Memory {
                description: known,
                held: found
                    .held
                    .into_iter()
                    .map(|(name, held)| (name, Held::resumed(held.kept(), now, epoch)))
                    .collect(),
                in_flight: found.admitted.into_iter().map(gone).collect(),
                ended: found.known.into_iter().map(ended).collect(),
                ..Memory::default()
            };
            self.begin_actor(unit, memory);
        }
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
fn asked(twin: &Twin, input: &Input) -> Option<(Asked, Instant)> {
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
