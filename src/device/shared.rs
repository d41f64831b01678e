//! What is known of a device outside its actor: it outlives a crash of that.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tokio::sync::watch;

use crate::{
    property::{Description, DeviceId, PropertyName, Value},
    twin::{
        Hears,
        input::{Left, Memory},
        wish::CallerId,
        words::{OpId, Presence, Settled},
    },
};

/// What is known of a device outside its actor: what lists show, and what a successor needs after a crash.
#[derive(Debug, Default)]
pub struct Shared {
    inner: Mutex<Known>,
    /// Grows with each message that the actor takes in while somebody listens; gone when the device is.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) presence: Option<Presence>,
    pub(super) description: Option<Arc<Description>>,
    pub(super) last_heard: Option<Instant>,
    pub(super) memory: Memory,
    /// The wish that is being taken in: should the actor crash over it, its end is unknown all the same.
    pub(super) admitting: Option<Admitting>,
}

/// A wish that is being taken in: who has it, and what it is on.
pub(super) type Admitting = (CallerId, OpId, PropertyName, Option<Value>);

impl Shared {
    /// Presence, description and when anything was last heard.
    pub fn view(&self) -> (Presence, Option<Arc<Description>>, Option<Instant>) {
        let known = self.lock();
        (known.presence.unwrap_or(Presence::Offline), known.description.clone(), known.last_heard)
    }

    /// Hears whenever something of the device may have changed. Ends when the device is removed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Says to whoever listens that something may have changed; if nobody does, that is one look at a number.
    pub(crate) fn changed(&self) {
        if self.changed.receiver_count() > 0 {
            self.changed.send_modify(|revision| *revision = revision.wrapping_add(1));
        }
    }

    /// What a crashed actor left of one operation: that it was in flight, and where. `None` if it never took it in.
    pub fn left_of(&self, op: &OpId) -> Option<Settled> {
        self.lock().memory.in_flight.iter().find(|left| left.settled.op == *op).map(|left| left.settled.clone())
    }

    /// How many callers wait for operations, as a successor would learn it.
    #[cfg(test)]
    pub fn callers_waiting(&self) -> usize {
        self.lock().memory.in_flight.iter().filter(|left| left.hears == Hears::Waits).count()
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        // Every write is one assignment: a panic beside the lock leaves nothing half-done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an earlier process left, for the first actor of this one.
    pub fn remembering(memory: Memory) -> Self {
        let description = memory.description.clone();
        Self { inner: Mutex::new(Known { description, memory, ..Known::default() }), ..Self::default() }
    }

    /// Takes out what the last actor left, for its successor; the wish that it crashed over included.
    pub(super) fn take_memory(&self, device: &DeviceId) -> Option<Memory> {
        let mut known = self.lock();
        let mut memory = known.memory.clone();
        if let Some((caller, op, property, value)) = known.admitting.take()
            && memory.in_flight.iter().all(|left| left.settled.op != op)
        {
            let settled = Settled::unknown(op, device.clone(), property, value);
            memory.in_flight.push(Left { caller, hears: Hears::Waits, settled });
        }
        (memory != Memory::default()).then_some(memory)
    }
}
