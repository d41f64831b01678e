//! Ends the connections that fell silent, and those that the hub owes an acknowledgement for too long; has retained messages
//! written. One task for all, instead of a timer for each.

use std::{sync::Arc, time::Duration};

use crate::broker::{Closed, core::Core};

/// How often. A connection is ended at most so much later than 1.5 times its keep-alive (MQTT says "within", 3.1.2.10).
const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// How often retained messages that nobody was promised are written: a value that changes each second is written once in that
/// time, and a killed process forgets no more of it.
const WRITE_RETAINED_EVERY_MS: u64 = 10_000;

/// Sweeps until the broker stops.
pub(in crate::broker) async fn sweep(core: Arc<Core>) {
    let mut written_ms = core.now_ms();
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.stopping.cancelled() => return,
            _ = tick.tick() => {}
        }
        let now_ms = core.now_ms();
        if now_ms >= written_ms + WRITE_RETAINED_EVERY_MS {
            written_ms = now_ms;
            core.write_retained();
        }
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
