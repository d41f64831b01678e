//! Reading again what nobody tells (semantics 3.11): a device that has told no value for long is asked, so that drift and
//! reverts do not stay unseen.

use std::time::Instant;

use crate::twin::{Twin, input::Command, words::OpId};

impl Twin {
    /// When the device is asked next because it has told nothing. Every value told puts it off, whoever asked for it.
    pub(super) fn reconcile_at(&self) -> Option<Instant> {
        let every = self.settings.reconcile;
        let awake = self.line.session.is_some() && !self.stopping && !self.line.bus_down && !every.is_zero();
        self.line.told_at.filter(|_| awake).map(|at| at + every)
    }

    /// Asks if it is time to. One question for each interval: a device that does not answer is not pestered.
    pub(super) fn reconcile(&mut self, now: Instant) {
        if self.reconcile_at().is_some_and(|at| at <= now) {
            self.line.told_at = Some(now);
            self.line.reads += 1;
            let op = OpId::new(&format!("read-{}", self.line.reads % 1_000_000));
            self.send(Command::GetState { op, property: None });
        }
    }
}
