//! A board of two things on a bench, a clock that the tests move, and a hub that reads what is sent.

use truetwin_wire::{
    Scalar,
    device::PropertySpec,
    hub::{ActionReport, Command, DeviceState, Event, Hello, Incoming, decode_event, encode},
    words::{EvidenceWord, KindWord, ReasonWord, ReportResult},
};

use crate::{Board, Identity, Machine, Start, machine::Heard};

/// What the bench does when it is driven.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanics {
    /// Arrives at once.
    Works,
    /// Never arrives.
    Stuck,
    /// Arrives when the test says so.
    Slow,
    /// Refuses to begin.
    NoPower,
}

pub(super) struct Bench {
    pub(super) now: [Scalar; 3],
    pub(super) wished: [Option<Scalar>; 3],
    pub(super) mechanics: Mechanics,
    pub(super) readable: bool,
    pub(super) drives: usize,
    pub(super) safe: usize,
    specs: [PropertySpec<'static>; 3],
}

impl Bench {
    pub(super) fn arrive(&mut self) {
        for (now, wished) in self.now.iter_mut().zip(&mut self.wished) {
            *now = wished.take().unwrap_or(now.clone());
        }
    }
}

impl Board for Bench {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        if self.mechanics == Mechanics::NoPower {
            return Err(ReasonWord::Power);
        }
        self.drives += 1;
        self.wished[property] = Some(value.clone());
        if self.mechanics == Mechanics::Works {
            self.arrive();
        }
        Ok(())
    }

    fn read(&mut self, property: usize) -> Option<Scalar> {
        self.readable.then(|| self.now[property].clone())
    }

    fn settle_ms(&self, _property: usize) -> u32 {
        400
    }

    fn make_safe(&mut self) {
        self.safe += 1;
        self.now[0] = Scalar::Bool(false);
    }
}

pub(super) struct Rig {
    pub(super) machine: Machine<'static>,
    pub(super) bench: Bench,
    pub(super) now_ms: u64,
    pub(super) session: &'static str,
    /// The hub's clock is the device's plus this.
    pub(super) offset_ms: u64,
}

impl Rig {
    /// Started, not connected.
    pub(super) fn started(start: Start) -> Self {
        let mut bench = Bench {
            now: [Scalar::Bool(true), Scalar::Number(20.0), Scalar::Integer(0)],
            wished: [None, None, None],
            mechanics: Mechanics::Works,
            readable: true,
            drives: 0,
            safe: 0,
            specs: [
                PropertySpec::new("relay", KindWord::Bool, EvidenceWord::Pin),
                PropertySpec {
                    min: Some(5.0),
                    max: Some(30.0),
                    step: Some(0.5),
                    ..PropertySpec::new("target", KindWord::Number, EvidenceWord::Firmware)
                },
                PropertySpec { settable: false, ..PropertySpec::new("count", KindWord::Integer, EvidenceWord::Sensor) },
            ],
        };
        let identity = Identity { device: "bench", model: "bench", fw: "1" };
        let machine = Machine::new(identity, "b00t", start, &mut bench).unwrap();
        Self { machine, bench, now_ms: 1_000, session: "s1", offset_ms: 50_000 }
    }

    /// Connected and welcomed, the hello taken away, the relay off.
    pub(super) fn welcomed() -> Self {
        let mut rig = Self::started(Start::Unclean);
        rig.connect();
        assert_eq!(rig.welcome("hub", 7), Heard::Welcome);
        rig.events();
        rig
    }

    pub(super) fn connect(&mut self) {
        self.machine.connected(self.now_ms, &mut self.bench);
    }

    pub(super) fn hub_ms(&self) -> u64 {
        self.now_ms + self.offset_ms
    }

    pub(super) fn welcome(&mut self, hub: &str, epoch: u32) -> Heard {
        let (hub_ms, session) = (self.hub_ms(), self.session.to_owned());
        self.tell(&Command::Welcome {
            session,
            hub: hub.to_owned(),
            epoch,
            hub_ms,
            heartbeat_ms: 5_000,
            warnings: Vec::new(),
        })
    }

    pub(super) fn tell(&mut self, command: &Command) -> Heard {
        self.machine.handle(&encode(command), false, self.now_ms, &mut self.bench)
    }

    pub(super) fn set_command(&self, op: &str, property: &str, value: Scalar) -> Command {
        let (op, property, session) = (op.to_owned(), property.to_owned(), self.session.to_owned());
        Command::Set { session, hub_ms: self.hub_ms(), op, property, value, ttl_ms: 1_000 }
    }

    pub(super) fn set(&mut self, op: &str, property: &str, value: Scalar) -> Heard {
        self.tell(&self.set_command(op, property, value))
    }

    pub(super) fn switch(&mut self, op: &str, on: bool) -> Heard {
        self.set(op, "relay", Scalar::Bool(on))
    }

    pub(super) fn withdraw(&mut self, op: &str) -> Heard {
        let (hub_ms, session, op) = (self.hub_ms(), self.session.to_owned(), op.to_owned());
        self.tell(&Command::Withdraw { session, hub_ms, op })
    }

    pub(super) fn query(&mut self, op: &str, property: Option<&str>) -> Heard {
        let (hub_ms, session, op) = (self.hub_ms(), self.session.to_owned(), op.to_owned());
        self.tell(&Command::GetDeviceState { session, hub_ms, op, property: property.map(str::to_owned) })
    }

    /// Moves the clock and lets the machine do what is due.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.machine.step(self.now_ms, &mut self.bench);
    }

    /// Everything in the outbox, read as the hub reads it.
    pub(super) fn events(&mut self) -> Vec<Incoming> {
        let mut events = Vec::new();
        while let Some(event) = self.machine.outgoing() {
            events.push(decode_event(event).unwrap());
            self.machine.sent();
        }
        events
    }

    pub(super) fn reports(&mut self) -> Vec<ActionReport> {
        let of =
            |incoming: Incoming| if let Event::ActionReport(report) = incoming.event { Some(report) } else { None };
        self.events().into_iter().filter_map(of).collect()
    }

    pub(super) fn results(&mut self) -> Vec<(String, ReportResult, Option<ReasonWord>, bool)> {
        self.reports().into_iter().map(|r| (r.op, r.result, r.reason, r.dup)).collect()
    }

    pub(super) fn state(&mut self) -> DeviceState {
        let of = |incoming: Incoming| if let Event::DeviceState(state) = incoming.event { Some(state) } else { None };
        self.events().into_iter().find_map(of).unwrap()
    }

    pub(super) fn hello(&mut self) -> Hello {
        let of = |incoming: Incoming| if let Event::Hello(hello) = incoming.event { Some(hello) } else { None };
        self.events().into_iter().find_map(of).unwrap()
    }
}
