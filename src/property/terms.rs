//! On which terms a property is confirmed, beside its kind and range: what the device grants (clamping, a safe level) and
//! what the owner lays down (predicate, evidence, verification, acceptance).

use std::sync::Arc;

use super::{Choice, Confirmation, DeviceId, Evidence, Predicate, PropertyName, Value};

/// The terms of one property. The default is what holds where neither device nor owner say anything.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Terms {
    /// The owner's choice of the predicate (semantics 3.1).
    pub predicate: Option<Choice>,
    /// The evidence that is enough for the owner, where it is less than the device offers (semantics 3.5).
    pub required: Option<Evidence>,
    /// The device may bring a value into its range and say so (semantics 3.9).
    pub clamps: bool,
    /// What the device does by itself once the hub has been gone (semantics 6.4); shown, never carried out by the hub.
    pub failsafe: Option<Failsafe>,
    /// The actions of this device by which values come about, where setting is not how it is done: a garage door whose
    /// contact only reads, and whose drive only takes a pulse. Empty: the property is set.
    pub by_action: Vec<(Value, Arc<str>)>,
    /// What must agree after completion (semantics 3.10).
    pub verify: Option<Verify>,
    /// The owner has accepted that it may be moved although it appeared later and can do harm (semantics 2.7).
    pub accepted: bool,
    /// The owner's word on how a movement is confirmed by a person (semantics 7.2).
    pub confirmation: Confirmation,
    /// Its values are nobody's to read: masked in answers, logs and audit (semantics 7.3).
    pub sensitive: bool,
}

/// What a device does with an output when the hub has been gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Failsafe {
    /// The safe value.
    pub value: Value,
    /// How long the hub must have been gone, milliseconds.
    pub after_ms: u32,
}

/// A condition on a property, of this or another device, that must hold after completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Verify {
    /// The device that measures.
    pub device: DeviceId,
    /// Its property.
    pub property: PropertyName,
    /// What must be true of it, by the wish: the first entry whose wish is equal, or whose wish is `None`, counts. A wish
    /// without an entry is not verified.
    pub expect: Vec<(Option<Value>, Predicate)>,
    /// How long the measurement may take to show it, milliseconds.
    pub within_ms: u32,
    /// What it measures is nobody's to read (semantics 7.3): only whether it agrees is told.
    pub sensitive: bool,
}

impl Verify {
    /// What must be true for this wish, if anything.
    pub fn of_wish(&self, wish: &Value) -> Option<&Predicate> {
        self.expect.iter().find(|(of, _)| of.as_ref().is_none_or(|of| of == wish)).map(|(_, predicate)| predicate)
    }
}
