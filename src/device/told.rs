//! What a device's actor tells unasked: that something of the device may have changed, and how far an operation is.
//! Nobody listens most of the time; then each costs one look at a number.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Instant};

use crate::twin::{
    Twin,
    words::{OpId, Stage},
};

/// Whoever wants to hear the stages of an operation while it runs. What it is given must not wait: it is called by the
/// device's actor.
#[derive(Clone)]
pub struct Stages(Arc<dyn Fn(Stage) + Send + Sync>);

impl Stages {
    /// Tells the stages to a function that returns at once.
    pub fn to(tell: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stages")
    }
}

/// The operations whose stages somebody wants to hear, with the furthest that was told; at most as many as have callers.
#[derive(Debug, Default)]
pub(super) struct Followed(BTreeMap<OpId, (Stages, Stage)>);

impl Followed {
    /// From now on the stages of an operation are told.
    pub(super) fn follow(&mut self, op: &OpId, stages: Option<Stages>) {
        if let Some(stages) = stages {
            self.0.insert(op.clone(), (stages, Stage::Admission));
        }
    }

    /// Tells what has come further. An operation that is sent once more is not told again from the beginning: progress
    /// only grows. `waits` says whether an operation's caller still waits.
    pub(super) fn tell(&mut self, twin: &Twin, now: Instant, waits: impl Fn(&OpId) -> bool) {
        if self.0.is_empty() {
            return;
        }
        self.0.retain(|op, (stages, told)| {
            if !waits(op) {
                return false;
            }
            if let Some(so_far) = twin.check(now, Some(op))
                && so_far.stage > *told
            {
                *told = so_far.stage;
                (stages.0)(so_far.stage);
            }
            true
        });
    }
}
