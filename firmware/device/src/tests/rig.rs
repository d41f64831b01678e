//! A board of two things on a bench, a clock that the tests move, and a hub that reads what is sent.

use std::sync::Arc;

use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Args, PropertySpec},
    hub::{ActionReport, Command, DeviceState, Event, Hello, Incoming, decode_event, encode},
    words::{CauseWord, EvidenceWord, KindWord, ReasonWord, ReportResult},
};

use crate::{
    Board, Identity, Machine, Part, Start,
    machine::Heard,
    store::{Fate, Op, Store, StoreFailed},
};

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
    pub(super) specs: [PropertySpec<'static>; 3],
    pub(super) exclusive: &'static [&'static [&'static str]],
    pub(super) ready: bool,
    pub(super) refuses: Option<ReasonWord>,
    pub(super) stops: usize,
    pub(super) eta_ms: Option<u32>,
    pub(super) at_rest: bool,
    /// What each run was begun with.
    pub(super) runs: Vec<(usize, String)>,
    /// How what runs has ended.
    pub(super) action_end: Option<Result<(), ReasonWord>>,
    pub(super) noticed: Option<CauseWord>,
    pub(super) memory: Option<Memory>,
}

/// A few bytes that survive a reboot, with a switch for a worn-out flash.
#[derive(Clone, Default)]
pub(super) struct Memory {
    pub(super) kept: Option<(String, Fate)>,
    pub(super) writes: usize,
    pub(super) worn: bool,
}

impl Store for Memory {
    fn kept(&mut self) -> Result<Option<(Op, Fate)>, StoreFailed> {
        if self.worn { Err(StoreFailed) } else { Ok(self.kept.as_ref().map(|(op, fate)| (op.parse().unwrap(), *fate))) }
    }

    fn keep(&mut self, op: &str, fate: Fate) -> Result<(), StoreFailed> {
        self.writes += 1;
        self.kept = Some((op.to_owned(), fate));
        if self.worn { Err(StoreFailed) } else { Ok(()) }
    }
}

/// `press` may be done twice, `pulse` may not, nobody knows of `mute` whether it was done.
static ACTIONS: [ActionSpec<'static>; 3] = [
    ActionSpec::new("press", true),
    ActionSpec::new("pulse", false),
    ActionSpec { feedback: Some(EvidenceWord::None), ..ActionSpec::new("mute", true) },
];

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

    fn actions(&self) -> &[ActionSpec<'_>] {
        &ACTIONS
    }

    fn exclusive(&self) -> &[&[&str]] {
        self.exclusive
    }

    fn stop(&mut self, property: usize) {
        self.stops += 1;
        self.wished[property] = None;
    }

    fn at_rest(&mut self, _property: usize) -> bool {
        self.at_rest
    }

    fn eta_ms(&mut self, _property: usize) -> Option<u32> {
        self.eta_ms
    }

    fn run(&mut self, action: usize, args: Args<'_>) -> Result<(), ReasonWord> {
        self.runs.push((action, args.as_str().to_owned()));
        Ok(())
    }

    fn ended(&mut self, _action: usize) -> Option<Result<(), ReasonWord>> {
        self.action_end
    }

    fn action_settle_ms(&self, _action: usize) -> u32 {
        500
    }

    fn accepts(&mut self, _part: Part) -> Result<(), ReasonWord> {
        self.refuses.map_or(Ok(()), Err)
    }

    fn ready(&mut self, _part: Part) -> bool {
        self.ready
    }

    fn watch_ms(&self) -> Option<u32> {
        self.noticed.map(|_| 50)
    }

    fn noticed(&mut self) -> Option<CauseWord> {
        self.noticed
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        self.memory.as_mut().map(|memory| memory as &mut dyn Store)
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
        Self::with(start, Self::bench())
    }

    /// As [`Rig::started`], on a bench of the test's own.
    pub(super) fn with(start: Start, mut bench: Bench) -> Self {
        let identity = Identity { device: "bench", model: "bench", fw: "1" };
        let machine = Machine::new(identity, "b00t", start, &mut bench).unwrap();
        Self { machine, bench, now_ms: 1_000, session: "s1", offset_ms: 50_000 }
    }

    pub(super) fn bench() -> Bench {
        Bench {
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
            exclusive: &[],
            ready: true,
            refuses: None,
            stops: 0,
            eta_ms: None,
            at_rest: true,
            runs: Vec::new(),
            action_end: Some(Ok(())),
            noticed: None,
            memory: None,
        }
    }

    /// Connected and welcomed, the hello taken away, the relay off.
    pub(super) fn welcomed() -> Self {
        Self::welcomed_with(Self::bench())
    }

    pub(super) fn welcomed_with(bench: Bench) -> Self {
        let mut rig = Self::with(Start::Unclean, bench);
        rig.connect();
        assert_eq!(rig.welcome("hub", 7), Heard::Welcome);
        rig.events();
        rig
    }

    /// Connects again, into the next session; the hello is taken away.
    pub(super) fn again(&mut self, session: &'static str) {
        self.connect();
        self.session = session;
        self.events();
        assert_eq!(self.welcome("hub", 7), Heard::Welcome);
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

    pub(super) fn run(&mut self, op: &str, action: &str, args: &[(&str, Scalar)]) -> Heard {
        let (op, action, session) = (op.to_owned(), action.to_owned(), self.session.to_owned());
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.tell(&Command::Run { session, hub_ms: self.hub_ms(), op, action, args, ttl_ms: 1_000 })
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

    pub(super) fn results(&mut self) -> Vec<(Arc<str>, ReportResult, Option<ReasonWord>, bool)> {
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
