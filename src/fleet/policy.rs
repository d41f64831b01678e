//! How often a device's actor may crash: pure, so that the simulator keeps the same rule.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// When the actor of one device was restarted lately.
#[derive(Clone, Debug, Default)]
pub struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// It crashed: whether it is restarted once more. So many restarts within the window are allowed; one more sets the device
    /// aside until the hub starts again (semantics 8.4, `quarantined`).
    pub fn once_more(&mut self, now: Instant, max: usize, within: Duration) -> bool {
        self.0.retain(|at| now.saturating_duration_since(*at) < within);
        let more = self.0.len() < max;
        if more {
            self.0.push_back(now);
        }
        more
    }
}
