//! What is owed to callers: the truth of an answer that has changed since (semantics 6.3).
//!
//! The twin says that something is owed; the store is the hub's, over all devices, and knows no device.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use crate::{
    property::DeviceId,
    twin::{
        wish::CallerId,
        words::{OpId, Settled},
    },
};

/// An answer that is no longer true, and what is.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// The device.
    pub device: DeviceId,
    /// The operation, by the id that the caller's answer had.
    pub operation: OpId,
    /// What is true now, for this caller.
    pub settled: Settled,
}

/// How long something is owed (semantics 6.3): after that nobody remembers what was said.
pub const OWED_FOR: Duration = Duration::from_secs(600);

/// Callers to whom something may be owed at once: more sessions than a home has. The one whose news is the oldest is
/// forgotten; the device's state and `check_operation` still tell.
pub const CALLERS_MAX: usize = 256;

/// Corrections owed to one caller at once: an answer that begins with more is no answer. The oldest is forgotten.
pub const CORRECTIONS_MAX: usize = 4;

/// The corrections that are owed, by caller.
#[derive(Debug, Default)]
pub struct Owed {
    by_caller: BTreeMap<CallerId, VecDeque<(Instant, Correction)>>,
}

impl Owed {
    /// Notes a correction. A newer one of the same operation takes the older's place. Callers that cannot be told apart
    /// are owed nothing: it would be told to another.
    pub fn owe(&mut self, now: Instant, caller: &CallerId, correction: Correction) {
        if caller.is_shared() {
            return;
        }
        if !self.by_caller.contains_key(caller) && self.by_caller.len() >= CALLERS_MAX {
            let newest = |news: &VecDeque<(Instant, Correction)>| news.back().map(|(at, _)| *at);
            let oldest = self.by_caller.iter().min_by_key(|(_, news)| newest(news)).map(|(who, _)| who.clone());
            if let Some(oldest) = oldest {
                self.by_caller.remove(&oldest);
            }
        }
        let news = self.by_caller.entry(caller.clone()).or_default();
        news.retain(|(_, known)| known.operation != correction.operation);
        if news.len() >= CORRECTIONS_MAX {
            news.pop_front();
        }
        news.push_back((now, correction));
    }

    /// What is owed to a caller, oldest first; each once.
    pub fn take(&mut self, now: Instant, caller: &CallerId) -> Vec<Correction> {
        let news = self.by_caller.remove(caller).unwrap_or_default();
        let fresh = news.into_iter().filter(|(at, _)| now.saturating_duration_since(*at) <= OWED_FOR);
        fresh.map(|(_, correction)| correction).collect()
    }

    /// A caller has just heard of an operation: nothing is owed of it any more.
    pub fn heard(&mut self, caller: &CallerId, operation: &OpId) {
        self.forget(|who, correction| who == caller && correction.operation == *operation);
    }

    /// A device was removed: what was its own is no news of another of that name (semantics 2.8).
    pub fn forget_device(&mut self, device: &DeviceId) {
        self.forget(|_, correction| correction.device == *device);
    }

    fn forget(&mut self, which: impl Fn(&CallerId, &Correction) -> bool) {
        self.by_caller.retain(|who, news| {
            news.retain(|(_, correction)| !which(who, correction));
            !news.is_empty()
        });
    }
}
