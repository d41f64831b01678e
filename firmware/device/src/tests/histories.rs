//! Random histories: a hub that sends, withdraws, repeats and loses its connection, a board that is slow, stuck and reboots,
//! and the invariants of semantics 9 that a device alone can keep, looked at after each step.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Args, PropertySpec},
    hub::{Command, Event, decode_event, encode},
    words::{EvidenceWord, KindWord, OnWithdraw, ReasonWord, ReportResult},
};

use super::rig::Memory;
use crate::{
    Board, Identity, Machine, Part, Start,
    store::{Fate, Store},
};

/// How many histories, of how many steps each.
const HISTORIES: u64 = 300;
const STEPS: u32 = 80;

/// The first two exclude each other, the last one stops when it is withdrawn.
const EXCLUSIVE: &[&[&str]] = &[&["a", "b"]];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A small generator (splitmix64), so that a history is known by its number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What is driven carries the number of its operation as its value, so that each movement names the one that it is of.
struct Bench {
    now_ms: u64,
    at: [i32; 3],
    going: [Option<(i32, u64)>; 3],
    takes_ms: u64,
    stuck: bool,
    ready: bool,
    drives: Vec<i32>,
    runs: Vec<String>,
    memory: Memory,
    specs: [PropertySpec<'static>; 3],
    actions: [ActionSpec<'static>; 1],
}

impl Board for Bench {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        let Scalar::Integer(to) = value else { panic!("{value:?}") };
        self.drives.push(*to);
        self.going[property] = (!self.stuck).then_some((*to, self.now_ms + self.takes_ms));
        let excluded = self.going[0].is_some() && self.going[1].is_some();
        assert!(!excluded, "s4_5: of a group one moves at a time");
        Ok(())
    }

    fn read(&mut self, property: usize) -> Option<Scalar> {
        if let Some((to, _)) = self.going[property].take_if(|(_, at_ms)| self.now_ms >= *at_ms) {
            self.at[property] = to;
        }
        Some(Scalar::Integer(self.at[property]))
    }

    fn settle_ms(&self, _property: usize) -> u32 {
        400
    }

    fn make_safe(&mut self) {
        self.going = [None; 3];
    }

    fn actions(&self) -> &[ActionSpec<'_>] {
        &self.actions
    }

    fn exclusive(&self) -> &[&[&str]] {
        EXCLUSIVE
    }

    fn stop(&mut self, property: usize) {
        self.going[property] = None;
    }

    fn ready(&mut self, _part: Part) -> bool {
        self.ready
    }

    fn run(&mut self, _action: usize, args: Args<'_>) -> Result<(), ReasonWord> {
        let kept = self.memory.kept.clone().map(|(op, fate)| (args.as_str().contains(&op), fate));
        assert_eq!(kept, Some((true, Fate::Begun)), "the intent is kept before driving");
        self.runs.push(args.as_str().to_owned());
        Ok(())
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut self.memory)
    }
}

/// One operation, as the hub knows it.
#[derive(Clone)]
struct Sent {
    number: i32,
    command: Command,
    withdrawn: bool,
}

/// Everything of one history. The hub's clock is the time of the history plus something.
struct History {
    random: Random,
    bench: Bench,
    machine: Machine<'static>,
    now_ms: u64,
    booted_ms: u64,
    session: u32,
    /// On its way, in order: when it arrives, when it was sent, what it is.
    wire: VecDeque<(u64, u64, Command)>,
    least_transit_ms: u64,
    sent: Vec<Sent>,
    /// When each operation was sent last, with its limit.
    limits: BTreeMap<i32, (u64, u64)>,
    /// Operations whose withdrawal has arrived in this run.
    withdrawn: BTreeSet<i32>,
    completed: BTreeSet<Arc<str>>,
    /// How far each operation was said to be in this session.
    said: BTreeMap<Arc<str>, ReportResult>,
    driven: BTreeSet<i32>,
    seq: u32,
}

const OFFSET_MS: u64 = 1_000_000;

fn op(number: i32) -> String {
    format!("op{number}")
}

impl History {
    fn new(seed: u64) -> Self {
        let spec = |name, on_withdraw| PropertySpec {
            on_withdraw,
            ..PropertySpec::new(name, KindWord::Integer, EvidenceWord::Sensor)
        };
        let mut bench = Bench {
            now_ms: 0,
            at: [0; 3],
            going: [None; 3],
            takes_ms: 0,
            stuck: false,
            ready: true,
            drives: Vec::new(),
            runs: Vec::new(),
            memory: Memory::default(),
            specs: [spec("a", None), spec("b", None), spec("c", Some(OnWithdraw::Stop))],
            actions: [ActionSpec::new("pulse", false)],
        };
        let machine = machine(&mut bench);
        let mut history = Self {
            random: Random(seed),
            bench,
            machine,
            now_ms: 0,
            booted_ms: 0,
            session: 0,
            wire: VecDeque::new(),
            least_transit_ms: u64::MAX,
            sent: Vec::new(),
            limits: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            completed: BTreeSet::new(),
            said: BTreeMap::new(),
            driven: BTreeSet::new(),
            seq: 0,
        };
        history.connect();
        history
    }

    fn device_ms(&self) -> u64 {
        self.now_ms - self.booted_ms
    }

    fn head(&self) -> (String, u64) {
        (format!("s{}", self.session), self.now_ms + OFFSET_MS)
    }

    /// Messages overtake each other on no connection.
    fn send(&mut self, command: Command) {
        let arrives_ms = self.now_ms + self.random.below(400);
        let before_ms = self.wire.back().map_or(0, |(at_ms, ..)| *at_ms);
        self.wire.push_back((arrives_ms.max(before_ms), self.now_ms, command));
    }

    fn connect(&mut self) {
        self.wire.clear();
        self.said.clear();
        self.session += 1;
        self.least_transit_ms = u64::MAX;
        let now_ms = self.device_ms();
        self.machine.connected(now_ms, &mut self.bench);
        let (session, hub_ms) = self.head();
        let (hub, warnings) = ("hub".to_owned(), Vec::new());
        self.send(Command::Welcome { session, hub, epoch: 1, hub_ms, heartbeat_ms: 60_000, warnings });
    }

    fn reboot(&mut self) {
        self.booted_ms = self.now_ms;
        self.bench.now_ms = 0;
        self.machine = machine(&mut self.bench);
        self.seq = 0;
        (self.bench.drives, self.driven) = (Vec::new(), BTreeSet::new());
        self.withdrawn.clear();
        self.connect();
    }

    fn set(&mut self) {
        let number = i32::try_from(self.sent.len()).unwrap() + 1;
        let (session, hub_ms) = self.head();
        let ttl_ms = u32::try_from(100 + self.random.below(1_500)).unwrap();
        let command = if self.random.one_in(5) {
            let args = vec![("op".to_owned(), Scalar::text(&op(number)).unwrap())];
            Command::Run { session, hub_ms, op: op(number), action: "pulse".to_owned(), args, ttl_ms }
        } else {
            let property = NAMES[usize::try_from(self.random.below(3)).unwrap()].to_owned();
            Command::Set { session, hub_ms, op: op(number), property, value: Scalar::Integer(number), ttl_ms }
        };
        self.limits.insert(number, (self.now_ms, ttl_ms.into()));
        self.sent.push(Sent { number, command: command.clone(), withdrawn: false });
        self.send(command);
    }

    /// One of the last three again, as the hub does after a new session.
    fn repeat(&mut self) {
        let at = self.sent.len().saturating_sub(1 + usize::try_from(self.random.below(3)).unwrap());
        let (now_ms, head) = (self.now_ms, self.head());
        let Some(sent) = self.sent.get_mut(at).filter(|sent| !sent.withdrawn) else { return };
        let (Command::Set { session, hub_ms, ttl_ms, .. } | Command::Run { session, hub_ms, ttl_ms, .. }) =
            &mut sent.command
        else {
            return;
        };
        (*session, *hub_ms) = head;
        self.limits.insert(sent.number, (now_ms, (*ttl_ms).into()));
        let command = sent.command.clone();
        self.send(command);
    }

    fn withdraw(&mut self) {
        let (session, hub_ms) = self.head();
        let Some(sent) = self.sent.last_mut() else { return };
        sent.withdrawn = true;
        let op = op(sent.number);
        self.send(Command::Withdraw { session, hub_ms, op });
    }

    /// Lets time pass in steps of the core's, delivering what arrives.
    fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        loop {
            self.deliver();
            let now_ms = self.device_ms();
            self.bench.now_ms = now_ms;
            self.machine.step(now_ms, &mut self.bench);
            self.look_at_drives();
            self.look_at_events();
            if self.now_ms >= until_ms {
                return;
            }
            self.now_ms = until_ms.min(self.now_ms + 7);
        }
    }

    fn deliver(&mut self) {
        while let Some((_, sent_ms, command)) = self.wire.pop_front_if(|(at_ms, ..)| *at_ms <= self.now_ms) {
            self.least_transit_ms = self.least_transit_ms.min(self.now_ms - sent_ms);
            let now_ms = self.device_ms();
            self.bench.now_ms = now_ms;
            self.machine.handle(&encode(&command), false, now_ms, &mut self.bench);
            if let Command::Withdraw { op, .. } = command {
                let number: i32 = op.trim_start_matches("op").parse().unwrap();
                if !self.driven.contains(&number) {
                    self.withdrawn.insert(number);
                }
            }
        }
    }

    fn look_at_drives(&mut self) {
        for number in core::mem::take(&mut self.bench.drives) {
            assert!(self.driven.insert(number), "no_op_is_carried_out_twice: {number}");
            let (sent_ms, ttl_ms) = self.limits[&number];
            let late = self.now_ms - sent_ms > ttl_ms + self.least_transit_ms;
            assert!(!late, "no_drive_begins_after_act_by: {number}");
            assert!(!self.withdrawn.contains(&number), "{number} was withdrawn before it began");
        }
        let runs: BTreeSet<&String> = self.bench.runs.iter().collect();
        assert_eq!(runs.len(), self.bench.runs.len(), "non_repeatable_action_runs_at_most_once");
    }

    fn look_at_events(&mut self) {
        while let Some(event) = self.machine.outgoing() {
            let incoming = decode_event(event).unwrap();
            self.machine.sent();
            assert_eq!(incoming.unknown_words, 0);
            assert!(incoming.seq > self.seq, "seq grows");
            self.seq = incoming.seq;
            // Now and then an acknowledgement is lost with its connection.
            if !self.random.one_in(4) {
                self.machine.acknowledged(incoming.seq);
            }
            let Event::ActionReport(report) = incoming.event else { continue };
            if report.result == ReportResult::Completed && *report.action == *"set" && !report.dup {
                let number: i32 = report.op.trim_start_matches("op").parse().unwrap();
                let first = self.completed.insert(report.op.clone());
                let at = report.status.first().map(|(_, value)| value.clone());
                assert!(!first || at == Some(Scalar::Integer(number)), "no_phantom_success: {report:?}");
            }
            self.said.insert(report.op, report.result);
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            match self.random.below(16) {
                0..=5 => self.set(),
                6 => self.repeat(),
                7..=8 => self.withdraw(),
                9 if self.random.one_in(3) => self.connect(),
                10 if self.random.one_in(5) => self.reboot(),
                11 => self.bench.stuck = self.random.one_in(3),
                12 => self.bench.ready = !self.random.one_in(3),
                13 => self.bench.takes_ms = self.random.below(350),
                _ => {}
            }
            let ms = self.random.below(300);
            self.pass(ms);
        }
        // In the end everything has an end, whatever happened.
        (self.bench.ready, self.bench.stuck) = (true, false);
        self.pass(5_000);
        for (op, result) in &self.said {
            let open = matches!(result, ReportResult::Received | ReportResult::Executing | ReportResult::Working);
            assert!(!open, "{op} never ended: {result}");
        }
    }
}

fn machine(bench: &mut Bench) -> Machine<'static> {
    let identity = Identity { device: "bench", model: "bench", fw: "1" };
    Machine::new(identity, "b00t", Start::Unclean, bench).unwrap()
}

#[test]
fn random_histories_keep_what_a_device_promises() {
    let (mut driven, mut completed, mut runs) = (0, 0, 0);
    for seed in 0..HISTORIES {
        let mut history = History::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| history.run()));
        assert!(outcome.is_ok(), "history {seed}");
        driven += history.driven.len();
        completed += history.completed.len();
        runs += history.bench.runs.len();
    }
    // That the invariants saw something.
    assert!(driven > 1_000 && completed > 1_000 && runs > 500, "{driven} {completed} {runs}");
}
