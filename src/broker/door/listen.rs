//! Accepts sockets, and bounds those that have not said who they are.

use std::{
    collections::VecDeque,
    hash::RandomState,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::AbortHandle,
    time::Instant,
};

use super::handshake;
use crate::{
    broker::{
        core::{Core, lock},
        counters::count,
    },
    peer::Peer,
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
                let room = tokio::select! {
                    () = core.stopping.cancelled() => return,
                    room = handshakes.make_room(&core, from.ip().into()) => room,
                };
                if room {
                    handshakes.begin(&core, socket, from.ip());
                } else {
                    count(&core.totals.refused_address);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no socket could be accepted; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The sockets whose CONNECT has not come, oldest first.
#[derive(Default)]
pub(super) struct Handshakes {
    under_way: std::sync::Mutex<VecDeque<UnderWay>>,
    next: AtomicU64,
    one_ended: Notify,
    /// Makes the same origin of the same address and client id.
    pub(super) origins: RandomState,
}

struct UnderWay {
    number: u64,
    peer: Peer,
    began: Instant,
    /// There once its task is.
    task: Option<AbortHandle>,
}

impl UnderWay {
    /// Ends it. Not while the list is locked: its place in there is given up with it.
    fn cut(self, counter: &AtomicU64) {
        if let Some(task) = self.task {
            task.abort();
        }
        count(counter);
    }
}

impl Handshakes {
    /// Waits until one more may begin, whose oldest is cut if it has been silent for long. False if its address has too many: that is
    /// for this address alone to wait for.
    async fn make_room(&self, core: &Core, peer: Peer) -> bool {
        if !self.has_room_for(core, peer) {
            tokio::task::yield_now().await; // those whose CONNECT is there already have it read
            if !self.has_room_for(core, peer) {
                return false;
            }
        }
        loop {
            let (oldest, cut) = {
                let mut under_way = lock(&self.under_way);
                if under_way.len() < core.settings.handshakes_max {
                    return true;
                }
                let Some(oldest) = under_way.front().map(|oldest| oldest.began) else { return true };
                (oldest, if oldest.elapsed() >= SILENT_AFTER { under_way.pop_front() } else { None })
            };
            if let Some(cut) = cut {
                cut.cut(&core.totals.refused_crowded);
                return true;
            }
            tokio::select! {
                () = self.one_ended.notified() => {}
                () = tokio::time::sleep_until(oldest + SILENT_AFTER) => {}
            }
        }
    }

    /// Whether an address may have one more; its oldest is cut for it if it has been silent for long. Looks at all that are under way,
    /// which takes a microsecond for some hundred.
    fn has_room_for(&self, core: &Core, peer: Peer) -> bool {
        let mut under_way = lock(&self.under_way);
        let many = under_way.iter().filter(|each| each.peer == peer).count();
        if many < core.settings.handshakes_per_address_max {
            return true;
        }
        let silent = |each: &UnderWay| each.peer == peer && each.began.elapsed() >= SILENT_AFTER;
        let cut = under_way.iter().position(silent).and_then(|at| under_way.remove(at));
        drop(under_way);
        let has_been_cut = cut.is_some();
        if let Some(cut) = cut {
            cut.cut(&core.totals.refused_address);
        }
        has_been_cut
    }

    fn begin(self: &Arc<Self>, core: &Arc<Core>, socket: TcpStream, from: IpAddr) {
        let number = self.next.fetch_add(1, Relaxed);
        let began = Instant::now();
        lock(&self.under_way).push_back(UnderWay { number, peer: from.into(), began, task: None });
        let place = Place { handshakes: self.clone(), number };
        let task = core.tasks.spawn(handshake::run(core.clone(), socket, from, place));
        if let Some(under_way) = lock(&self.under_way).iter_mut().find(|each| each.number == number) {
            under_way.task = Some(task.abort_handle());
        }
    }
}

/// A socket's place among those that have not said who they are; dropped once it has, or when it ends. From then on nobody cuts it.
pub(super) struct Place {
    handshakes: Arc<Handshakes>,
    number: u64,
}

impl Place {
    /// All of them.
    pub(super) fn handshakes(&self) -> &Handshakes {
        &self.handshakes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.handshakes.under_way).retain(|each| each.number != self.number);
        self.handshakes.one_ended.notify_one();
    }
}
