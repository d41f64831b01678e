//! A twin as a whole: state, wishes and latest operation together, for those who look at a device rather than ask for one
//! thing of it.

use std::time::{Duration, Instant};

use super::{Twin, words::Settled};
use crate::{
    property::{PropertyName, Value},
    twin::words::StateReport,
};

/// All that is known of one device at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// What it reported, and what is held (semantics 8.2).
    pub state: StateReport,
    /// What is wished of each property while an operation makes it true (semantics 2.1).
    pub desired: Vec<(PropertyName, Value)>,
    /// The latest operation: how it ended, or how far it is.
    pub latest: Option<Settled>,
}

impl Twin {
    /// All that is known, without asking the device.
    pub fn view(&self, now: Instant) -> View {
        View {
            state: self.state(now),
            desired: self.desired.iter().map(|(property, desired)| (property.clone(), desired.value.clone())).collect(),
            latest: self.check(now, None),
        }
    }
}

impl View {
    /// Only what concerns these properties and actions: what somebody sees who may see no more of the device.
    #[must_use]
    pub fn of(mut self, seen: impl Fn(&str) -> bool) -> Self {
        self.state.readings.retain(|(name, _)| seen(name));
        self.state.moving.retain(|name| seen(name));
        self.state.reverted.retain(|name| seen(name));
        self.state.held.retain(|held| seen(&held.property));
        self.state.amended.retain(|settled| seen(&settled.property));
        self.desired.retain(|(name, _)| seen(name));
        self.latest = self.latest.filter(|settled| seen(&settled.property));
        self
    }

    /// The same without what changes by itself as time passes: two of these differ only if something has happened.
    #[must_use]
    pub fn still(mut self) -> Self {
        let state = &mut self.state;
        state.last_heard = state.last_heard.map(|_| Duration::ZERO);
        state.readings.iter_mut().for_each(|(_, reading)| reading.age = Duration::ZERO);
        state.held.iter_mut().for_each(|held| held.valid_for = held.valid_for.map(|_| Duration::ZERO));
        for settled in state.amended.iter_mut().chain(&mut self.latest) {
            settled.elapsed = Duration::ZERO;
            settled.eta = None;
            settled.stages.clear();
            if let Some(found) = &mut settled.found {
                found.age = Duration::ZERO;
            }
        }
        self
    }
}
