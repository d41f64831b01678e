//! The way between the hub and its devices: what is sent, lost, doubled, late, and what of it has reached the twin.

use std::time::Instant;

use truetwin_proof::{
    property::Value,
    twin::{
        input::{ActionResult, Body, Command, Effect, Found, Input, Report, Status},
        words::{OpId, Outcome, Reason, Stage},
    },
};

use crate::{
    checks,
    fault::Fault,
    house::{For, House, LastWord, Parcel, Thing},
    hub,
    log::{Event, number},
};

impl House {
    pub(crate) fn arrive(&mut self, unit: usize, parcel: Parcel) {
        let now = self.now;
        match parcel {
            Parcel::ToBoard { connection, sent_at, session, command } => {
                if self.units[unit].connection == Some(connection) {
                    match &mut self.units[unit].thing {
                        Thing::Model(board) => board.receive(now, sent_at, &session, command),
                        Thing::Core(core) => core.receive(now, sent_at, &session, &command),
                    }
                }
            }
            Parcel::ToHub { connection, event } => self.deliver(unit, connection, event),
            Parcel::ToTwin { run, input } => {
                if run == self.run {
                    self.feed(unit, input);
                }
            }
            Parcel::Ticket { run, ticket, written } => {
                if run == self.run
                    && let Some(op) = self.units[unit].tickets.remove(&ticket)
                {
                    self.feed(unit, if written { Input::Written { op } } else { Input::NotWritten { op } });
                }
            }
            Parcel::Board { boot, timer } => {
                if boot == self.units[unit].thing.log().boot {
                    match &mut self.units[unit].thing {
                        Thing::Model(board) => board.fire(now, &timer),
                        Thing::Core(core) => core.fire(now),
                    }
                }
            }
            Parcel::Reconnect => self.reconnect(unit),
            Parcel::Lost { connection } => {
                if self.units[unit].connection == Some(connection) {
                    self.device_loses(unit, 100 + self.random.clone().below(2_000));
                }
            }
            Parcel::Heartbeat => {
                self.put(now + 10_000, unit, Parcel::Heartbeat);
                let there = self.units[unit].connection.is_some();
                if let (Thing::Model(board), true) = (&mut self.units[unit].thing, there) {
                    board.heartbeat();
                }
            }
            Parcel::Commit => self.committed(),
            Parcel::Starts => self.hub_starts(),
            Parcel::BrokerBack => self.broker_back(),
            Parcel::Spring { fault } => self.inject(unit, fault),
            Parcel::Mend { fault } => self.mend(unit, fault),
        }
        self.carry(unit);
    }

    fn reconnect(&mut self, unit: usize) {
        // Two breaks in a row: the later one counts.
        let pending = self.parcels.values().any(|(of, p)| *of == unit && matches!(p, Parcel::Reconnect));
        if self.units[unit].connection.is_some() || pending {
            return;
        }
        if !self.hub_up || self.bus_down {
            self.put(self.now + 500, unit, Parcel::Reconnect);
            return;
        }
        self.connections += 1;
        let connection = self.connections;
        let of = &mut self.units[unit];
        (of.connection, of.last_down, of.last_up) = (Some(connection), self.now, self.now);
        // The door has it, whatever becomes of the actor that hears of it.
        of.hub_connection = Some(connection);
        self.feed(unit, Input::Connected { connection });
        let description = self.units[unit].description.clone();
        match &mut self.units[unit].thing {
            Thing::Model(board) => board.connect(description),
            Thing::Core(core) => core.connect(self.now),
        }
    }

    /// The connection breaks; the device comes back after a while.
    pub(crate) fn device_loses(&mut self, unit: usize, away_ms: u64) {
        self.units[unit].connection = None;
        if let Thing::Core(core) = &mut self.units[unit].thing {
            core.disconnected(self.now);
        }
        self.put(self.now + 1 + away_ms, unit, Parcel::Reconnect);
    }

    /// The same, and the hub hears of it, or only with the next connection.
    pub(crate) fn break_connection(&mut self, unit: usize, away_ms: u64, noticed: bool) {
        if let Some(connection) = self.units[unit].connection
            && noticed
        {
            let (at, run) = (self.now + self.random.below(30), self.run);
            self.put(at, unit, Parcel::ToTwin { run, input: Input::Disconnected { connection } });
        }
        self.device_loses(unit, away_ms);
    }

    pub(crate) fn reboot(&mut self, unit: usize, away_ms: u64) {
        let now = self.now;
        match &mut self.units[unit].thing {
            Thing::Model(board) => board.reboot(),
            Thing::Core(core) => core.reboot(now),
        }
        self.break_connection(unit, away_ms, true);
    }

    pub(crate) fn broker_dies(&mut self) {
        if self.bus_down || !self.hub_up {
            return;
        }
        self.bus_down = true;
        for unit in 0..self.units.len() {
            self.note_fault(unit, Fault::Broker);
            self.feed(unit, Input::BusDown);
            self.break_connection(unit, 0, true);
        }
        let at = self.now + 100 + self.random.below(3_000);
        self.put(at, 0, Parcel::BrokerBack);
    }

    fn broker_back(&mut self) {
        if self.bus_down {
            self.bus_down = false;
            for unit in 0..self.units.len() {
                self.feed(unit, Input::BusUp);
            }
        }
    }

    fn deliver(&mut self, unit: usize, connection: u64, event: Event) {
        if !self.hub_up {
            return;
        }
        if hub::newest_only() {
            let soon = self.now + 20;
            let newer =
                self.parcels.range(..(soon, 0)).any(|(_, (of, p))| *of == unit && matches!(p, Parcel::ToHub { .. }));
            if newer && matches!(event, Event::Report(_)) {
                return;
            }
        }
        match event {
            Event::Hello(hello) => {
                if self.units[unit].connection == Some(connection) {
                    self.sessions += 1;
                    let session = format!("s{}", self.sessions).into();
                    self.feed(unit, Input::Greeted { session, hello: *hello });
                }
            }
            Event::Report(report) => self.feed(unit, Input::Heard(report)),
        }
    }

    /// Takes what the device has said and set up.
    pub(crate) fn carry(&mut self, unit: usize) {
        checks::new_drives(self, unit);
        let log = self.units[unit].thing.log_mut();
        let fell = std::mem::take(&mut log.fell);
        let (timers, events, boot) = (std::mem::take(&mut log.timers), std::mem::take(&mut log.out), log.boot);
        for (at, timer) in timers {
            self.put(at, unit, Parcel::Board { boot, timer });
        }
        for event in events {
            self.send_up(unit, event);
        }
        if fell {
            self.reboot(unit, 800);
        }
    }

    fn send_up(&mut self, unit: usize, event: Event) {
        let hello = matches!(event, Event::Hello(_));
        let Some(connection) = self.units[unit].connection else {
            // Kept in the outbox, sent again after the reconnect; or lost.
            if self.random.one_in(2) {
                let at = self.now + 500 + self.random.below(3_000);
                self.put(at, unit, Parcel::ToHub { connection: 0, event });
            }
            return;
        };
        if !hello && self.unlucky() {
            let later = self.now + self.random.below(6_000);
            let fault = self.random.of(&[Fault::Lost, Fault::Doubled, Fault::Delayed]);
            self.note_fault(unit, fault);
            match fault {
                Fault::Lost => return,
                Fault::Doubled => self.put(later, unit, Parcel::ToHub { connection, event: event.clone() }),
                _ => return self.put(later, unit, Parcel::ToHub { connection, event }),
            }
        }
        let at = self.units[unit].last_up.max(self.now + 1 + self.random.below(20));
        self.units[unit].last_up = at;
        self.put(at, unit, Parcel::ToHub { connection, event });
    }

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
        checks::is_sent(self, unit, op);
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

    /// A command goes to the broker, as it was decided at `at`.
    pub(crate) fn send(&mut self, unit: usize, at: Instant, command: Command) {
        let sent_at = self.ms(at);
        let op = match &command {
            Command::Set { op, .. } | Command::Run { op, .. } => Some(op.clone()),
            Command::Welcome { .. } | Command::GetState { .. } | Command::Withdraw { .. } => None,
        };
        if let Some(op) = &op {
            self.tickets += 1;
            let number = self.tickets;
            // Sent again: what becomes of the earlier sending is no news of this one.
            self.units[unit].tickets.retain(|_, earlier| earlier != op);
            self.units[unit].tickets.insert(number, op.clone());
            checks::goes_out(self, unit, op);
        }
        let (ticket, run) = (self.tickets, self.run);
        let way = self.units[unit].hub_connection.zip(self.units[unit].session.clone()).filter(|_| !self.bus_down);
        let Some((connection, session)) = way else {
            if op.is_some() {
                let at = self.now + self.random.below(10);
                self.put(at, unit, Parcel::Ticket { run, ticket, written: false });
            }
            return;
        };
        let arrives = self.units[unit].last_down.max(self.now + 1 + self.random.below(20));
        self.units[unit].last_down = arrives;
        let parcel = Parcel::ToBoard { connection, sent_at, session, command };
        if let Some(op) = op {
            self.calls.get_mut(&op).expect("a call").really_sent = true;
            // The notice of the writing has its own way; seldom it is lost.
            if !self.unlucky() {
                let at = self.now + self.random.below(30);
                self.put(at, unit, Parcel::Ticket { run, ticket, written: true });
            }
        }
        if self.unlucky() {
            let fault = self.random.of(&[Fault::Lost, Fault::Doubled, Fault::Delayed]);
            self.note_fault(unit, fault);
            match fault {
                Fault::Lost => return,
                // Doubled soon: a ring of 8 operations knows a command again only while fewer than 8 followed it.
                Fault::Doubled => {
                    let at = self.now + 25 + self.random.below(400);
                    self.put(at, unit, parcel.clone());
                }
                _ => self.units[unit].last_down += self.random.below(3_000),
            }
        }
        let arrives = self.units[unit].last_down;
        self.put(arrives, unit, parcel);
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
        let of = |call: &&mut crate::house::Call| call.device == unit && !call.ended && !call.sent.is_empty();
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
            of.last_word = Some(LastWord { seq, relay: truth.relay, finished });
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
