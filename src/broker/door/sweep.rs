//! Ends the connections that fell silent, and those that the hub owes an acknowledgement for too long. One task for all,
//! instead of a timer for each.

use std::{sync::Arc, time::Duration};

use crate::broker::{Closed, core::Core};

/// How often. A connection is ended at most so much later than 1.5 times its keep-alive (MQTT says "within", 3.1.2.10).
const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// Sweeps until the broker stops.
pub(in crate::broker) async fn sweep(core: Arc<Core>) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        let now_ms = core.now_ms();
        for conn in core.connections() {
            if conn.expired(now_ms) {
                core.end(&conn, Closed::KeepAlive);
            } else if conn.overdue(now_ms, core.settings.acknowledge_ms) {
                core.end(&conn, Closed::Unacknowledged);
            } else {
                conn.look();
            }
        }
    }
}
