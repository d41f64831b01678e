//! The way between the hub and its devices: what is sent, lost, doubled, late, and what of it has reached the twin.

use std::time::Instant;

use truetwin_proof::twin::input::{Command, Input};

use crate::{
    ends,
    fault::Fault,
    house::{House, Parcel},
    hub,
    log::Event,
    unit::Thing,
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
        ends::new_drives(self, unit);
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
            ends::goes_out(self, unit, op);
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
}
