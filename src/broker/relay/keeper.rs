//! How retained messages outlive the process: the hub brings a [`Keeper`].

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;

use super::disk::Handed;
use crate::broker::{conn::Conn, core::Core};

/// A retained message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its topic.
    pub topic: String,
    /// Its payload, not empty.
    pub payload: Bytes,
    /// The quality of service with which it was published: 0 or 1.
    pub qos: u8,
    /// The properties that are passed on with it, in MQTT 5's encoding.
    pub properties: Vec<u8>,
    /// When it expires.
    pub expires: Option<SystemTime>,
}

/// A change to what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This takes the place of what is kept on its topic.
    Keep(Kept),
    /// Nothing is kept on this topic any more.
    Forget(String),
}

/// Keeps retained messages over a restart. Called on the runtime: it must not block.
pub trait Keeper: Send + Sync + 'static {
    /// Keeps changes, behind all that it was given before. `lasting`: they are to survive a power cut once `stored` is told so;
    /// else the end of this process is enough. What cannot be kept is told by dropping `stored`.
    fn keep(&self, changes: Vec<Change>, lasting: bool, stored: Stored);
}

/// What is kept, and who keeps more.
pub struct Memory {
    /// What was kept by an earlier process.
    pub kept: Vec<Kept>,
    /// Who keeps.
    pub keeper: Arc<dyn Keeper>,
}

impl Memory {
    /// Nothing is kept beyond the end of the process.
    pub fn none() -> Self {
        Self { kept: Vec::new(), keeper: Arc::new(Nobody) }
    }
}

struct Nobody;

impl Keeper for Nobody {
    fn keep(&self, _: Vec<Change>, _: bool, stored: Stored) {
        stored.kept();
    }
}

/// To be told once changes are kept. Dropped otherwise: they are tried again later, and whoever waits for them hears an error.
#[must_use = "dropped, it says that nothing was kept"]
pub struct Stored(Option<Waiting>);

pub(in crate::broker) struct Waiting {
    pub(in crate::broker) core: Arc<Core>,
    pub(in crate::broker) changes: Vec<Handed>,
    /// The publish that is to be acknowledged, by its slot.
    pub(in crate::broker) publish: Option<(Arc<Conn>, u64)>,
}

impl Stored {
    pub(in crate::broker) fn new(waiting: Waiting) -> Self {
        Self(Some(waiting))
    }

    /// They are kept.
    pub fn kept(mut self) {
        self.settle(true);
    }

    fn settle(&mut self, taken: bool) {
        let Some(Waiting { core, changes, publish }) = self.0.take() else { return };
        core.relay.settled(changes, taken);
        if let Some((conn, slot)) = publish {
            conn.settle_publish(slot, taken);
        }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.settle(false);
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stored")
    }
}
