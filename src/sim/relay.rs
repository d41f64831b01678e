//! The relay behind the pins, and what really happens to it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use tokio::sync::mpsc;
use truetwin_device::{Board, Relay, Relays};
use truetwin_wire::{
    Scalar,
    device::PropertySpec,
    words::{EvidenceWord, KindWord, ReasonWord, RoleWord},
};

use super::{Fault, Happened};

/// How long the relay is described to take, milliseconds; the hub allows it 1 s.
pub const EXPECTED_MS: u32 = 300;

/// How long a slow relay takes: well within the hub's allowance of 1 s, well beyond what is expected.
const SLOW: Duration = Duration::from_millis(700);

/// When a relay that did not follow counts as stuck, milliseconds: soon enough that the hub hears it within its allowance.
const SETTLE_MS: u32 = 400;

/// The same for a slow one.
const SETTLE_SLOW_MS: u32 = 900;

/// What is true, whatever the device says.
pub(super) struct World {
    /// Held while the device has its turn, so that a fault changes between two turns and not within one.
    turn: Mutex<()>,
    relay: Mutex<Contact>,
    happened: mpsc::Sender<Happened>,
}

struct Contact {
    fault: Fault,
    on: bool,
    moves: u64,
    /// A slow relay on its way.
    on_its_way: Option<(bool, Instant)>,
    /// What the next read-back pretends.
    lie: Option<bool>,
}

impl World {
    pub(super) fn new(fault: Fault, happened: mpsc::Sender<Happened>) -> Self {
        let relay = Contact { fault, on: false, moves: 0, on_its_way: None, lie: None };
        Self { turn: Mutex::new(()), relay: Mutex::new(relay), happened }
    }

    /// The right to act, or to change what acts.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, happened: Happened) {
        let _nobody_reads = self.happened.try_send(happened);
    }

    pub(super) fn set_fault(&self, fault: Fault) {
        let mut relay = self.relay();
        relay.lie = None;
        relay.fault = fault;
    }

    pub(super) fn is_on(&self) -> bool {
        self.relay().on
    }

    pub(super) fn moves(&self) -> u64 {
        self.relay().moves
    }

    /// The relay as it is at this moment.
    fn relay(&self) -> MutexGuard<'_, Contact> {
        let mut relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((on, _)) = relay.on_its_way.take_if(|(_, at)| Instant::now() >= *at) {
            self.turn_to(&mut relay, on);
        }
        relay
    }

    fn turn_to(&self, relay: &mut Contact, on: bool) {
        if relay.on != on {
            relay.on = on;
            relay.moves += 1;
            self.tell(Happened::Moved { on, moves: relay.moves });
        }
    }

    fn drive(&self, on: bool) {
        let mut relay = self.relay();
        relay.on_its_way = None;
        match relay.fault {
            Fault::None | Fault::Frozen | Fault::Offline => self.turn_to(&mut relay, on),
            Fault::Stuck => {}
            Fault::Lying => relay.lie = Some(on),
            Fault::Slow => relay.on_its_way = Some((on, Instant::now() + SLOW)),
        }
    }

    /// What the pin shows: one read-back after driving may be a lie, all others are true.
    fn read(&self) -> bool {
        let mut relay = self.relay();
        relay.lie.take().unwrap_or(relay.on)
    }

    fn settle_ms(&self) -> u32 {
        if self.relay().fault == Fault::Slow { SETTLE_SLOW_MS } else { SETTLE_MS }
    }
}

/// One pin of the relay: as an output the coil, as an input the contact.
struct Pin(Arc<World>);

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.drive(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.drive(true);
        Ok(())
    }
}

impl InputPin for Pin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.read())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.read())
    }
}

/// The socket: one relay, with a settling time that a fault changes.
pub(super) struct Socket {
    relays: Relays<'static, Pin, Pin, 1>,
    world: Arc<World>,
}

impl Socket {
    pub(super) fn new(world: &Arc<World>, stable_ms: u32) -> Self {
        let spec = PropertySpec {
            role: Some(RoleWord::Socket),
            expected_ms: Some(EXPECTED_MS),
            stable_ms: Some(stable_ms),
            repeatable: Some(true),
            ..PropertySpec::new("relay", KindWord::Bool, EvidenceWord::Pin)
        };
        let pin = || Pin(world.clone());
        let relay = Relay { output: pin(), feedback: pin(), active_low: false, settle_ms: SETTLE_MS, safe: false };
        Self { relays: Relays { specs: [spec], relays: [relay] }, world: world.clone() }
    }
}

impl Board for Socket {
    fn properties(&self) -> &[PropertySpec<'_>] {
        self.relays.properties()
    }

    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        self.relays.drive(property, value)
    }

    fn read(&mut self, property: usize) -> Option<Scalar> {
        self.relays.read(property)
    }

    fn settle_ms(&self, _property: usize) -> u32 {
        self.world.settle_ms()
    }

    fn make_safe(&mut self) {
        self.relays.make_safe();
    }
}
