//! A hub's twin, a board and the way between them, in virtual time. What goes out of the twin reaches the board after a
//! while, or is lost with the connection; what the board says reaches the twin after a while, late, twice or never.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use truetwin::{
    property::{
        Action, Class, Description, DeviceId, Evidence, Kind, Predicate, Property, PropertyName, Role, Terms, Value,
        Verify,
    },
    twin::{
        Twin,
        input::{ActionResult, Body, Cause, Command, Effect, Found, Input, Report, Status},
        settings::Settings,
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Reason, Reply, Settled, Stage, StateReport},
    },
};

use crate::{
    board::{Board, Event, Timer, boot_token},
    invariants,
};

/// One thing that happens in a history.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One of several callers wants a value, perhaps only if it is not so already.
    Set {
        on: bool,
        limit_ms: u64,
        who: usize,
        needed: bool,
    },
    /// One of several callers wants the other value.
    Toggle {
        limit_ms: u64,
        who: usize,
    },
    /// Many wishes at once.
    Burst {
        sets: u64,
    },
    Query {
        limit_ms: u64,
    },
    /// An action that must not be done twice.
    Run {
        limit_ms: u64,
    },
    /// A value for the output that excludes the first, where there is one.
    Other {
        on: bool,
        limit_ms: u64,
        who: usize,
    },
    /// The caller of the n-th last operation goes.
    Cancel {
        back: usize,
    },
    Fault(crate::board::Fault),
    Repair,
    /// Somebody touches the switch at the wall; the board may leave it untold.
    Touch {
        told: bool,
    },
    Periodic,
    Heartbeat,
    /// The connection breaks. The board comes back after a while; the hub may hear of the break only then.
    Drop {
        away_ms: u64,
        noticed: bool,
    },
    Reboot {
        away_ms: u64,
    },
    /// A report delivered with the RETAIN flag, or of an older boot, claims that the latest operation is done.
    Leftover {
        retained: bool,
    },
    /// From now on so many of a thousand messages are lost, doubled or delayed.
    Noise {
        permille: u64,
    },
    /// The actor crashes and another follows.
    Restart,
    /// From now on the actor's timer is late by this.
    Lag {
        ms: u64,
    },
    /// A wake-up that nobody asked for.
    Tick,
    Unreadable,
    Bus {
        down: bool,
    },
    ShutDown,
    Removed,
    Wait,
}

/// What kind of board and hub a history has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) stable_ms: u32,
    pub(crate) expected_ms: u32,
    pub(crate) pin: bool,
    pub(crate) min_interval_ms: u32,
    pub(crate) hub_age_s: u64,
    /// When the board comes for the first time.
    pub(crate) absent_ms: u64,
    /// A meter beside the relay must agree.
    pub(crate) metered: bool,
    /// Wishes stay until they are changed.
    pub(crate) held: bool,
    /// The board takes a newer wish while it drives (level 3), and the hub knows.
    pub(crate) preempts: bool,
    /// It has a second output, and only one of them may be in flight.
    pub(crate) exclusive: bool,
}

/// What is on its way.
#[derive(Clone, Debug)]
enum Parcel {
    ToBoard {
        connection: u64,
        sent_at: u64,
        session: Arc<str>,
        command: Command,
    },
    /// What a board says, on a connection; it may outlive it.
    ToHub {
        connection: u64,
        event: Event,
    },
    ToTwin(Input),
    Board {
        boot: u32,
        /// Of the second output.
        other: bool,
        timer: Timer,
    },
    Reconnect,
}

/// A caller of an operation or a question.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) wish: Option<Value>,
    /// What was sent under its id: for a toggle known only then, for one that joined never.
    pub(crate) value: Option<Value>,
    pub(crate) answer_by: Instant,
    pub(crate) gone: bool,
    /// The fleet told it that the actor crashed.
    pub(crate) told_by_fleet: bool,
    pub(crate) replies: Vec<(Instant, Reply)>,
    pub(crate) states: usize,
    /// When its command was given to the bus, how late it may begin, and in which session; in none, if the
    /// connection ended in the same moment.
    pub(crate) sent: Vec<(u64, Duration, Option<Arc<str>>)>,
    pub(crate) ended: bool,
    /// It is about the second output.
    pub(crate) other: bool,
    /// It wants an action, not a value.
    pub(crate) runs: bool,
    /// Its command was written to the socket, as far as the twin knows.
    pub(crate) written: bool,
    /// How far it is by the evidence that has reached the twin, and how far it was before the present moment.
    pub(crate) stage: Stage,
    pub(crate) stage_before: Stage,
}

/// The newest report with a value that has reached the twin.
#[derive(Clone, Debug)]
pub(crate) struct LastWord {
    pub(crate) seq: u32,
    pub(crate) relay: bool,
    /// The operation that the board had finished last, and the one that it spoke of.
    pub(crate) finished: [Option<OpId>; 2],
}

/// One input and what came of it.
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) input: Input,
    pub(crate) effects: Vec<Effect>,
}

pub(crate) struct World {
    pub(crate) twin: Twin,
    pub(crate) board: Board,
    /// The second output.
    pub(crate) other: Option<Board>,
    pub(crate) now: u64,
    start: Instant,
    pub(crate) settings: Settings,
    pub(crate) metered: bool,
    /// What the meter said last.
    pub(crate) measured: Option<bool>,
    description: Arc<Description>,
    random: u64,
    parcels: BTreeMap<(u64, u64), Parcel>,
    parcels_ever: u64,
    connections: u64,
    /// The connection that the board has; the hub may not know of its end yet.
    board_connection: Option<u64>,
    hub_connection: Option<u64>,
    session: Option<Arc<str>>,
    bus_down: bool,
    noise: u64,
    lag: u64,
    last_down: u64,
    last_up: u64,
    pub(crate) callers: BTreeMap<OpId, Caller>,
    order: Vec<OpId>,
    // What has reached the twin.
    pub(crate) hub_boot: Option<u32>,
    pub(crate) last_word: Option<LastWord>,
    pub(crate) other_word: Option<LastWord>,
    /// When anything was last heard, before the present moment.
    pub(crate) heard_before: Option<Instant>,
    /// What has ended in the present moment.
    pub(crate) newly_ended: Vec<Settled>,
    pub(crate) outcomes: BTreeSet<&'static str>,
    ticks: u64,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let start = Instant::now() + Duration::from_secs(setting.hub_age_s);
        let mut settings = Settings::new(start - Duration::from_secs(setting.hub_age_s));
        settings.reconcile = Duration::from_secs(60);
        let feedback = if setting.pin { Evidence::Pin } else { Evidence::Firmware };
        let property = Property {
            name: "relay".into(),
            role: Role::Light,
            kind: Kind::Bool,
            unit: None,
            min: None,
            max: None,
            step: None,
            tolerance: None,
            values: Vec::new(),
            class: if setting.held { Class::Held } else { Class::Momentary },
            feedback,
            expected_ms: setting.expected_ms,
            stable_ms: setting.stable_ms,
            min_interval_ms: setting.min_interval_ms,
            settable: true,
            repeatable: true,
            terms: Terms {
                verify: setting.metered.then(|| Verify {
                    device: DeviceId::new("meter").expect("a device id"),
                    property: "power".into(),
                    expect: [true, false].map(|on| (Some(Value::Bool(on)), Predicate::Equals(Value::Bool(on)))).into(),
                    within_ms: 2_000,
                    sensitive: false,
                }),
                ..Terms::default()
            },
        };
        let board = Board::new("relay".into(), feedback, (u64::from(setting.expected_ms) * 3 / 4).max(1));
        let other = setting.exclusive.then(|| board.beside("second".into()));
        let second = Property { name: "second".into(), terms: Terms::default(), ..property.clone() };
        let mut properties = vec![property];
        properties.extend(setting.exclusive.then_some(second));
        let mut world = Self {
            twin: Twin::new(DeviceId::new("lamp").expect("a device id"), settings.clone()),
            board,
            other,
            now: 0,
            start,
            settings,
            metered: setting.metered,
            measured: None,
            description: Arc::new(Description {
                exclusive: if setting.exclusive { vec![vec!["relay".into(), "second".into()]] } else { Vec::new() },
                properties,
                actions: vec![Action {
                    name: "press".into(),
                    role: Role::Other,
                    feedback: Evidence::Firmware,
                    expected_ms: 300,
                    confirmation: Default::default(),
                    repeatable: false,
                }],
                level: if setting.preempts { 3 } else { 2 },
                ..Description::default()
            }),
            random: setting.seed | 1,
            parcels: BTreeMap::new(),
            parcels_ever: 0,
            connections: 0,
            board_connection: None,
            hub_connection: None,
            session: None,
            bus_down: false,
            noise: 0,
            lag: 0,
            last_down: 0,
            last_up: 0,
            callers: BTreeMap::new(),
            order: Vec::new(),
            hub_boot: None,
            last_word: None,
            other_word: None,
            heard_before: None,
            newly_ended: Vec::new(),
            outcomes: BTreeSet::new(),
            ticks: 0,
        };
        world.put(setting.absent_ms, Parcel::Reconnect);
        world
    }

    /// A number below `n`, the same in each run of a history.
    fn below(&mut self, n: u64) -> u64 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n.max(1)
    }

    fn unlucky(&mut self) -> bool {
        self.below(1_000) < self.noise
    }

    pub(crate) fn time(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn put(&mut self, at: u64, parcel: Parcel) {
        self.parcels_ever += 1;
        self.parcels.insert((at, self.parcels_ever), parcel);
    }

    /// Lets time pass up to `until`: parcels arrive and timers go off in the order of their times.
    pub(crate) fn run(&mut self, until: u64) {
        loop {
            let parcel = self.parcels.keys().next().map_or(u64::MAX, |(at, _)| *at);
            let wake = self.twin.deadline().map_or(u64::MAX, |at| self.wake_ms(at) + self.lag);
            let next = parcel.min(wake);
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if wake < parcel {
                self.ticks += 1;
                assert!(self.ticks < 100_000, "the twin wakes for nothing");
                self.apply(Input::Tick);
            } else if let Some((_, parcel)) = self.parcels.pop_first() {
                self.arrive(parcel);
            }
        }
        self.now = self.now.max(until);
    }

    fn wake_ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_micros().div_ceil(1_000)).expect("a short history")
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Set { on, limit_ms, who, needed } => {
                let (op, answer_by) = self.caller(Some(Value::Bool(*on)), *limit_ms);
                let if_needed = needed.then_some(Duration::from_secs(2));
                let wish = Wish { if_needed, ..Wish::to("relay", Value::Bool(*on)) };
                self.apply(Input::Set { op, caller: who_is(*who), wish, answer_by });
            }
            Step::Toggle { limit_ms, who } => {
                let (op, answer_by) = self.caller(None, *limit_ms);
                let wish = Wish::toggle("relay");
                self.apply(Input::Set { op, caller: who_is(*who), wish, answer_by });
            }
            Step::Burst { sets } => {
                for n in 0..*sets {
                    // Relative wishes queue where others supersede.
                    let who = usize::from(n % 5 == 4);
                    match n % 3 {
                        0 => self.step(&Step::Set { on: n % 2 == 0, limit_ms: 8_000, who, needed: false }),
                        _ => self.step(&Step::Toggle { limit_ms: 8_000, who }),
                    }
                }
            }
            Step::Query { limit_ms } => {
                let (op, answer_by) = self.caller(None, *limit_ms);
                self.apply(Input::Query { op, answer_by });
            }
            Step::Run { limit_ms } => {
                let (op, answer_by) = self.caller(None, *limit_ms);
                self.callers.get_mut(&op).expect("a caller").runs = true;
                let (caller, action) = (who_is(self.order.len()), "press".into());
                self.apply(Input::Run { op, caller, action, args: Vec::new(), answer_by });
            }
            Step::Other { on, limit_ms, who } => {
                if self.other.is_some() {
                    let (op, answer_by) = self.caller(Some(Value::Bool(*on)), *limit_ms);
                    self.callers.get_mut(&op).expect("a caller").other = true;
                    let wish = Wish::to("second", Value::Bool(*on));
                    self.apply(Input::Set { op, caller: who_is(*who), wish, answer_by });
                }
            }
            Step::Cancel { back } => {
                let Some(op) = self.order.iter().rev().nth(*back).cloned() else { return };
                self.callers.get_mut(&op).expect("a caller").gone = true;
                self.apply(Input::Cancel { op });
            }
            Step::Fault(fault) => self.outputs().for_each(|board| board.switch(now, *fault)),
            Step::Repair => {
                self.noise = 0;
                self.lag = 0;
                self.outputs().for_each(|board| board.repair(now));
                if self.bus_down {
                    self.bus_down = false;
                    self.apply(Input::BusUp);
                }
            }
            Step::Touch { told } => self.board.touch(*told),
            Step::Periodic => self.outputs().for_each(|board| board.state(None, Cause::Periodic)),
            Step::Heartbeat => self.board.heartbeat(),
            Step::Drop { away_ms, noticed } => self.break_connection(*away_ms, *noticed),
            Step::Reboot { away_ms } => {
                self.outputs().for_each(Board::reboot);
                self.break_connection(*away_ms, true);
            }
            Step::Leftover { retained } => self.leftover(*retained),
            Step::Noise { permille } => self.noise = *permille,
            Step::Restart => self.restart(),
            Step::Lag { ms } => self.lag = *ms,
            Step::Tick => self.apply(Input::Tick),
            Step::Unreadable => self.apply(Input::Unreadable),
            Step::Bus { down } => {
                self.bus_down = *down;
                self.apply(if *down { Input::BusDown } else { Input::BusUp });
            }
            Step::ShutDown => self.apply(Input::ShutDown),
            Step::Removed => self.apply(Input::Removed),
            Step::Wait => {}
        }
        self.carry();
    }

    fn caller(&mut self, wish: Option<Value>, limit_ms: u64) -> (OpId, Instant) {
        let op = OpId::new(&format!("{:x}", 1_000 + self.order.len()));
        let answer_by = self.time(self.now + limit_ms);
        let caller = Caller {
            wish,
            value: None,
            answer_by,
            gone: false,
            told_by_fleet: false,
            replies: Vec::new(),
            states: 0,
            sent: Vec::new(),
            ended: false,
            other: false,
            runs: false,
            written: false,
            stage: Stage::WaitingBroker,
            stage_before: Stage::WaitingBroker,
        };
        self.callers.insert(op.clone(), caller);
        self.order.push(op.clone());
        (op, answer_by)
    }

    fn break_connection(&mut self, away_ms: u64, noticed: bool) {
        if let Some(connection) = self.board_connection.take()
            && noticed
        {
            let at = self.now + self.below(30);
            self.put(at, Parcel::ToTwin(Input::Disconnected { connection }));
        }
        let at = self.now + 1 + away_ms;
        self.put(at, Parcel::Reconnect);
    }

    fn leftover(&mut self, retained: bool) {
        let (Some(op), Some(boot)) = (self.order.last().cloned(), self.hub_boot) else { return };
        let Some(value) = self.callers[&op].wish.clone() else { return };
        let name: PropertyName = if self.callers[&op].other { "second".into() } else { "relay".into() };
        let boot = if retained { boot_token(boot) } else { boot_token(0) };
        let seq = 1 + u32::try_from(self.below(200)).expect("small");
        let body = match self.below(2) {
            0 => Body::Action { op, result: ActionResult::Completed, reason: None, eta: None, clamped: false },
            _ => Body::State { op: None, cause: Cause::Query, seen: vec![(name.clone(), op)] },
        };
        let status = vec![Status { property: name, value, evidence: Evidence::Pin }];
        self.apply(Input::Heard(Report { boot, seq, retained, status, body }));
    }

    fn restart(&mut self) {
        let memory = self.twin.memory(self.time(self.now));
        self.twin = Twin::new(DeviceId::new("lamp").expect("a device id"), self.settings.clone());
        for caller in self.callers.values_mut() {
            caller.told_by_fleet |= caller.replies.is_empty() && caller.states == 0;
            caller.ended = true;
        }
        (self.last_word, self.other_word) = (None, None);
        self.apply(Input::Restored(memory));
    }

    fn arrive(&mut self, parcel: Parcel) {
        let now = self.now;
        match parcel {
            Parcel::ToBoard { connection, sent_at, session, command } => {
                if self.board_connection == Some(connection) {
                    self.receive(sent_at, &session, &command);
                }
            }
            Parcel::ToHub { connection, event } => self.deliver(connection, event),
            Parcel::ToTwin(input) => self.apply(input),
            Parcel::Board { boot, other, timer } => {
                if boot == self.board.boot {
                    let of = if other { self.other.as_mut() } else { Some(&mut self.board) };
                    of.expect("an output").fire(now, &timer);
                }
            }
            Parcel::Reconnect => {
                // Two breaks in a row: the later one counts.
                let pending = self.parcels.values().any(|p| matches!(p, Parcel::Reconnect));
                if self.board_connection.is_none() && !pending {
                    self.connections += 1;
                    self.board_connection = Some(self.connections);
                    (self.last_down, self.last_up) = (now, now);
                    self.apply(Input::Connected { connection: self.connections });
                    self.board.connect(self.description.clone());
                    if let Some(other) = &mut self.other {
                        other.connect_beside(&mut self.board);
                    }
                }
            }
        }
        self.carry();
    }

    fn deliver(&mut self, connection: u64, event: Event) {
        match event {
            Event::Hello(hello) => {
                if self.board_connection == Some(connection) {
                    self.apply(Input::Greeted { session: format!("s{connection}").into(), hello: *hello });
                }
            }
            Event::Report(report) => self.apply(Input::Heard(report)),
        }
    }

    fn outputs(&mut self) -> impl Iterator<Item = &mut Board> {
        std::iter::once(&mut self.board).chain(&mut self.other)
    }

    /// A command reaches the output that it is for, or all.
    fn receive(&mut self, sent_at: u64, session: &Arc<str>, command: &Command) {
        let now = self.now;
        let of = match command {
            Command::Set { property, .. } | Command::GetState { property: Some(property), .. } => {
                Some(property.clone())
            }
            Command::Run { .. } => Some("relay".into()),
            Command::GetState { property: None, .. } | Command::Welcome { .. } | Command::Withdraw { .. } => None,
        };
        for board in self.outputs().filter(|board| of.as_ref().is_none_or(|of| board.property == *of)) {
            board.receive(now, sent_at, session, command.clone());
        }
    }

    /// The output that an operation is about.
    pub(crate) fn output(&self, op: &OpId) -> &Board {
        self.other.as_ref().filter(|_| self.callers[op].other).unwrap_or(&self.board)
    }

    /// What was heard last of the output that an operation is about.
    pub(crate) fn word(&self, op: &OpId) -> Option<&LastWord> {
        if self.callers[op].other { self.other_word.as_ref() } else { self.last_word.as_ref() }
    }

    /// Takes what the board has said and set up.
    fn carry(&mut self) {
        let mut fell = false;
        self.outputs().for_each(|board| fell |= std::mem::take(&mut board.fell));
        self.carry_out_of_board();
        if fell {
            self.outputs().for_each(Board::reboot);
            self.break_connection(800, true);
        }
    }

    fn carry_out_of_board(&mut self) {
        let (mut timers, mut events) = (Vec::new(), Vec::new());
        for (number, board) in self.outputs().enumerate() {
            timers.extend(std::mem::take(&mut board.timers).into_iter().map(|(at, timer)| (at, number == 1, timer)));
            events.append(&mut board.out);
        }
        for (at, other, timer) in timers {
            self.put(at, Parcel::Board { boot: self.board.boot, other, timer });
        }
        for event in events {
            let hello = matches!(event, Event::Hello(_));
            let Some(connection) = self.board_connection else {
                // Kept in the outbox, sent again after the reconnect; or lost.
                if self.below(2) == 0 {
                    let at = self.now + 500 + self.below(3_000);
                    self.put(at, Parcel::ToHub { connection: 0, event });
                }
                continue;
            };
            if !hello && self.unlucky() {
                match self.below(3) {
                    0 => continue,
                    1 => {
                        let at = self.now + self.below(6_000);
                        self.put(at, Parcel::ToHub { connection, event: event.clone() });
                    }
                    _ => {
                        let at = self.now + self.below(6_000);
                        self.put(at, Parcel::ToHub { connection, event });
                        continue;
                    }
                }
            }
            self.last_up = self.last_up.max(self.now + 1 + self.below(20));
            self.put(self.last_up, Parcel::ToHub { connection, event });
        }
    }

    /// One input, then drain; then the invariants.
    fn apply(&mut self, input: Input) {
        let now = self.time(self.now);
        self.before(&input);
        self.twin.apply(now, input.clone());
        let effects: Vec<Effect> = std::iter::from_fn(|| self.twin.poll()).collect();
        self.after(&input, &effects);
        let moment = Moment { now, input, effects };
        invariants::check_all(self, &moment);
        for effect in &moment.effects {
            self.carry_out(now, effect);
        }
    }

    /// Notes what reaches the twin with an input.
    fn before(&mut self, input: &Input) {
        self.heard_before = self.twin.last_heard();
        for caller in self.callers.values_mut() {
            caller.stage_before = caller.stage;
        }
        match input {
            Input::Connected { connection } => (self.hub_connection, self.session) = (Some(*connection), None),
            Input::Disconnected { connection } if self.hub_connection == Some(*connection) => {
                (self.hub_connection, self.session) = (None, None);
            }
            // Nothing of it went out: it waits again as if it had not been sent.
            Input::NotWritten { op } => {
                let caller = self.callers.get_mut(op).expect("a caller");
                if !caller.written && !caller.ended {
                    (caller.stage, caller.stage_before) = (Stage::Queued, Stage::Queued);
                }
            }
            Input::Verified { found, .. } => {
                self.measured = if let Found::Value(Value::Bool(load)) = found { Some(*load) } else { self.measured };
            }
            Input::Written { op } => {
                self.reached(op, Stage::WaitingDeviceAck);
                self.callers.get_mut(op).expect("a caller").written = true;
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

    fn reached(&mut self, op: &OpId, stage: Stage) {
        if let Some(caller) = self.callers.get_mut(op).filter(|c| !c.ended && !c.sent.is_empty()) {
            caller.stage = caller.stage.max(stage);
            // Who speaks of it has its command, should the notice of its writing be lost.
            caller.written = true;
        }
    }

    /// Notes what a report has told the twin, unless the twin said that it counts for nothing; and what has ended.
    fn after(&mut self, input: &Input, effects: &[Effect]) {
        let ignored = effects.iter().any(|e| matches!(e, Effect::Ignored(_)));
        if let Input::Greeted { hello, .. } = input {
            let boot = number(&hello.boot);
            if self.hub_boot != Some(boot) || !ignored {
                (self.last_word, self.other_word) = (None, None);
            }
            self.hub_boot = Some(boot);
            if !ignored {
                self.heard(boot, hello.seq);
                hello.seen.iter().for_each(|(_, op)| self.reached(op, Stage::WaitingReadBack));
            }
        } else if let Input::Heard(report) = input
            && !ignored
        {
            self.heard(number(&report.boot), report.seq);
            if let Body::Action { op, result, reason, .. } = &report.body {
                self.reached(op, shown(*result, *reason, &report.status));
            }
        }
        self.newly_ended.clear();
        for (op, caller) in self.callers.iter_mut().filter(|(_, caller)| !caller.ended && !caller.sent.is_empty()) {
            let settled = self.twin.check(self.start + Duration::from_millis(self.now), Some(op));
            // Of a held wish an earlier answer may still stand while it is sent again.
            if let Some(settled) = settled.filter(|settled| settled.outcome != Outcome::Working) {
                caller.ended = true;
                self.newly_ended.push(settled);
            }
        }
    }

    fn heard(&mut self, boot: u32, seq: u32) {
        let outputs = [(Some(&self.board), &mut self.last_word), (self.other.as_ref(), &mut self.other_word)];
        for (board, last_word) in outputs {
            let truth = board.and_then(|board| board.reports.get(&(boot, seq)));
            if let Some(truth) = truth.filter(|truth| truth.carried)
                && last_word.as_ref().is_none_or(|word| word.seq < seq)
            {
                let finished = [truth.finished.clone(), truth.about.clone()];
                *last_word = Some(LastWord { seq, relay: truth.relay, finished });
            }
        }
    }

    fn carry_out(&mut self, now: Instant, effect: &Effect) {
        match effect {
            Effect::Send(command) => self.send(command.clone()),
            Effect::Reply { op, reply } => {
                let word = match reply {
                    Reply::Settled(settled) => settled.outcome.as_str(),
                    Reply::Refused(refusal) => refusal.word().as_str(),
                };
                self.outcomes.insert(word);
                let caller = self.callers.get_mut(op).expect("a caller");
                caller.replies.push((now, reply.clone()));
            }
            Effect::State { op, state } => {
                self.outcomes.insert(if state.as_ref().is_ok_and(|s: &StateReport| s.asked_now) {
                    "asked"
                } else {
                    "told"
                });
                self.callers.get_mut(op).expect("a caller").states += 1;
            }
            Effect::Ended { outcome, .. } => {
                self.outcomes.insert(outcome.as_str());
            }
            Effect::LateSuccess { .. } => {
                self.outcomes.insert("late_success");
            }
            Effect::Reverted { .. } => {
                self.outcomes.insert("reverted");
            }
            Effect::Presence(presence) => {
                self.outcomes.insert(presence.as_str());
            }
            Effect::StaleHello { .. } => {}
            Effect::Ignored(why) => {
                self.outcomes.insert(why.as_str());
            }
            Effect::Ask { question, .. } => {
                let at = self.now + 1 + self.below(40);
                let found = match (self.unlucky(), self.below(2)) {
                    (true, 0) => Found::Offline,
                    (true, _) => Found::Silent,
                    (false, _) => Found::Value(Value::Bool(self.board.load())),
                };
                self.put(at, Parcel::ToTwin(Input::Verified { question: question.clone(), found }));
            }
            Effect::LocalOverride { .. } => {
                self.outcomes.insert("local_override");
            }
            Effect::Owed { .. } => {
                self.outcomes.insert("owed");
            }
            Effect::StageLeft { .. } | Effect::Described(_) | Effect::Malformed { .. } => {}
        }
    }

    /// An operation's command goes out: it begins anew, and what becomes of an earlier sending is no news any more.
    fn notice_sent(&mut self, op: &OpId, ttl: Duration) {
        let session = self.session.clone();
        let caller = self.callers.get_mut(op).expect("a caller");
        // Of a sending before this one nobody said that it was not written: the board may have it.
        caller.written |= !caller.sent.is_empty() && caller.stage == Stage::WaitingBroker;
        caller.sent.push((self.now, ttl, session));
        caller.stage = Stage::WaitingBroker;
        // A stored wish that outlived its actor is sent only now.
        caller.ended = false;
        let stale = |p: &Parcel| matches!(p, Parcel::ToTwin(Input::Written { op: of } | Input::NotWritten { op: of }) if of == op);
        self.parcels.retain(|_, parcel| !stale(parcel));
    }

    /// A held wish is sent again under an id of its own: nobody waits for it.
    fn nobody(&mut self, op: &OpId) {
        let (made, _) = self.caller(None, 100_000_000);
        self.order.pop();
        let caller = self.callers.remove(&made).expect("just made");
        self.outcomes.insert("pursued");
        self.callers.insert(op.clone(), Caller { gone: true, ..caller });
    }

    fn send(&mut self, command: Command) {
        if let Command::Welcome { session } = &command {
            self.session = Some(session.clone());
        }
        if let Command::Run { op, ttl, .. } = &command {
            self.notice_sent(op, *ttl);
        }
        if let Command::Set { op, property, .. } = &command
            && !self.callers.contains_key(op)
        {
            self.nobody(op);
            self.callers.get_mut(op).expect("just made").other = *property == "second".into();
        }
        let op = if let Command::Run { op, .. } = &command {
            Some(op.clone())
        } else if let Command::Set { op, ttl, value, .. } = &command {
            self.notice_sent(op, *ttl);
            self.callers.get_mut(op).expect("a caller").value = Some(value.clone());
            Some(op.clone())
        } else {
            None
        };
        let way = self.hub_connection.zip(self.session.clone()).filter(|_| !self.bus_down);
        let Some((connection, session)) = way else {
            if let Some(op) = op {
                let at = self.now + self.below(10);
                self.put(at, Parcel::ToTwin(Input::NotWritten { op }));
            }
            return;
        };
        self.last_down = self.last_down.max(self.now + 1 + self.below(20));
        let parcel = Parcel::ToBoard { connection, sent_at: self.now, session, command };
        if let Some(op) = op {
            // The notice of the writing has its own way; seldom it is lost.
            if !self.unlucky() {
                let at = self.now + self.below(30);
                self.put(at, Parcel::ToTwin(Input::Written { op }));
            }
        }
        if self.unlucky() {
            match self.below(3) {
                0 => return,
                1 => {
                    // Doubled soon: a ring of 8 operations knows a command again only while fewer than 8 followed it.
                    let at = self.now + 25 + self.below(400);
                    self.put(at, parcel.clone());
                }
                _ => self.last_down += self.below(3_000),
            }
        }
        self.put(self.last_down, parcel);
    }
}

/// The callers of a history: a few, so that they meet.
pub(crate) fn who_is(number: usize) -> CallerId {
    CallerId::new(["ann", "bob", "eve"][number % 3])
}

fn number(boot: &str) -> u32 {
    boot.trim_start_matches("boot").parse().expect("a boot of the model")
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
