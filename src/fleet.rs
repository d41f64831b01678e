//! Stub of the interface; replaced soon.
#![allow(missing_docs)]
use std::{sync::Arc, time::Instant};

use crate::{
    names::Name,
    property::{Description, DeviceId, PropertyName, Value},
    twin::words::{OpId, Presence, Refusal, Reply, StateReport},
};

/// Who asked: known from the session, never from the arguments (`stdio`, `http:<session>`, `cli`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller(pub Arc<str>);

/// What tools and lists see of one device.
#[derive(Clone, Debug)]
pub struct Card {
    pub name: Name,
    pub presence: Presence,
    /// `None` until the device has ever greeted this hub.
    pub description: Option<Arc<Description>>,
    pub last_heard: Option<Instant>,
}

/// The handle that callers hold: cheap to clone.
#[derive(Clone)]
pub struct Fleet;

impl Fleet {
    /// All devices, ordered by id.
    pub fn cards(&self) -> Vec<Card> {
        { unreachable!("stub") }
    }
    /// Bumped whenever the set of devices, names or descriptions changes, so that a catalogue can be kept.
    pub fn revision(&self) -> u64 {
        { unreachable!("stub") }
    }
    /// Makes one wish true, or says why not. Dropping the future means to stop waiting (semantics 4.7).
    pub async fn set(
        &self,
        device: &DeviceId,
        property: PropertyName,
        value: Value,
        answer_by: Instant,
        caller: &Caller,
    ) -> Reply {
        { unreachable!("stub") }
    }
    /// The state of one device; `fresh` asks the device now and waits for its answer until `answer_by`.
    pub async fn state(&self, device: &DeviceId, fresh: bool, answer_by: Instant) -> Result<StateReport, Refusal> {
        { unreachable!("stub") }
    }
    /// What became of an operation: by its id, or the latest of a device, or the latest of this caller. `None`: nothing is known of one.
    pub async fn check(&self, op: Option<&OpId>, device: Option<&DeviceId>, caller: &Caller) -> Option<Reply> {
        { unreachable!("stub") }
    }
}
