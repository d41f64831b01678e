//! The device core itself (`firmware/device`) with a body whose mechanics can fail: commands and reports are the real bytes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use truetwin_device::{
    Board, Identity, Machine, Part, Start,
    machine::Heard,
    store::{Fate, Op, Store, StoreFailed},
};
use truetwin_proof::{
    dialect::native,
    property::Evidence,
    twin::{
        input::{ActionResult, Body as Said, Command},
        words::OpId,
    },
};
use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Args, PropertySpec},
    words::{CauseWord, ClassWord, EvidenceWord, KindWord, ReasonWord, RoleWord},
};

use crate::{
    fault::Fault,
    log::{Drive, Event, Log, Timer, Truth, boot_token, number},
};

/// How often the core asks its body whether something was noticed, milliseconds.
const WATCH_MS: u32 = 200;

/// What the description says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) feedback: Evidence,
    pub(crate) expected_ms: u32,
    pub(crate) stable_ms: u32,
    pub(crate) min_interval_ms: u32,
    pub(crate) held: bool,
}

static ACTIONS: [ActionSpec<'static>; 1] = [ActionSpec { expected_ms: Some(300), ..ActionSpec::new("press", false) }];

/// Coil and contact, and what is wrong with them.
#[derive(Clone, Debug)]
struct Body {
    specs: [PropertySpec<'static>; 1],
    now: u64,
    drive_ms: u64,
    level: bool,
    goal: Option<(bool, u64)>,
    faults: Vec<Fault>,
    /// Since when a command has waited to begin.
    asked_at: Option<u64>,
    began: u32,
    pressed: u32,
    reverts: Vec<u64>,
    /// Nobody commanded where it is.
    alone: bool,
    noticed: Option<CauseWord>,
    fell: bool,
    /// Whether it can notice anything by itself.
    watched: bool,
    kept: Option<(Op, Fate)>,
}

impl Body {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Lets what moves come to where it is at `now`.
    fn advance(&mut self, now: u64) {
        self.now = now;
        if let Some((value, _)) = self.goal.take_if(|(_, at)| *at <= now) {
            (self.level, self.alone) = (value, false);
            for (fault, after) in [(Fault::RevertsSoon, 100), (Fault::RevertsLate, 3_000)] {
                if self.has(fault) {
                    self.reverts.push(now + after);
                }
            }
        }
        if self.reverts.iter().any(|at| *at <= now) {
            self.reverts.retain(|at| *at > now);
            if self.level {
                (self.level, self.alone, self.noticed) = (false, true, Some(CauseWord::Unknown));
            }
        }
    }

    fn slow(&self) -> u64 {
        if self.has(Fault::Slow) { 4_000 } else { 0 }
    }
}

impl Board for Body {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, _: usize, value: &Scalar) -> Result<(), ReasonWord> {
        (self.began, self.asked_at) = (self.began + 1, None);
        self.fell = self.has(Fault::BrownOut);
        if !self.has(Fault::Stuck) {
            self.goal = Some((*value == Scalar::Bool(true), self.now + self.drive_ms + self.slow()));
        }
        Ok(())
    }

    fn read(&mut self, _: usize) -> Option<Scalar> {
        Some(Scalar::Bool(self.level))
    }

    fn settle_ms(&self, _: usize) -> u32 {
        u32::try_from(self.drive_ms + 500).expect("a short time")
    }

    fn make_safe(&mut self) {
        (self.level, self.alone, self.goal) = (false, false, None);
    }

    fn actions(&self) -> &[ActionSpec<'_>] {
        &ACTIONS
    }

    fn at_rest(&mut self, _: usize) -> bool {
        self.goal.is_none()
    }

    fn run(&mut self, _: usize, _: Args<'_>) -> Result<(), ReasonWord> {
        (self.pressed, self.asked_at) = (self.pressed + 1, None);
        Ok(())
    }

    fn accepts(&mut self, _: Part) -> Result<(), ReasonWord> {
        if self.has(Fault::Busy) { Err(ReasonWord::Busy) } else { Ok(()) }
    }

    fn ready(&mut self, _: Part) -> bool {
        let waits = if self.has(Fault::StartsLate) { 2_500 } else { 0 };
        let since = *self.asked_at.get_or_insert(self.now);
        !self.has(Fault::NeverStarts) && self.now >= since + waits
    }

    fn watch_ms(&self) -> Option<u32> {
        self.watched.then_some(WATCH_MS)
    }

    fn noticed(&mut self) -> Option<CauseWord> {
        self.noticed.take()
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(self)
    }
}

impl Store for Body {
    fn kept(&mut self) -> Result<Option<(Op, Fate)>, StoreFailed> {
        Ok(self.kept.clone())
    }

    fn keep(&mut self, op: &str, fate: Fate) -> Result<(), StoreFailed> {
        self.kept = Some((op.parse().map_err(|_| StoreFailed)?, fate));
        Ok(())
    }
}

const WHO: Identity<'static> = Identity { device: "lamp", model: "model", fw: "1" };

#[derive(Clone)]
pub(crate) struct Core {
    machine: Machine<'static>,
    body: Body,
    /// The hub as it says who it is; its epoch grows with each start.
    hub: native::Identity,
    /// Commands that a frozen device has not read.
    buffer: Vec<(u64, Vec<u8>, Option<OpId>)>,
    skew: Option<u64>,
    finished: Option<OpId>,
    armed: Option<u64>,
    frozen: bool,
    /// Its connection was made while it was frozen.
    connecting: bool,
    pub(crate) log: Log,
}

impl Core {
    pub(crate) fn new(spec: Spec, start: std::time::Instant) -> Self {
        let evidence = if spec.feedback >= Evidence::Pin { EvidenceWord::Pin } else { EvidenceWord::Firmware };
        let specs = [PropertySpec {
            role: Some(RoleWord::Light),
            class: spec.held.then_some(ClassWord::Held),
            expected_ms: Some(spec.expected_ms),
            stable_ms: Some(spec.stable_ms),
            min_interval_ms: Some(spec.min_interval_ms),
            ..PropertySpec::new("relay", KindWord::Bool, evidence)
        }];
        let mut body = Body {
            specs,
            now: 0,
            drive_ms: (u64::from(spec.expected_ms) * 3 / 4).max(1),
            level: false,
            goal: None,
            faults: Vec::new(),
            asked_at: None,
            began: 0,
            pressed: 0,
            reverts: Vec::new(),
            alone: false,
            noticed: None,
            fell: false,
            watched: true,
            kept: None,
        };
        let machine =
            Machine::new(WHO, &boot_token(1), Start::Unclean, &mut body).expect("a board that can be described");
        let hub = native::Identity { hub: "hub".into(), epoch: 1, heartbeat: Duration::from_secs(10), started: start };
        let log = Log::default();
        Self {
            machine,
            body,
            hub,
            buffer: Vec::new(),
            skew: None,
            finished: None,
            armed: None,
            frozen: false,
            connecting: false,
            log,
        }
    }

    /// The hub starts again.
    pub(crate) fn next_epoch(&mut self) {
        self.hub.epoch += 1;
    }

    pub(crate) fn switch(&mut self, now: u64, fault: Fault) {
        match self.body.faults.iter().position(|f| *f == fault) {
            Some(at) => {
                self.body.faults.remove(at);
            }
            None => self.body.faults.push(fault),
        }
        self.thaw(now);
    }

    pub(crate) fn repair(&mut self, now: u64) {
        self.body.faults.clear();
        self.thaw(now);
    }

    fn thaw(&mut self, now: u64) {
        let was = std::mem::replace(&mut self.frozen, self.body.has(Fault::Frozen));
        if was && !self.frozen {
            self.body.advance(now);
            if std::mem::take(&mut self.connecting) {
                self.connect(now);
            }
            for (sent_at, bytes, op) in std::mem::take(&mut self.buffer) {
                self.hear(now, sent_at, &bytes, op);
            }
            self.step(now);
        }
    }

    pub(crate) fn connect(&mut self, now: u64) {
        if self.frozen {
            self.connecting = true;
            return;
        }
        self.body.advance(now);
        self.machine.step(now, &mut self.body);
        self.skew = None;
        self.buffer.clear();
        self.machine.connected(now, &mut self.body);
        self.carry(now);
    }

    pub(crate) fn disconnected(&mut self, now: u64) {
        self.body.advance(now);
        self.buffer.clear();
        self.connecting = false;
        self.machine.disconnected(now);
    }

    pub(crate) fn reboot(&mut self, now: u64) {
        self.log.boot += 1;
        self.body.advance(now);
        (self.body.level, self.body.goal, self.body.asked_at, self.body.noticed) = (false, None, None, None);
        self.body.alone = false;
        self.body.reverts.clear();
        let token = boot_token(self.log.boot);
        self.machine = Machine::new(WHO, &token, Start::Unclean, &mut self.body).expect("as before");
        (self.skew, self.finished, self.armed) = (None, None, None);
        self.buffer.clear();
        self.log.relay = false;
        self.log.timers.clear();
    }

    pub(crate) fn receive(&mut self, now: u64, sent_at: u64, session: &Arc<str>, command: &Command) {
        let at = self.hub.started + Duration::from_millis(sent_at);
        let bytes = native::encode(&self.hub, session, at, command).to_vec();
        let op = match command {
            Command::Set { op, .. } | Command::Run { op, .. } => Some(op.clone()),
            Command::Welcome { .. } | Command::GetState { .. } | Command::Withdraw { .. } => None,
        };
        if self.frozen {
            self.buffer.push((sent_at, bytes, op));
            return;
        }
        self.body.advance(now);
        self.hear(now, sent_at, &bytes, op);
        self.step(now);
    }

    fn hear(&mut self, now: u64, sent_at: u64, bytes: &[u8], op: Option<OpId>) {
        let heard = self.machine.handle(bytes, false, now, &mut self.body);
        if matches!(heard, Heard::Welcome | Heard::Command) {
            let transit = now - sent_at;
            self.skew = match heard {
                Heard::Welcome => Some(transit),
                _ => self.skew.map(|skew| skew.min(transit)),
            };
        }
        if let (Heard::Command, Some(op)) = (heard, op) {
            self.log.received.entry(op).or_insert(now);
        }
        self.carry(now);
    }

    /// The timer, or a reason to look.
    pub(crate) fn fire(&mut self, now: u64) {
        if self.armed.is_some_and(|at| at <= now) {
            self.armed = None;
        }
        if !self.frozen {
            self.body.advance(now);
            self.step(now);
        }
    }

    fn step(&mut self, now: u64) {
        let (began, pressed) = (self.body.began, self.body.pressed);
        self.machine.step(now, &mut self.body);
        let (began, pressed) = (self.body.began - began, self.body.pressed - pressed);
        let boot = self.log.boot;
        let drives = self.log.drives.iter().filter(|drive| drive.boot == boot).map(|drive| drive.op.clone());
        let runs = self.log.runs.iter().filter(|(_, of)| *of == boot).map(|(op, _)| op.clone());
        let known: BTreeSet<OpId> = drives.chain(runs).collect();
        let reports = self.carry(now);
        // A drive is told by the operation that says `executing` in the same step.
        let new = reports.into_iter().filter(|(op, result)| *result == ActionResult::Executing && !known.contains(op));
        let (mut drives, mut runs) = (0, 0);
        for (op, _) in new {
            if self.body.kept.as_ref().is_some_and(|(kept, _)| kept.as_str() == op.as_str()) {
                runs += 1;
                self.log.begun.insert(op.clone());
                self.log.runs.push((op, self.log.boot));
            } else {
                drives += 1;
                self.log.drove(Drive { op, at: now, boot: self.log.boot, skew: self.skew.unwrap_or_default() });
            }
        }
        assert_eq!((drives, runs), (began, pressed), "each movement is told by an operation");
        if std::mem::take(&mut self.body.fell) {
            self.log.fell = true;
        }
    }

    /// Takes what the core has to say, and when it wants to be asked next.
    fn carry(&mut self, now: u64) -> Vec<(OpId, ActionResult)> {
        let mut reports = Vec::new();
        self.log.relay = self.body.level;
        while let Some(bytes) = self.machine.outgoing() {
            let (heard, _) = native::decode(bytes, false).expect("the hub reads what the core writes");
            let seq = self.machine.outgoing_seq().expect("one is there");
            self.machine.sent();
            self.machine.acknowledged(seq);
            let (mut about, carried, boot);
            match heard {
                native::Heard::Hello(hello) => {
                    (about, carried, boot) = (None, !hello.status.is_empty(), number(&hello.boot));
                    self.note_seen(&hello.seen);
                    self.log.out.push(Event::Hello(Box::new(hello)));
                }
                native::Heard::Report(report) => {
                    (about, carried, boot) = (None, !report.status.is_empty(), number(&report.boot));
                    if let Said::Action { op, result, .. } = &report.body {
                        if matches!(result, ActionResult::Completed | ActionResult::Failed | ActionResult::Rejected) {
                            self.log.results.insert(op.clone(), *result);
                        }
                        if *result == ActionResult::Completed {
                            about = Some(op.clone());
                            let before = self.log.reports.range((boot, 0)..);
                            if carried && !before.into_iter().any(|(_, truth)| truth.about.as_ref() == Some(op)) {
                                self.finished = Some(op.clone());
                            }
                        }
                        reports.push((op.clone(), *result));
                    }
                    if let Said::State { seen, .. } = &report.body {
                        self.note_seen(seen);
                    }
                    self.log.out.push(Event::Report(report));
                }
            }
            let Body { level, alone, .. } = self.body;
            let truth = Truth { relay: level, finished: self.finished.clone(), about, carried, alone };
            self.log.reports.insert((boot, seq), truth);
        }
        let next = self.machine.deadline(&self.body);
        let moves = self.body.goal.map(|(_, at)| at).into_iter().chain(self.body.reverts.iter().copied()).min();
        if let Some(at) = next.into_iter().chain(moves).min().map(|at| at.max(now + 1))
            && self.armed.is_none_or(|armed| at < armed)
        {
            self.armed = Some(at);
            self.log.timers.push((at, Timer::Step));
        }
        reports
    }

    /// What it finished while there was nobody to be told it says later.
    fn note_seen(&mut self, seen: &[(truetwin_proof::property::PropertyName, OpId)]) {
        if let Some((_, op)) = seen.first() {
            self.finished = Some(op.clone());
            self.log.results.insert(op.clone(), ActionResult::Completed);
        }
    }

    /// Notices nothing by itself, so that nothing goes off but what a command brings about.
    pub(crate) fn unwatched(mut self) -> Self {
        self.body.watched = false;
        self
    }

    /// Everything that its future depends on, as text.
    pub(crate) fn key(&self) -> String {
        format!("{:?} {:?} {:?} {:?} {:?}", self.machine, self.body, self.skew, self.finished, self.log.drives.len())
    }

    /// When it wants to be asked next.
    pub(crate) fn wakes_at(&self) -> Option<u64> {
        self.armed
    }

    /// Somebody touches the switch at the wall.
    pub(crate) fn touch(&mut self, now: u64, told: bool) {
        self.body.advance(now);
        (self.body.level, self.body.goal, self.body.alone) = (!self.body.level, None, true);
        self.log.relay = self.body.level;
        if told {
            self.body.noticed = Some(CauseWord::Local);
        }
    }

    /// What the load does, as a meter beside it sees.
    pub(crate) fn load(&self) -> bool {
        self.log.relay && !self.body.has(Fault::DeadLoad)
    }
}
