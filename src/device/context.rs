//! What the actors of all devices share, and what they ask of one another.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use ractor::ActorRef;
use tokio::sync::mpsc;

use super::DeviceMsg;
use crate::{
    broker::Broker,
    dialect::native,
    journal::Journal,
    metrics::Metrics,
    property::{DeviceId, PropertyName},
    recorder::Recorder,
    twin::{owed::Owed, settings::Settings, words::OpId},
};

/// What every device actor of one hub works with.
pub struct Context {
    /// The way to the devices.
    pub broker: Broker,
    /// Where things are counted.
    pub metrics: Metrics,
    /// Who this hub is: part of each welcome.
    pub identity: native::Identity,
    /// Times and bounds.
    pub settings: Settings,
    /// Where operations and set points are written down; without one nothing is.
    pub(super) journal: Option<Journal>,
    /// Where what reaches the twins is recorded, if its owner wants that.
    pub(super) recorder: Option<Arc<Recorder>>,
    /// What is owed to callers (semantics 6.3).
    owed: Mutex<Owed>,
    /// Numbers the commands whose writing the hub wants to hear of.
    pub(super) tickets: AtomicU64,
    pub(super) asks: mpsc::Sender<Ask>,
    asked: Mutex<Option<mpsc::Receiver<Ask>>>,
}

/// A question of one device's actor to another device (semantics 3.10); answered with [`DeviceMsg::Verified`].
#[derive(Debug)]
pub struct Ask {
    /// Who asks.
    pub from: ActorRef<DeviceMsg>,
    /// The question.
    pub question: OpId,
    /// Who is asked.
    pub device: DeviceId,
    /// For which property.
    pub property: PropertyName,
    /// When the answer must be there.
    pub answer_by: Instant,
}

/// Questions to other devices that may wait to be taken up: they are taken up at once, so this is never reached; one more is
/// answered as if the device were silent.
const ASKS_MAX: usize = 1_024;

impl Context {
    /// Puts together what the actors need.
    pub fn new(broker: Broker, metrics: Metrics, identity: native::Identity, settings: Settings) -> Self {
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let asked = Mutex::new(Some(asked));
        let (owed, tickets) = (Mutex::default(), AtomicU64::new(1));
        Self { broker, metrics, identity, settings, journal: None, recorder: None, owed, tickets, asks, asked }
    }

    /// The same with a journal, if there is one.
    #[must_use]
    pub fn with_journal(self, journal: Option<Journal>) -> Self {
        Self { journal, ..self }
    }

    /// The same with a recording, if there is one.
    #[must_use]
    pub fn with_recorder(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// What is owed to callers, over all devices.
    pub fn owed(&self) -> std::sync::MutexGuard<'_, Owed> {
        // A panic beside the lock leaves at worst one correction untold.
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The questions of all actors to other devices; for the fleet, once.
    pub(crate) fn take_asks(&self) -> Option<mpsc::Receiver<Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
