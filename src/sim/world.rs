//! What is true, whatever the device says: the plant, the fault that bends it, and the record of what really moved.
//!
//! The firmware sees the plant only through [`super::body`], bent by the fault; the tests see it through
//! [`super::Handle::truth`], unbent.
#![expect(clippy::wildcard_enum_match_arm, reason = "a fault that is not named in a place bends nothing there")]

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, mpsc, watch};
use truetwin_device::store::Fate;
use truetwin_wire::words::CauseWord;

use super::{
    Control, Fault, Happened, Options, Truth,
    kind::{EXTRA, Kind},
    plant::{Gauge, Plant},
};

/// How late a slow thing begins, seconds: well within the hub's allowance of 1 s, well beyond what is expected.
pub(super) const SLOW_S: f64 = 0.7;

/// How late a thing begins that acts after every answer, seconds.
pub(super) const LATE_S: f64 = 5.0;

/// When a value goes away again after it was read as done, seconds: before the hub's read-back after `stable_ms` of 200, and
/// after every answer.
const SOON_S: f64 = 0.1;
const REVERTS_S: f64 = 3.0;

/// From a cause to the reboot that it brings, seconds: long enough for the reports of before to leave.
const CRASH_S: f64 = 0.05;

/// How long a task that starts late is held back, seconds: beyond the time limit of a relay's command.
const HELD_S: f64 = 3.0;

/// How long a held task may go unasked and still be the same one, seconds; the core asks a hundred times a second.
const ASKED_S: f64 = 0.5;

/// How often analogue measurements are told unasked at most, seconds.
const MEASURED_S: f64 = 1.0;

/// Most things that are about to happen; more than one for each axis and fault never are.
const EVENTS_MAX: usize = 64;

/// Something that will happen to the plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    /// An axis begins to move.
    Go(usize, f64),
    /// What was done goes away; whether the device notices.
    Back(usize, f64, bool),
    /// An action takes place.
    Act(usize),
    /// The supply breaks down.
    Reboot,
}

/// See the module.
pub(super) struct World {
    /// Held while the device has its turn, so that a fault changes between two turns and not within one.
    turn: Mutex<()>,
    inner: Mutex<Inner>,
    happened: mpsc::Sender<Happened>,
    pub(super) control: watch::Sender<Control>,
    /// Something was put into `events` or began to move.
    poked: Notify,
    begun: Instant,
}

/// What is behind the lock.
pub(super) struct Inner {
    pub(super) kind: Kind,
    pub(super) plant: Plant,
    pub(super) fault: Fault,
    /// A fault that happens once has happened.
    pub(super) spent: bool,
    pub(super) events: Vec<(f64, Event)>,
    /// What the next read-back of an axis pretends.
    pub(super) lies: Vec<Option<f64>>,
    /// Where an axis goes back to, once it has been read where it was driven to.
    pub(super) reverts: Vec<Option<f64>>,
    /// Nothing can be read: the board is about to crash.
    pub(super) dark: bool,
    /// It has crashed, and the next run has not begun.
    pub(super) crashed: bool,
    /// An action is at work.
    pub(super) acting: bool,
    /// How often each action really took place.
    pub(super) acts: [u64; 4],
    pub(super) held_s: Option<(f64, f64)>,
    pub(super) noticed: Option<CauseWord>,
    /// What was last told of each measurement, and when.
    pub(super) told: Vec<f64>,
    pub(super) told_s: f64,
    /// What survives a reboot.
    pub(super) kept: Option<(String, Fate)>,
    /// Reports are lost from now on (see [`Fault::NothingAfterDriving`]).
    pub(super) silenced: bool,
    pub(super) now_s: f64,
}

impl World {
    pub(super) fn new(options: &Options, happened: mpsc::Sender<Happened>) -> Arc<Self> {
        let plant = options.kind.plant(options.speed);
        let axes = plant.axes.len();
        let fault = options.fault;
        let inner = Inner {
            kind: options.kind,
            plant,
            fault,
            spent: false,
            events: Vec::new(),
            lies: vec![None; axes],
            reverts: vec![None; axes],
            dark: false,
            crashed: false,
            acting: false,
            acts: [0; 4],
            held_s: None,
            noticed: None,
            told: Vec::new(),
            told_s: 0.0,
            kept: None,
            silenced: false,
            now_s: 0.0,
        };
        let (control, _) = watch::channel(Control { fault, boots: 0, stop: false });
        let (turn, poked, begun) = (Mutex::new(()), Notify::new(), Instant::now());
        let world = Self { turn, inner: Mutex::new(inner), happened, control, poked, begun };
        world.bend(fault);
        Arc::new(world)
    }

    /// The right to act, or to change what acts.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, happened: Happened) {
        let _nobody_reads = self.happened.try_send(happened);
    }

    /// Puts another fault into force.
    pub(super) fn bend(&self, fault: Fault) {
        let mut inner = self.lock();
        let was_silent = matches!(inner.fault, Fault::NothingAfterDriving | Fault::NoReports) && inner.fault != fault;
        inner.fault = fault;
        (inner.spent, inner.silenced, inner.held_s) = (false, false, None);
        inner.lies.fill(None);
        inner.plant.dead_load = fault == Fault::NoLoad;
        if was_silent {
            inner.noticed = Some(CauseWord::Periodic);
        }
    }

    /// Everything as it is at this moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut inner);
        inner
    }

    /// Lets happen what is due, each thing at its own time.
    fn advance(&self, inner: &mut Inner) {
        let now_s = self.begun.elapsed().as_secs_f64();
        while let Some((at, due_s)) = inner.next_event().filter(|(_, due_s)| *due_s <= now_s) {
            let (_, event) = inner.events.remove(at);
            self.pass(inner, due_s);
            match event {
                Event::Go(axis, to) => self.go(inner, axis, to),
                Event::Back(axis, to, told) => {
                    self.go(inner, axis, to);
                    inner.noticed = told.then_some(CauseWord::Periodic).or(inner.noticed);
                }
                Event::Act(action) => self.act(inner, action),
                Event::Reboot => {
                    // What is left of this run must neither read nor begin anything any more.
                    (inner.dark, inner.crashed) = (true, true);
                    self.control.send_modify(|control| control.boots += 1);
                }
            }
        }
        self.pass(inner, now_s);
    }

    fn pass(&self, inner: &mut Inner, now_s: f64) {
        inner.now_s = now_s;
        for axis in inner.plant.advance(now_s) {
            if let Some(axis) = inner.plant.axes.get(axis) {
                self.tell(Happened::Stopped { part: axis.name.to_owned(), at: axis.at });
            }
        }
    }

    /// Really moves an axis.
    pub(super) fn go(&self, inner: &mut Inner, axis: usize, to: f64) {
        if inner.plant.go(axis, to) {
            let now_s = inner.now_s;
            if let Some(axis) = inner.plant.axes.get(axis) {
                let (part, to, moves) = (axis.name.to_owned(), axis.to, axis.moves);
                self.tell(Happened::Moved { part, to, moves, at_ms: whole_ms(now_s) });
            }
        }
        self.poked.notify_one();
    }

    /// Really does what an action does.
    pub(super) fn act(&self, inner: &mut Inner, action: usize) {
        inner.acting = false;
        let Some(acts) = inner.acts.get_mut(action) else { return };
        *acts += 1;
        let acts = *acts;
        let name = inner.kind.made(1.0, 0, Fault::None).actions.get(action).map_or("", |spec| spec.name);
        self.tell(Happened::Acted { action: name.to_owned(), times: acts, at_ms: whole_ms(inner.now_s) });
        if inner.kind == Kind::Button {
            inner.plant.presses += 1;
        }
        self.pulse(inner);
    }

    /// A pulse on the garage door's input, if it has one.
    fn pulse(&self, inner: &mut Inner) {
        let Some(axis) = inner.plant.pulsed else { return };
        inner.plant.pulse();
        if let Some(axis) = inner.plant.axes.get(axis).filter(|axis| axis.is_moving()) {
            let (part, to, moves) = (axis.name.to_owned(), axis.to, axis.moves);
            self.tell(Happened::Moved { part, to, moves, at_ms: whole_ms(inner.now_s) });
        }
        self.poked.notify_one();
    }

    /// Somebody at the device switches a thing, or the first one; to a value, or to the other side. `false` if it has no such
    /// thing.
    pub(super) fn touch(&self, name: Option<&str>, to: Option<f64>) -> bool {
        let mut inner = self.lock();
        if inner.kind == Kind::Button {
            inner.plant.presses += 1;
        } else if inner.plant.pulsed.is_some() {
            self.pulse(&mut inner);
        } else {
            let found = inner.plant.axes.iter().position(|axis| name.is_none_or(|name| axis.name == name));
            let Some((at, axis)) = found.and_then(|at| Some((at, inner.plant.axes.get(at)?))) else { return false };
            let (low, high) = axis.ends;
            let other_side = if axis.to > (low + high) / 2.0 { low } else { high };
            self.go(&mut inner, at, to.unwrap_or(other_side));
        }
        inner.noticed = Some(CauseWord::Local);
        true
    }

    /// What really is, things first, then what they bring about.
    pub(super) fn truth(&self) -> Vec<Truth> {
        let inner = self.lock();
        let mut all = Vec::new();
        for axis in inner.plant.axes.iter().filter(|axis| axis.name != EXTRA || axis.moves > 0) {
            let (name, at, moves, moving) = (axis.name.to_owned(), axis.at, axis.moves, axis.is_moving());
            all.push(Truth { name, at, moves, moving, last_ms: axis.moved_s.map(whole_ms) });
        }
        let made = inner.kind.made(inner.plant.speed, 0, Fault::None);
        for (at, action) in made.actions.iter().enumerate() {
            let times = inner.acts.get(at).copied().unwrap_or(0);
            all.push(Truth { name: action.name.to_owned(), at: 0.0, moves: times, moving: false, last_ms: None });
        }
        for (spec, source) in &made.properties {
            if let super::kind::Source::Gauge(gauge, _) = source
                && !all.iter().any(|truth| truth.name == spec.name)
            {
                let at = inner.plant.measured(*gauge);
                all.push(Truth { name: spec.name.to_owned(), at, moves: 0, moving: false, last_ms: None });
            }
        }
        all
    }

    /// Puts something into the future.
    pub(super) fn schedule(&self, inner: &mut Inner, after_s: f64, event: Event) {
        if inner.events.len() < EVENTS_MAX {
            inner.events.push((inner.now_s + after_s, event));
        }
        self.poked.notify_one();
    }

    /// Lets the plant live while nobody looks at it. Never ends.
    pub(super) async fn live(&self) {
        loop {
            let due_s = {
                let inner = self.lock();
                let event = inner.next_event().map(|(_, due_s)| due_s);
                [event, inner.plant.next_arrival_s()].into_iter().flatten().reduce(f64::min)
            };
            let due = due_s.map(|due_s| self.begun + Duration::try_from_secs_f64(due_s).unwrap_or_default());
            tokio::select! {
                () = self.poked.notified() => {}
                () = until(due) => {}
            }
        }
    }
}

impl Inner {
    /// The fault that is in force: one that happens once is over after it.
    pub(super) fn fault(&self) -> Fault {
        if self.spent && matches!(self.fault, Fault::RebootBefore | Fault::RebootAfter) {
            Fault::None
        } else {
            self.fault
        }
    }

    /// A run begins.
    pub(super) fn reborn(&mut self) {
        self.spent |= self.crashed && self.fault != Fault::BrownOut;
        (self.dark, self.crashed, self.acting) = (false, false, false);
        self.events.retain(|(_, event)| *event != Event::Reboot);
    }

    fn next_event(&self) -> Option<(usize, f64)> {
        let all = self.events.iter().enumerate().map(|(at, (due_s, _))| (at, *due_s));
        all.reduce(|first, other| if other.1 < first.1 { other } else { first })
    }

    /// An axis was read where it was driven to: what goes away again does so from now.
    pub(super) fn arrived(&mut self, axis: usize) -> Option<(f64, Event)> {
        let back = self.reverts.get_mut(axis)?.take()?;
        match self.fault() {
            Fault::RevertsSoon => Some((SOON_S, Event::Back(axis, back, false))),
            Fault::RevertsSoonTold => Some((SOON_S, Event::Back(axis, back, true))),
            Fault::RevertsLate => Some((REVERTS_S, Event::Back(axis, back, true))),
            _ => None,
        }
    }

    /// Whether the task that drives can begin now; the reboot that comes instead.
    pub(super) fn may_begin(&mut self) -> (bool, Option<f64>) {
        let fault = self.fault();
        if !fault.holds_back() {
            return (true, None);
        }
        if fault == Fault::RebootBefore {
            let first = !self.crashed && !self.events.iter().any(|(_, event)| *event == Event::Reboot);
            return (false, first.then_some(CRASH_S));
        }
        let now_s = self.now_s;
        let since_s =
            self.held_s.filter(|(_, asked_s)| now_s - asked_s < ASKED_S).map_or(now_s, |(since_s, _)| since_s);
        self.held_s = Some((since_s, now_s));
        (fault == Fault::StartsLate && now_s - since_s > HELD_S, None)
    }

    /// How the board breaks down after driving, seconds from now.
    pub(super) fn crash(&mut self) -> Option<f64> {
        let crashes = matches!(self.fault(), Fault::RebootAfter | Fault::BrownOut);
        self.dark |= crashes;
        crashes.then_some(CRASH_S)
    }

    /// Whether measurements have changed enough to be told unasked, and why they did.
    pub(super) fn measured(&mut self, gauges: &[(Gauge, f64)]) -> Option<CauseWord> {
        let values: Vec<f64> = gauges.iter().map(|(gauge, _)| self.plant.measured(*gauge)).collect();
        if self.told.len() != values.len() {
            self.told = values;
            return None;
        }
        let changed = |discrete: bool| {
            gauges.iter().zip(&values).zip(&self.told).any(|(((gauge, threshold), now), told)| {
                matches!(gauge, Gauge::Contact(_) | Gauge::Presses) == discrete && (now - told).abs() >= *threshold
            })
        };
        let cause = if changed(true) {
            Some(CauseWord::Command)
        } else if changed(false) && self.now_s - self.told_s >= MEASURED_S {
            Some(CauseWord::Periodic)
        } else {
            None
        };
        if cause.is_some() || self.noticed.is_some() {
            (self.told, self.told_s) = (values, self.now_s);
        }
        cause
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

fn whole_ms(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` stops at the ends of u64")]
    let ms = (seconds * 1_000.0) as u64;
    ms
}
