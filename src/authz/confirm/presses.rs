//! When buttons of the house were last pressed by hand: what `confirm = "press"` rests on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::property::{DeviceId, PropertyName, Value};

/// The buttons that the configuration names, and no others: as many as it has lines.
#[derive(Debug, Default)]
pub struct Presses(HashMap<DeviceId, Panel>);

/// The buttons of one device.
#[derive(Debug, Default)]
struct Panel {
    buttons: HashMap<PropertyName, Mutex<Button>>,
    run: Mutex<Run>,
}

/// How far a device has come in its reports: what is older was brought about before, whenever it arrives.
#[derive(Debug, Default)]
struct Run {
    boot: Arc<str>,
    seq: u32,
    has_greeted: bool,
}

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
        let mut all: HashMap<DeviceId, Panel> = HashMap::new();
        for (device, property) in buttons {
            all.entry(device).or_default().buttons.entry(property).or_default();
        }
        Self(all)
    }

    /// Whether anything of a device is watched.
    pub fn watches(&self, device: &DeviceId) -> bool {
        self.0.contains_key(device)
    }

    /// A device has a new connection, or none any more: what it says before it greets may be from before.
    pub fn reconnected(&self, device: &DeviceId) {
        if let Some(mut run) = self.run(device) {
            run.has_greeted = false;
        }
    }

    /// A device has greeted.
    pub fn greeted(&self, device: &DeviceId, boot: &Arc<str>, seq: u32) {
        if let Some(mut run) = self.run(device).filter(|run| run.boot != *boot || run.seq < seq) {
            *run = Run { boot: boot.clone(), seq, has_greeted: true };
        }
    }

    /// Whether a report is of this connection and newer than all before it; a message that a broker or a device sends again
    /// is not.
    pub fn is_news(&self, device: &DeviceId, boot: &str, seq: u32) -> bool {
        let Some(mut run) = self.run(device) else { return false };
        let is_news = run.has_greeted && *run.boot == *boot && run.seq < seq;
        if is_news {
            run.seq = seq;
        }
        is_news
    }

    fn run(&self, device: &DeviceId) -> Option<MutexGuard<'_, Run>> {
        Some(self.0.get(device)?.run.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A device has reported a value. `by_hand`: it says that somebody at the device brought it about; nothing else is a
    /// press, or an assistant that may move the button could press it. A bool is pressed when it turns true, a counter or a
    /// word when it changes; a first report changes nothing.
    pub fn reported(&self, device: &DeviceId, property: &str, value: &Value, by_hand: bool, now: Instant) {
        let Some(button) = self.0.get(device).and_then(|panel| panel.buttons.get(property)) else { return };
        let mut button = button.lock().unwrap_or_else(PoisonError::into_inner);
        let turned = button.value.as_ref().is_some_and(|before| before != value && *value != Value::Bool(false));
        if by_hand && turned {
            button.pressed = Some(now);
        }
        button.value = Some(value.clone());
    }

    /// Whether a button was pressed after a moment.
    pub fn pressed_since(&self, device: &DeviceId, property: &str, moment: Instant) -> bool {
        let button = self.0.get(device).and_then(|panel| panel.buttons.get(property));
        button.is_some_and(|button| button.lock().unwrap_or_else(PoisonError::into_inner).pressed > Some(moment))
    }
}
