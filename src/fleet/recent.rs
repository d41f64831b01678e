//! Which device an operation belongs to, and the latest operation of each caller: for `check_operation`.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::Caller;
use crate::{property::DeviceId, twin::words::OpId};

/// Operations that are remembered over all devices: a day of a busy home. The oldest is forgotten; `check_operation` then
/// finds it by its device only, as long as the twin remembers it.
const MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Recent {
    operations: Mutex<VecDeque<(OpId, DeviceId, Caller)>>,
}

impl Recent {
    pub(super) fn note(&self, op: OpId, device: DeviceId, caller: Caller) {
        let mut operations = self.lock();
        if operations.len() == MAX {
            operations.pop_front();
        }
        operations.push_back((op, device, caller));
    }

    pub(super) fn device_of(&self, op: &OpId) -> Option<DeviceId> {
        self.lock().iter().rev().find(|(known, _, _)| known == op).map(|(_, device, _)| device.clone())
    }

    pub(super) fn latest_of(&self, caller: &Caller) -> Option<(OpId, DeviceId)> {
        let operations = self.lock();
        let latest = operations.iter().rev().find(|(_, _, who)| who == caller);
        latest.map(|(op, device, _)| (op.clone(), device.clone()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(OpId, DeviceId, Caller)>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
