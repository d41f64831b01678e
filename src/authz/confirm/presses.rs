//! When buttons of the house were last pressed by hand: what `confirm = "press"` rests on.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::property::{DeviceId, PropertyName, Value};

/// The buttons that the configuration names, and no others: as many as it has lines.
#[derive(Debug, Default)]
pub struct Presses(HashMap<DeviceId, HashMap<PropertyName, Mutex<Button>>>);

#[derive(Debug, Default)]
struct Button {
    /// What it was last at.
    value: Option<Value>,
    /// When it was last pressed.
    pressed: Option<Instant>,
}

impl Presses {
    /// Watches these.
    pub fn of(buttons: impl IntoIterator<Item = (DeviceId, PropertyName)>) -> Self {
        let mut all: HashMap<DeviceId, HashMap<PropertyName, Mutex<Button>>> = HashMap::new();
        for (device, property) in buttons {
            all.entry(device).or_default().entry(property).or_default();
        }
        Self(all)
    }

    /// Whether anything of a device is watched.
    pub fn watches(&self, device: &DeviceId) -> bool {
        self.0.contains_key(device)
    }

    /// A device has reported a value. `by_hand`: it says that somebody at the device brought it about; nothing else is a
    /// press, or an assistant that may move the button could press it. A bool is pressed when it turns true, a counter or a
    /// word when it changes; a first report changes nothing.
    pub fn reported(&self, device: &DeviceId, property: &str, value: &Value, by_hand: bool, now: Instant) {
        let Some(button) = self.0.get(device).and_then(|all| all.get(property)) else { return };
        let mut button = button.lock().unwrap_or_else(PoisonError::into_inner);
        let turned = button.value.as_ref().is_some_and(|before| before != value && *value != Value::Bool(false));
        if by_hand && turned {
            button.pressed = Some(now);
        }
        button.value = Some(value.clone());
    }

    /// Whether a button was pressed after a moment.
    pub fn pressed_since(&self, device: &DeviceId, property: &str, moment: Instant) -> bool {
        let button = self.0.get(device).and_then(|all| all.get(property));
        button.is_some_and(|button| button.lock().unwrap_or_else(PoisonError::into_inner).pressed > Some(moment))
    }
}
