//! Small scope, exhaustively: two callers, one device, one reboot, one crash of its actor, at most twelve messages, each of
//! which arrives or is lost, and time that passes to the next thing due: every order of these, over the pure twin and the
//! device core together. What was reached before, with as much left to come, is not gone through again.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use truetwin_proof::{
    property::{DeviceId, Evidence, Value},
    twin::{
        Twin,
        input::{ActionResult, Command, Effect, Input},
        settings::Settings,
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Reply},
    },
};

use crate::{
    core::{Core, Spec},
    log::Event,
};

/// How much may happen.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Left {
    pub(crate) messages: u8,
    pub(crate) losses: u8,
    pub(crate) reboots: u8,
    pub(crate) crashes: u8,
    /// How often time may pass to the next thing due.
    pub(crate) waits: u8,
    /// Whether each of the callers has still to ask.
    pub(crate) asks: [bool; 2],
}

/// One state of hub, way and device.
#[derive(Clone)]
struct State {
    twin: Twin,
    core: Core,
    settings: Settings,
    start: Instant,
    now: u64,
    left: Left,
    down: VecDeque<(u64, Arc<str>, Command)>,
    up: VecDeque<Event>,
    session: Option<Arc<str>>,
    sessions: u64,
    replies: BTreeMap<OpId, Reply>,
    /// In which sessions each operation was sent.
    sent: BTreeMap<OpId, Vec<u64>>,
    /// The end of each command's time to begin.
    act_by: BTreeMap<OpId, u64>,
    /// What was in flight at the crash: never to be sent again.
    crashed: Vec<OpId>,
}

/// What can happen next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Ask(usize),
    Down { lost: bool },
    Up { lost: bool },
    Wait,
    Reboot,
    Crash,
}

/// What was found.
#[derive(Default, Debug)]
pub(crate) struct Found {
    pub(crate) states: u64,
    pub(crate) moves: u64,
    /// The choices that led to what broke, and what.
    pub(crate) broken: Option<String>,
}

/// Two callers who want the same, or the opposite.
const WISHES: [[bool; 2]; 2] = [[true, true], [true, false]];

/// Goes through everything, until `most` states were seen.
pub(crate) fn explore(left: Left, most: u64) -> Found {
    let mut found = Found::default();
    for wishes in WISHES {
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        State::new(left).explore(wishes, &mut seen, &mut path, &mut found, most);
    }
    found
}

impl State {
    fn new(left: Left) -> Self {
        let start = Instant::now() + Duration::from_secs(3_600);
        let settings = Settings::new(start - Duration::from_secs(3_600));
        let spec = Spec { feedback: Evidence::Pin, expected_ms: 10, stable_ms: 0, min_interval_ms: 0, held: false };
        let mut state = Self {
            twin: Twin::new(DeviceId::new("lamp").expect("a device id"), settings.clone()),
            core: Core::new(spec, start).unwatched(),
            settings,
            start,
            now: 0,
            left,
            down: VecDeque::new(),
            up: VecDeque::new(),
            session: None,
            sessions: 0,
            replies: BTreeMap::new(),
            sent: BTreeMap::new(),
            act_by: BTreeMap::new(),
            crashed: Vec::new(),
        };
        state.connect();
        // The greeting is behind them.
        while !state.up.is_empty() || !state.down.is_empty() {
            state.carry_up(false);
            state.carry_down(false);
        }
        state.left = left;
        state
    }

    fn explore(self, wishes: [bool; 2], seen: &mut HashSet<u64>, path: &mut Vec<Choice>, found: &mut Found, most: u64) {
        if found.broken.is_some() || found.states >= most || !seen.insert(self.key()) {
            return;
        }
        found.states += 1;
        for choice in self.choices() {
            found.moves += 1;
            path.push(choice);
            let mut next = self.clone();
            let went = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| next.go(choice, wishes)));
            match went {
                Ok(()) => next.explore(wishes, seen, path, found, most),
                Err(panic) => {
                    let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                    found.broken = Some(format!("{wishes:?}: {path:?}: {said}"));
                }
            }
            path.pop();
        }
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!(
            "{:?}{}{:?}{:?}{:?}{:?}{:?}{:?}",
            self.twin,
            self.core.key(),
            self.down,
            self.up,
            self.session,
            self.sent,
            self.crashed,
            self.replies.keys()
        )
        .hash(&mut hasher);
        (self.now, self.left).hash(&mut hasher);
        hasher.finish()
    }

    fn choices(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        all.extend((0..2).filter(|caller| self.left.asks[*caller]).map(Choice::Ask));
        if self.left.messages > 0 {
            let losses = [false, true].into_iter().filter(|lost| !lost || self.left.losses > 0);
            for lost in losses {
                all.extend((!self.down.is_empty()).then_some(Choice::Down { lost }));
                all.extend((!self.up.is_empty()).then_some(Choice::Up { lost }));
            }
        }
        all.extend((self.left.waits > 0 && self.due().is_some()).then_some(Choice::Wait));
        all.extend((self.left.reboots > 0).then_some(Choice::Reboot));
        all.extend((self.left.crashes > 0).then_some(Choice::Crash));
        all
    }

    fn due(&self) -> Option<u64> {
        let ms = |at: Instant| u64::try_from(at.saturating_duration_since(self.start).as_micros().div_ceil(1_000)).ok();
        self.twin.deadline().and_then(ms).into_iter().chain(self.core.wakes_at()).min().map(|at| at.max(self.now))
    }

    fn time(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn go(&mut self, choice: Choice, wishes: [bool; 2]) {
        match choice {
            Choice::Ask(caller) => {
                self.left.asks[caller] = false;
                let op = OpId::new(["a", "b"][caller]);
                let wish = Wish::to("relay", Value::Bool(wishes[caller]));
                let (who, answer_by) = (CallerId::new(["ann", "bob"][caller]), self.time() + Duration::from_secs(8));
                self.feed(Input::Set { op, caller: who, wish, answer_by });
            }
            Choice::Down { lost } => self.carry_down(lost),
            Choice::Up { lost } => self.carry_up(lost),
            Choice::Wait => {
                self.left.waits -= 1;
                self.now = self.due().unwrap_or(self.now);
                if self.core.wakes_at().is_some_and(|at| at <= self.now) {
                    self.core.fire(self.now);
                    self.take();
                }
                self.feed(Input::Tick);
            }
            Choice::Reboot => {
                self.left.reboots -= 1;
                self.core.reboot(self.now);
                self.core.disconnected(self.now);
                self.down.clear();
                let connection = self.sessions;
                self.feed(Input::Disconnected { connection });
                self.connect();
            }
            Choice::Crash => {
                self.left.crashes -= 1;
                let memory = self.twin.memory(self.time());
                let open: Vec<OpId> = memory.in_flight.iter().map(|left| left.settled.op.clone()).collect();
                // The fleet tells those who wait that nobody knows.
                for op in open {
                    let quarantined = Reply::Refused(truetwin_proof::twin::words::Refusal::Quarantined);
                    self.replies.entry(op.clone()).or_insert(quarantined);
                    self.crashed.push(op);
                }
                self.twin = Twin::new(DeviceId::new("lamp").expect("a device id"), self.settings.clone());
                self.feed(Input::Restored(memory));
            }
        }
    }

    fn connect(&mut self) {
        self.up.clear();
        self.sessions += 1;
        self.session = None;
        let connection = self.sessions;
        self.feed(Input::Connected { connection });
        self.core.connect(self.now);
        self.take();
    }

    fn take(&mut self) {
        self.up.extend(std::mem::take(&mut self.core.log.out));
        self.core.log.timers.clear();
        let begun: Vec<OpId> = self.core.log.drives.iter().map(|drive| drive.op.clone()).collect();
        for drive in &self.core.log.drives {
            // But for what a device cannot tell from its clock's offset.
            assert!(drive.at <= self.act_by[&drive.op] + drive.skew, "{}: begun too late", drive.op);
            let runs = self.core.log.drives.iter().filter(|d| d.op == drive.op && d.boot == drive.boot).count();
            assert!(runs <= 1, "{}: driven twice", drive.op);
        }
        for op in begun {
            let refused = matches!(self.replies.get(&op), Some(Reply::Refused(_))) && !self.crashed.contains(&op);
            assert!(!refused, "{op}: refused, and driven");
        }
    }

    fn carry_down(&mut self, lost: bool) {
        let Some((sent_at, session, command)) = self.down.pop_front() else { return };
        self.left.messages = self.left.messages.saturating_sub(1);
        if lost {
            self.left.losses -= 1;
            return;
        }
        self.core.receive(self.now, sent_at, &session, &command);
        self.take();
    }

    fn carry_up(&mut self, lost: bool) {
        let Some(event) = self.up.pop_front() else { return };
        self.left.messages = self.left.messages.saturating_sub(1);
        if lost {
            self.left.losses -= 1;
            return;
        }
        match event {
            Event::Hello(hello) => {
                let session = format!("s{}", self.sessions).into();
                self.feed(Input::Greeted { session, hello: *hello });
            }
            Event::Report(report) => self.feed(Input::Heard(report)),
        }
    }

    fn feed(&mut self, input: Input) {
        let now = self.time();
        let restored = matches!(input, Input::Restored(_));
        self.twin.apply(now, input);
        let mut written = Vec::new();
        while let Some(effect) = self.twin.poll() {
            match effect {
                Effect::Send(command) => written.extend(self.send(command)),
                Effect::Reply { op, reply } => self.reply(op, reply),
                Effect::LateSuccess { op } => self.done(&op),
                _ => {}
            }
        }
        if restored {
            let sent = self.crashed.iter().filter(|op| self.sent.contains_key(*op) && self.session.is_some());
            for op in sent {
                let told = self.down.iter().any(|(_, _, c)| matches!(c, Command::Withdraw { op: of } if of == op));
                assert!(told, "{op}: in flight, and not withdrawn");
            }
        }
        for op in written {
            // The notice of the writing comes at once: lost, it changes nothing that others do not.
            self.feed(Input::Written { op });
        }
    }

    fn send(&mut self, command: Command) -> Option<OpId> {
        if let Command::Welcome { session } = &command {
            self.session = Some(session.clone());
        }
        let session = self.session.clone()?;
        let mut written = None;
        if let Command::Set { op, ttl, .. } = &command {
            assert!(!self.crashed.contains(op), "{op}: sent again after the crash");
            let sessions = self.sent.entry(op.clone()).or_default();
            assert!(!sessions.contains(&self.sessions), "{op}: sent twice in one session");
            sessions.push(self.sessions);
            let by = self.now + u64::try_from(ttl.as_millis()).expect("short") + 1;
            self.act_by.insert(op.clone(), by);
            written = Some(op.clone());
        }
        self.down.push_back((self.now, session, command));
        written
    }

    fn reply(&mut self, op: OpId, reply: Reply) {
        assert!(!self.replies.contains_key(&op), "{op}: told twice");
        match &reply {
            Reply::Settled(settled) => {
                let known = settled.joined.clone().unwrap_or_else(|| op.clone());
                match settled.outcome {
                    Outcome::Converged => self.done(&known),
                    Outcome::Rejected | Outcome::Cancelled => {
                        assert!(!self.core.log.begun.contains(&known), "{op}: {} and driven", settled.outcome);
                    }
                    Outcome::Failed => {
                        let result = self.core.log.results.get(&known);
                        assert_eq!(result, Some(&ActionResult::Failed), "{op}: said to have failed");
                    }
                    _ => {}
                }
            }
            Reply::Refused(_) => {
                assert!(!self.core.log.received.contains_key(&op), "{op}: refused, and the device has it")
            }
        }
        self.replies.insert(op, reply);
    }

    /// Said to be done: then it was completed.
    fn done(&self, op: &OpId) {
        assert_eq!(self.core.log.results.get(op), Some(&ActionResult::Completed), "{op}: said to be done");
    }
}
