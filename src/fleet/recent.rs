//! Which device an operation belongs to, and the latest operation of each caller: for `check_operation`. What belonged to a
//! device that was removed is marked: a device that comes under its name again inherits nothing (semantics 2.8).

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::Caller;
use crate::{
    names::Thing,
    property::{DeviceId, PropertyName, Value},
    twin::words::{OpId, Outcome, Settled},
};

/// Operations that are remembered over all devices: a day of a busy home. The oldest is forgotten; `check_operation` then
/// finds it by its device only, as long as the twin remembers it.
const MAX: usize = 4096;

/// One call for an operation.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) op: OpId,
    pub(super) device: DeviceId,
    caller: Caller,
    /// What it was on, and the value that was wished, where one was named.
    about: (PropertyName, Option<Value>),
    /// Its device was removed since.
    removed: bool,
}

impl Called {
    pub(super) fn new(op: OpId, device: DeviceId, caller: Caller, about: (PropertyName, Option<Value>)) -> Self {
        Self { op, device, caller, about, removed: false }
    }

    /// The property or action that it was on.
    pub(super) fn name(&self) -> &str {
        &self.about.0
    }

    /// What is told of it if its device was removed since.
    pub(super) fn removed(&self) -> Option<Settled> {
        let (property, value) = self.about.clone();
        self.removed.then(|| Settled {
            outcome: Outcome::Removed,
            reason: None,
            ..Settled::unknown(self.op.clone(), self.device.clone(), property, value)
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    operations: Mutex<VecDeque<Called>>,
}

impl Recent {
    pub(super) fn note(&self, called: Called) {
        let mut operations = self.lock();
        if operations.len() == MAX {
            operations.pop_front();
        }
        operations.push_back(called);
    }

    /// The call for an operation.
    pub(super) fn known(&self, op: &OpId) -> Option<Called> {
        self.lock().iter().rev().find(|called| called.op == *op).cloned()
    }

    /// The latest call of a caller, of a thing if one is named: of one that bears that name now.
    pub(super) fn latest_of(&self, caller: &Caller, thing: Option<&Thing>) -> Option<Called> {
        let operations = self.lock();
        let about = |called: &Called, thing: &Thing| {
            called.device == thing.device && thing.property.as_deref().is_none_or(|own| own == called.name())
        };
        let of = |called: &&Called| {
            called.caller == *caller && thing.is_none_or(|thing| about(called, thing) && !called.removed)
        };
        operations.iter().rev().find(of).cloned()
    }

    /// A device was removed.
    pub(super) fn bury(&self, device: &DeviceId) {
        for called in self.lock().iter_mut().filter(|called| called.device == *device) {
            called.removed = true;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Called>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
