//! What a body implements: a fixed set of properties that can be driven and read back, and actions that can be run.

use embedded_hal::digital::{InputPin, OutputPin};
use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Args, PropertySpec},
    words::{CauseWord, ReasonWord},
};

use crate::store::Store;

/// What an operation is about, by its place in the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A place in [`Board::properties`].
    Property(usize),
    /// A place in [`Board::actions`].
    Action(usize),
}

/// The actuators and sensors of one device. Properties are named by their place in [`Board::properties`], at most
/// [`crate::machine::PROPERTIES_MAX`]; actions the same way, at most [`crate::machine::ACTIONS_MAX`].
///
/// Calls return at once: a movement that takes time is begun by [`Board::drive`] and watched by [`Board::read`]. Only the
/// first seven methods are needed for a thing that is switched; each other one has a default that asks for nothing.
pub trait Board {
    /// The description; always the same.
    fn properties(&self) -> &[PropertySpec<'_>];

    /// Begins to drive. The value was checked against the description. While the property still moves, this is a newer wish
    /// that takes its place.
    ///
    /// # Errors
    /// Why it could not begin; reported as `failed` with this reason.
    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord>;

    /// Reads the property, with no less than the evidence that its description claims; `None` if it cannot be read. Never
    /// the value that was last asked for: that is what a register remembers, not what the thing does. Not asked of a
    /// property with feedback `none`.
    fn read(&mut self, property: usize) -> Option<Scalar>;

    /// How long after driving the read-back may still differ before it counts as `stuck`, milliseconds. Less than the
    /// hub's allowance (`expected_ms` plus its margin), or the hub stops waiting first.
    fn settle_ms(&self, property: usize) -> u32;

    /// Brings all outputs to their safe level (after an unclean start).
    fn make_safe(&mut self);

    /// The actions of the description; always the same.
    fn actions(&self) -> &[ActionSpec<'_>] {
        &[]
    }

    /// Groups of properties of which one moves at a time.
    fn exclusive(&self) -> &[&[&str]] {
        &[]
    }

    /// Stops a movement where it is: asked only where the description says `on_withdraw: stop`.
    fn stop(&mut self, _property: usize) {}

    /// Whether it stands. A motor that passes its goal within the tolerance has not arrived: it may overshoot, and what is
    /// read a moment later is something else.
    fn at_rest(&mut self, _property: usize) -> bool {
        true
    }

    /// How much longer the movement takes, milliseconds; with an answer the core reports `working` now and then.
    fn eta_ms(&mut self, _property: usize) -> Option<u32> {
        None
    }

    /// Begins an action.
    ///
    /// # Errors
    /// Why it could not begin; reported as `failed` with this reason.
    fn run(&mut self, _action: usize, _args: Args<'_>) -> Result<(), ReasonWord> {
        Err(ReasonWord::Unsupported)
    }

    /// How an action that was begun has ended; `None` while it is at work.
    fn ended(&mut self, _action: usize) -> Option<Result<(), ReasonWord>> {
        Some(Ok(()))
    }

    /// How long an action may be at work before it counts as `stuck`, milliseconds.
    fn action_settle_ms(&self, _action: usize) -> u32 {
        0
    }

    /// Whether the board takes such a command at all now (a child lock, an interlock, a jam that is known).
    ///
    /// # Errors
    /// Why not; reported as `rejected` at once.
    fn accepts(&mut self, _part: Part) -> Result<(), ReasonWord> {
        Ok(())
    }

    /// Whether it could begin now (a motor that must cool down, a compressor's pause). Until it can, the command waits, and
    /// expires like any other. Asked again every [`crate::machine::CHECK_MS`].
    fn ready(&mut self, _part: Part) -> bool {
        true
    }

    /// How often to ask [`Board::noticed`], milliseconds; `None` for never.
    fn watch_ms(&self) -> Option<u32> {
        None
    }

    /// Whether something has changed that nobody commanded, since the last call, and why: [`CauseWord::Local`] where a
    /// person did it. The core then tells the whole state unasked.
    fn noticed(&mut self) -> Option<CauseWord> {
        None
    }

    /// The few bytes that survive a reboot; without them an action that must not run twice is safe within one run only.
    fn store(&mut self) -> Option<&mut dyn Store> {
        None
    }
}

/// A relay, or anything that is on or off: one pin drives, another one tells. The second may be the same pad read through its
/// input (evidence `pin`), or an auxiliary contact or a current sensor (evidence `sensor`); the description says which.
pub struct Relay<O, I> {
    /// Drives the coil.
    pub output: O,
    /// Tells what happened.
    pub feedback: I,
    /// Whether low means on, for both pins.
    pub active_low: bool,
    /// See [`Board::settle_ms`].
    pub settle_ms: u32,
    /// The level after an unclean start.
    pub safe: bool,
}

impl<O: OutputPin, I: InputPin> Relay<O, I> {
    /// Switches.
    ///
    /// # Errors
    /// [`ReasonWord::Stuck`] if the pin cannot be driven (an expander that does not answer).
    pub fn drive(&mut self, on: bool) -> Result<(), ReasonWord> {
        let level = (on != self.active_low).into();
        self.output.set_state(level).map_err(|_| ReasonWord::Stuck)
    }

    /// Reads back; `None` if the pin cannot be read.
    pub fn read(&mut self) -> Option<bool> {
        Some(self.feedback.is_high().ok()? != self.active_low)
    }
}

/// A board of `N` relays.
pub struct Relays<'s, O, I, const N: usize> {
    /// What each is called and claims, in the order of `relays`.
    pub specs: [PropertySpec<'s>; N],
    /// The relays.
    pub relays: [Relay<O, I>; N],
}

impl<O: OutputPin, I: InputPin, const N: usize> Board for Relays<'_, O, I, N> {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        match (self.relays.get_mut(property), value) {
            (Some(relay), Scalar::Bool(on)) => relay.drive(*on),
            _ => Err(ReasonWord::Unsupported),
        }
    }

    fn read(&mut self, property: usize) -> Option<Scalar> {
        self.relays.get_mut(property)?.read().map(Scalar::Bool)
    }

    fn settle_ms(&self, property: usize) -> u32 {
        self.relays.get(property).map_or(0, |relay| relay.settle_ms)
    }

    fn make_safe(&mut self) {
        for relay in &mut self.relays {
            // A pin that cannot be driven shows in the first read-back.
            let _not_driven = relay.drive(relay.safe);
        }
    }
}
