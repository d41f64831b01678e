//! The board between the device core and the plant, with the fault in between.
#![expect(clippy::wildcard_enum_match_arm, reason = "a fault that is not named in a place bends nothing there")]

use std::sync::Arc;

use truetwin_device::{
    Board, Part,
    store::{Fate, Op, Store, StoreFailed},
};
use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Args, PropertySpec},
    words::{CauseWord, KindWord, ReasonWord},
};

use super::{
    Fault, Options,
    kind::{EXPECTED_MS, Kind, Made, Source},
    plant::Gauge,
    world::{Event, LATE_S, SLOW_S, World},
};

/// How much longer than described a movement may take before it counts as stuck, milliseconds: less than the hub's margin.
const SETTLE_MS: u32 = 100;

/// The same for what begins slowly, or late.
const SETTLE_SLOW_MS: u32 = 600;
const SETTLE_LATE_MS: u32 = 20_000;

/// When a motor that does not turn counts as stuck, milliseconds: its current shows it.
const STALL_MS: u32 = 1_000;

/// How long an action may be at work, milliseconds.
const ACTION_MS: u32 = 900;

/// A movement shorter than this says nothing of how long it takes, milliseconds.
const ETA_MS: f64 = 500.0;

/// How often the board looks for what moved by itself, milliseconds: a press at the wall is seen at once.
const WATCH_MS: u32 = 50;

pub(super) struct Body {
    world: Arc<World>,
    specs: Vec<PropertySpec<'static>>,
    sources: Vec<Source>,
    gauges: Vec<(Gauge, f64)>,
    actions: &'static [ActionSpec<'static>],
    exclusive: &'static [&'static [&'static str]],
    kept: Kept,
}

/// The few bytes that survive a reboot.
struct Kept(Arc<World>);

impl Store for Kept {
    fn kept(&mut self) -> Result<Option<(Op, Fate)>, StoreFailed> {
        let kept = self.0.lock().kept.clone();
        kept.map(|(op, fate)| Ok((Op::try_from(op.as_str()).map_err(|_| StoreFailed)?, fate))).transpose()
    }

    fn keep(&mut self, op: &str, fate: Fate) -> Result<(), StoreFailed> {
        self.0.lock().kept = Some((op.to_owned(), fate));
        Ok(())
    }
}

impl Body {
    /// The board as its firmware of this run has it.
    pub(super) fn new(world: &Arc<World>, options: &Options) -> Self {
        let fault = {
            let mut inner = world.lock();
            inner.reborn();
            inner.fault
        };
        let Made { properties, actions, exclusive } = options.kind.made(options.speed, options.stable_ms, fault);
        let (specs, sources): (Vec<_>, Vec<_>) = properties.into_iter().unzip();
        let gauge = |source: &Source| if let Source::Gauge(gauge, by) = source { Some((*gauge, *by)) } else { None };
        let gauges = sources.iter().filter_map(gauge).collect();
        Self { world: world.clone(), specs, sources, gauges, actions, exclusive, kept: Kept(world.clone()) }
    }

    fn axis(&self, property: usize) -> Option<usize> {
        match self.sources.get(property)? {
            Source::Axis(axis) => Some(*axis),
            Source::Gauge(..) => None,
        }
    }
}

impl Board for Body {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        let (Some(axis), Some(to)) = (self.axis(property), number(value)) else { return Err(ReasonWord::Unsupported) };
        let mut inner = self.world.lock();
        // What was on its way before is overtaken.
        inner.events.retain(|(_, event)| !matches!(event, Event::Go(on_its_way, _) if *on_its_way == axis));
        let was = inner.plant.axes.get(axis).map(|axis| axis.at);
        if let Some(reverts) = inner.reverts.get_mut(axis) {
            *reverts = was;
        }
        match inner.fault() {
            Fault::Stuck | Fault::BrownOut => {}
            // The other device has no power: the telegram goes into the void.
            Fault::NoLoad if inner.kind == Kind::Infrared => {}
            Fault::Lying => {
                if let Some(lie) = inner.lies.get_mut(axis) {
                    *lie = Some(to);
                }
            }
            Fault::Slow => self.world.schedule(&mut inner, SLOW_S, Event::Go(axis, to)),
            Fault::Late => self.world.schedule(&mut inner, LATE_S, Event::Go(axis, to)),
            _ => self.world.go(&mut inner, axis, to),
        }
        if let Some(after_s) = inner.crash() {
            self.world.schedule(&mut inner, after_s, Event::Reboot);
        }
        Ok(())
    }

    fn read(&mut self, property: usize) -> Option<Scalar> {
        let kind = self.specs.get(property)?.kind;
        let source = *self.sources.get(property)?;
        let mut inner = self.world.lock();
        if inner.dark {
            return None;
        }
        let value = match source {
            Source::Gauge(gauge, _) => inner.plant.measured(gauge),
            Source::Axis(axis) => {
                // One read-back after driving may be a lie, all others are true.
                let lie = inner.lies.get_mut(axis).and_then(Option::take);
                let thing = inner.plant.axes.get(axis)?;
                let (at, arrived) = (thing.at, !thing.is_moving() && thing.moves > 0);
                if let Some((after_s, event)) = arrived.then(|| inner.arrived(axis)).flatten() {
                    self.world.schedule(&mut inner, after_s, event);
                }
                lie.unwrap_or(at)
            }
        };
        scalar(kind, value)
    }

    fn settle_ms(&self, property: usize) -> u32 {
        let expected_ms = self.specs.get(property).and_then(|spec| spec.expected_ms).unwrap_or(EXPECTED_MS);
        match self.world.lock().fault() {
            Fault::Stuck => (expected_ms + SETTLE_MS).min(STALL_MS),
            Fault::Slow => expected_ms + SETTLE_SLOW_MS,
            Fault::Late => expected_ms + SETTLE_LATE_MS,
            _ => expected_ms + SETTLE_MS,
        }
    }

    fn make_safe(&mut self) {
        let mut inner = self.world.lock();
        // What was about to begin had no power any more.
        inner.events.retain(|(_, event)| !matches!(event, Event::Go(..) | Event::Act(_)));
        for axis in 0..inner.plant.axes.len() {
            if let Some(safe) = inner.plant.axes.get(axis).and_then(|axis| axis.safe) {
                self.world.go(&mut inner, axis, safe);
            } else {
                inner.plant.stop(axis);
            }
        }
    }

    fn actions(&self) -> &[ActionSpec<'_>] {
        self.actions
    }

    fn exclusive(&self) -> &[&[&str]] {
        self.exclusive
    }

    fn stop(&mut self, property: usize) {
        if let Some(axis) = self.axis(property) {
            let mut inner = self.world.lock();
            if inner.fault() != Fault::Late {
                inner.events.retain(|(_, event)| !matches!(event, Event::Go(on_its_way, _) if *on_its_way == axis));
            }
            inner.plant.stop(axis);
        }
    }

    fn at_rest(&mut self, property: usize) -> bool {
        let Some(axis) = self.axis(property) else { return true };
        !self.world.lock().plant.axes.get(axis).is_some_and(|axis| axis.is_moving())
    }

    fn eta_ms(&mut self, property: usize) -> Option<u32> {
        let axis = self.axis(property)?;
        let inner = self.world.lock();
        let left_ms =
            inner.plant.axes.get(axis).filter(|axis| axis.is_moving())?.left_s() / inner.plant.speed * 1_000.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` stops at the ends of u32")]
        (left_ms > ETA_MS).then_some(left_ms as u32)
    }

    fn run(&mut self, action: usize, _args: Args<'_>) -> Result<(), ReasonWord> {
        let mut inner = self.world.lock();
        match inner.fault() {
            Fault::Stuck => inner.acting = true,
            Fault::Lying | Fault::BrownOut | Fault::NoLoad => {}
            Fault::Slow => {
                inner.acting = true;
                self.world.schedule(&mut inner, SLOW_S, Event::Act(action));
            }
            Fault::Late => {
                inner.acting = true;
                self.world.schedule(&mut inner, LATE_S, Event::Act(action));
            }
            _ => self.world.act(&mut inner, action),
        }
        if let Some(after_s) = inner.crash() {
            self.world.schedule(&mut inner, after_s, Event::Reboot);
        }
        Ok(())
    }

    fn ended(&mut self, _action: usize) -> Option<Result<(), ReasonWord>> {
        let inner = self.world.lock();
        (!inner.acting && !inner.dark).then_some(Ok(()))
    }

    fn action_settle_ms(&self, _action: usize) -> u32 {
        if self.world.lock().fault() == Fault::Late { SETTLE_LATE_MS } else { ACTION_MS }
    }

    fn accepts(&mut self, _part: Part) -> Result<(), ReasonWord> {
        if self.world.lock().fault() == Fault::Busy { Err(ReasonWord::Busy) } else { Ok(()) }
    }

    fn ready(&mut self, _part: Part) -> bool {
        let mut inner = self.world.lock();
        let (ready, crash_s) = inner.may_begin();
        if let Some(after_s) = crash_s {
            self.world.schedule(&mut inner, after_s, Event::Reboot);
        }
        ready
    }

    fn watch_ms(&self) -> Option<u32> {
        Some(WATCH_MS)
    }

    fn noticed(&mut self) -> Option<CauseWord> {
        let mut inner = self.world.lock();
        let measured = inner.measured(&self.gauges);
        inner.noticed.take().or(measured)
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut self.kept)
    }
}

fn number(value: &Scalar) -> Option<f64> {
    match value {
        Scalar::Bool(on) => Some(f64::from(u8::from(*on))),
        Scalar::Integer(_) | Scalar::Number(_) => value.as_f64(),
        Scalar::Text(_) => None,
    }
}

/// A reading in the property's own form; a thing that is on or off and in between is neither.
fn scalar(kind: KindWord, value: f64) -> Option<Scalar> {
    match kind {
        KindWord::Bool if value > 0.0 && value < 1.0 => None,
        KindWord::Bool => Some(Scalar::Bool(value > 0.0)),
        #[expect(clippy::cast_possible_truncation, reason = "all that is simulated lies within i32")]
        KindWord::Integer => Some(Scalar::Integer(value.round() as i32)),
        KindWord::Number => Scalar::number((value * 10.0).round() / 10.0),
        KindWord::Enum | KindWord::Text | KindWord::Colour | KindWord::Unknown => None,
    }
}
