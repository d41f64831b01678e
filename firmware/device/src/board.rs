//! What a body implements: a fixed set of properties that can be driven and read back.

use embedded_hal::digital::{InputPin, OutputPin};
use truetwin_wire::{Scalar, device::PropertySpec, words::ReasonWord};

/// The actuators and sensors of one device. Properties are named by their place in [`Board::properties`], at most
/// [`crate::machine::PROPERTIES_MAX`].
///
/// Calls return at once: a movement that takes time is begun by [`Board::drive`] and watched by [`Board::read`].
pub trait Board {
    /// The description; always the same.
    fn properties(&self) -> &[PropertySpec<'_>];

    /// Begins to drive. The value was checked against the description.
    ///
    /// # Errors
    /// Why it could not begin; reported as `failed` with this reason.
    fn drive(&mut self, property: usize, value: &Scalar) -> Result<(), ReasonWord>;

    /// Reads the property, with no less than the evidence that its description claims; `None` if it cannot be read. Never
    /// the value that was last asked for: that is what a register remembers, not what the thing does.
    fn read(&mut self, property: usize) -> Option<Scalar>;

    /// How long after driving the read-back may still differ before it counts as `stuck`, milliseconds. Less than the
    /// hub's allowance (`expected_ms` plus its margin), or the hub stops waiting first.
    fn settle_ms(&self, property: usize) -> u32;

    /// Brings all outputs to their safe level (after an unclean start).
    fn make_safe(&mut self);
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
