//! Accepts sockets, and bounds those that have not said who they are.

use std::{collections::VecDeque, hash::RandomState, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::AbortHandle,
    time::Instant,
};

use super::handshake;
use crate::broker::{
    core::{Core, lock},
    counters::count,
};

/// The pause after a failed accept: the process is out of file descriptors, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A socket that was silent for so long may be cut to make room.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// Accepts until the broker stops. Dropping the listener then frees its port.
pub(in crate::broker) async fn listen(core: Arc<Core>, listener: TcpListener) {
    let handshakes = Arc::new(Handshakes::default());
    loop {
        let accepted = tokio::select! {
            () = core.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, from)) => {
                count(&core.totals.sockets_accepted);
                tokio::select! {
                    () = core.stopping.cancelled() => return,
                    () = handshakes.make_room(&core) => {}
                }
                handshakes.begin(&core, socket, from.ip());
            }
            Err(error) => {
                tracing::warn!(%error, "no socket could be accepted; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The handshakes under way, oldest first.
#[derive(Default)]
struct Handshakes {
    under_way: std::sync::Mutex<VecDeque<UnderWay>>,
    one_ended: Notify,
    /// Makes the same origin of the same address and client id.
    origins: RandomState,
}

struct UnderWay {
    number: u64,
    began: Instant,
    task: AbortHandle,
}

impl Handshakes {
    /// Waits until one more may begin; cuts the oldest if it has been silent for long.
    async fn make_room(&self, core: &Core) {
        loop {
            let oldest = {
                let mut under_way = lock(&self.under_way);
                if under_way.len() < core.settings.handshakes_max {
                    return;
                }
                let Some(oldest) = under_way.front().map(|oldest| oldest.began) else { return };
                if oldest.elapsed() >= SILENT_AFTER {
                    if let Some(cut) = under_way.pop_front() {
                        cut.task.abort();
                        count(&core.totals.refused_crowded);
                    }
                    return;
                }
                oldest
            };
            tokio::select! {
                () = self.one_ended.notified() => {}
                () = tokio::time::sleep_until(oldest + SILENT_AFTER) => {}
            }
        }
    }

    fn begin(self: &Arc<Self>, core: &Arc<Core>, socket: TcpStream, from: IpAddr) {
        // The list is held over the spawn, so that the task finds itself in it when it ends.
        let mut under_way = lock(&self.under_way);
        let number = under_way.back().map_or(0, |last| last.number + 1);
        let (handshakes, shared) = (self.clone(), core.clone());
        let task = core.tasks.spawn(async move {
            handshake::run(shared, socket, from, &handshakes.origins).await;
            handshakes.ended(number);
        });
        under_way.push_back(UnderWay { number, began: Instant::now(), task: task.abort_handle() });
    }

    fn ended(&self, number: u64) {
        lock(&self.under_way).retain(|each| each.number != number);
        self.one_ended.notify_one();
    }
}
