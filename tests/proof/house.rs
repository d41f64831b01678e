//! A house in virtual time: one hub, a few devices, the way between them, the disk under the hub, and those who ask. One
//! thread, one seed; nothing here waits or looks at a clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use truetwin_proof::{
    policy::Restarts,
    property::{Action, Class, Description, DeviceId, Evidence, Kind, Predicate, Property, Role, Terms, Value, Verify},
    twin::{
        Twin,
        input::{Command, Effect, Input},
        ledger::Ledger,
        settings::Settings,
        wish::CallerId,
        words::OpId,
    },
};

use crate::{
    board::Board,
    core::Core,
    disk::Disk,
    fault::Fault,
    log::{Event, Timer},
    random::Random,
    tally::Tally,
    unit::{Call, Kinds, Thing, Unit},
};

/// How many devices there are at most, and how many callers.
pub(crate) const CALLERS: usize = 3;

/// What kind of house a seed makes.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) devices: Vec<Kinds>,
    pub(crate) hub_age_s: u64,
    /// What may go wrong.
    pub(crate) faults: Vec<Fault>,
    /// Of a thousand messages so many are lost, doubled or delayed.
    pub(crate) noise: u64,
    pub(crate) steps: u64,
}

/// What is on its way.
#[derive(Clone, Debug)]
pub(crate) enum Parcel {
    ToBoard {
        connection: u64,
        sent_at: u64,
        session: Arc<str>,
        command: Command,
    },
    /// What a device says, on a connection; it may outlive it.
    ToHub {
        connection: u64,
        event: Event,
    },
    /// For the twin, of this run of the hub.
    ToTwin {
        run: u64,
        input: Input,
    },
    /// What became of the writing of a command.
    Ticket {
        run: u64,
        ticket: u64,
        written: bool,
    },
    Board {
        boot: u32,
        timer: Timer,
    },
    Reconnect,
    /// The device notices that the hub has gone.
    Lost {
        connection: u64,
    },
    Heartbeat,
    /// The disk has written.
    Commit,
    /// The hub starts.
    Starts,
    /// The broker is back.
    BrokerBack,
    /// Something goes wrong now.
    Spring {
        fault: Fault,
    },
    /// Something works again.
    Mend {
        fault: Fault,
    },
}

/// One input and what came of it.
pub(crate) struct Moment {
    pub(crate) unit: usize,
    pub(crate) now: Instant,
    pub(crate) input: Input,
    pub(crate) effects: Vec<Effect>,
}

pub(crate) struct House {
    pub(crate) setting: Setting,
    pub(crate) random: Random,
    pub(crate) now: u64,
    pub(crate) start: Instant,
    pub(crate) settings: Settings,
    pub(crate) units: Vec<Unit>,
    pub(crate) calls: BTreeMap<OpId, Call>,
    /// Ids of the latest calls of each device, newest last.
    pub(crate) order: Vec<Vec<OpId>>,
    pub(crate) calls_ever: u64,
    pub(crate) parcels: BTreeMap<(u64, u64), (usize, Parcel)>,
    parcels_ever: u64,
    pub(crate) connections: u64,
    pub(crate) sessions: u64,
    pub(crate) tickets: u64,
    pub(crate) commits: u64,
    pub(crate) bus_down: bool,
    pub(crate) hub_up: bool,
    /// Grows with each start of the hub.
    pub(crate) run: u64,
    pub(crate) disk: Disk,
    /// Commits that the journal did not take, and whose they were.
    pub(crate) refused: Vec<(usize, u64)>,
    pub(crate) disk_slow: bool,
    pub(crate) noise: u64,
    pub(crate) tally: Tally,
    pub(crate) ticks: u64,
    /// What twins have withdrawn.
    pub(crate) withdrawn: BTreeSet<OpId>,
    /// The last moments, if somebody wants to read them.
    pub(crate) trace: Option<VecDeque<String>>,
    /// The same for `truetwin replay`, from the beginning.
    pub(crate) recording: Option<Vec<String>>,
}

impl House {
    pub(crate) fn new(seed: u64, setting: Setting) -> Self {
        let age = Duration::from_secs(setting.hub_age_s);
        let start = Instant::now() + age;
        let mut settings = Settings::new(start - age);
        settings.reconcile = Duration::from_secs(60);
        let mut house = Self {
            random: Random::new(seed),
            now: 0,
            start,
            units: Vec::new(),
            calls: BTreeMap::new(),
            order: Vec::new(),
            calls_ever: 0,
            parcels: BTreeMap::new(),
            parcels_ever: 0,
            connections: 0,
            sessions: 0,
            tickets: 0,
            commits: 0,
            bus_down: false,
            hub_up: true,
            run: 1,
            disk: Disk::default(),
            refused: Vec::new(),
            disk_slow: false,
            noise: setting.noise,
            tally: Tally::default(),
            ticks: 0,
            withdrawn: BTreeSet::new(),
            trace: None,
            recording: None,
            settings,
            setting,
        };
        for (at, kinds) in house.setting.devices.clone().into_iter().enumerate() {
            let unit = house.unit(at, kinds);
            house.units.push(unit);
            house.order.push(Vec::new());
            house.put(kinds.absent_ms, at, Parcel::Reconnect);
            if !kinds.core {
                house.put(10_000, at, Parcel::Heartbeat);
            }
        }
        house
    }

    fn unit(&self, at: usize, kinds: Kinds) -> Unit {
        let id = DeviceId::new(&format!("lamp{at}")).expect("a device id");
        let spec = kinds.spec;
        let drive_ms = (u64::from(spec.expected_ms) * 3 / 4).max(1);
        let thing = match kinds.core {
            true => Thing::Core(Box::new(Core::new(spec, self.start))),
            false => Thing::Model(Box::new(Board::new("relay".into(), spec.feedback, drive_ms))),
        };
        Unit {
            twin: Twin::new(id.clone(), self.settings.clone()),
            id,
            kinds,
            quarantined: false,
            session: None,
            hub_connection: None,
            tickets: BTreeMap::new(),
            restarts: Restarts::default(),
            ledger: Ledger::default(),
            deferred: Vec::new(),
            answers: Vec::new(),
            crash: false,
            lag: 0,
            wake: u64::MAX,
            connection: None,
            last_down: 0,
            last_up: 0,
            thing,
            description: description(kinds),
            wrong: BTreeSet::new(),
            drives_seen: 0,
            hub_boot: None,
            last_word: None,
            heard_before: None,
            measured: None,
            claimed: None,
            active: Vec::new(),
            newly_ended: Vec::new(),
            held_facts: Vec::new(),
            held_op: None,
            held_promised: 0,
            ambush: None,
        }
    }

    pub(crate) fn time(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    pub(crate) fn put(&mut self, at: u64, unit: usize, parcel: Parcel) {
        self.parcels_ever += 1;
        self.parcels.insert((at, self.parcels_ever), (unit, parcel));
    }

    pub(crate) fn unlucky(&mut self) -> bool {
        self.noise > 0 && self.random.below(1_000) < self.noise
    }

    /// Lets time pass up to `until`: parcels arrive and timers go off in the order of their times.
    pub(crate) fn pass(&mut self, until: u64) {
        loop {
            let parcel = self.parcels.keys().next().map_or(u64::MAX, |(at, _)| *at);
            let waking = self.units.iter().enumerate().min_by_key(|(_, unit)| unit.wake);
            let (at, wake) = waking.map_or((0, u64::MAX), |(at, unit)| (at, unit.wake));
            let next = parcel.min(wake);
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if wake < parcel {
                self.ticks += 1;
                assert!(self.ticks < 300_000, "a twin wakes for nothing");
                self.wake(at);
            } else if let Some((_, (unit, parcel))) = self.parcels.pop_first() {
                self.arrive(unit, parcel);
            }
        }
        self.now = self.now.max(until);
    }

    pub(crate) fn ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_micros().div_ceil(1_000)).expect("a short history")
    }

    /// Who asks, by number: a few, so that they meet.
    pub(crate) fn who(number: usize) -> CallerId {
        CallerId::new(["ann", "bob", "eve"][number % CALLERS])
    }
}

/// What a model device says it has.
fn description(kinds: Kinds) -> Arc<Description> {
    let spec = kinds.spec;
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
        class: if spec.held { Class::Held } else { Class::Momentary },
        feedback: spec.feedback,
        expected_ms: spec.expected_ms,
        stable_ms: spec.stable_ms,
        min_interval_ms: spec.min_interval_ms,
        settable: true,
        repeatable: true,
        terms: Terms {
            verify: kinds.metered.then(|| Verify {
                device: DeviceId::new("meter").expect("a device id"),
                property: "power".into(),
                expect: [true, false].map(|on| (Some(Value::Bool(on)), Predicate::Equals(Value::Bool(on)))).into(),
                within_ms: 2_000,
                sensitive: false,
            }),
            ..Terms::default()
        },
    };
    let press = Action {
        name: "press".into(),
        role: Role::Other,
        feedback: Evidence::Firmware,
        expected_ms: 300,
        repeatable: false,
        confirmation: truetwin_proof::property::Confirmation::default(),
    };
    let level = if kinds.preempts { 3 } else { 2 };
    Arc::new(Description { properties: vec![property], actions: vec![press], level, ..Description::default() })
}
