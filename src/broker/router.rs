//! The bus: rumqttd's `Router` with two in-process links, and what rebuilds it. Only this and its parts name rumqttd.
//!
//! ```text
//! build  a new router with both links; what its log is sure to keep
//! line   one direction: a lane, and the link that feeds it
//! ```
//! Why so few, and why like this (rumqttd 0.20, measured):
//! - Two links with one fixed filter each: a link per device costs 46 kB and makes one of the router's panics reachable.
//! - No packet of a device ever reaches the router: only frames, on two topics of ours.
//! - Both SUBACKs are in before the first publish: packets wait in a buffer per link that an *earlier* event drains, so
//!   a report could overtake the hub's SUBSCRIBE and match nothing.
//! - Frames are appended through `LinkTx::buffer`, the last of a batch with an event unless that was not empty (an event
//!   that will drain it is on its way): so the router's channel of 1000 is hardly ever full. `publish` would block then.
//! - `Unschedule` must be answered with `wake`, or delivery stops for good.
//! - Readers never wait for a consumer, so a canary that does not come back means a dead router and nothing else.

mod build;
mod line;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use rumqttd::{local::LinkRx, protocol::Packet};
use tokio::sync::{mpsc, mpsc::Sender, oneshot};

pub use self::build::Hang;
use self::build::{BATCH, Bus, build};
pub(super) use self::{build::Hanger, line::Line, line::LineTotals};
use super::{
    FromDevice,
    conn::Place,
    core::{Core, lock},
    counters::{count, count_many},
};

/// How often a canary is sent through each direction.
const CANARY_EVERY: Duration = Duration::from_millis(250);

/// After so long without a canary the router is given up. Six canaries: a busy machine delays one, not six.
const CANARY_DEAD_MS: u64 = 1500;

/// The pause before the next attempt, doubled each time up to the maximum, while routers die young. What waits on the bus
/// waits as long, and an operation's first stages have a second.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// A router that lived so long was a good one.
const OLD_AGE: Duration = Duration::from_secs(1);

/// Starts the first router and what looks after it. `hub` is the one sender that keeps the hub's channel open.
pub(super) async fn start(core: Arc<Core>, hub: Sender<FromDevice>) -> Result<(), String> {
    let bus = build(0).await?;
    let (started_tx, started) = oneshot::channel();
    let ends = core.clone();
    tokio::spawn(async move {
        let both = async { tokio::join!(ends.up.hand_over(), ends.down.hand_over()) };
        let _stopped = ends.bus_stops.run_until_cancelled(both).await;
    });
    tokio::spawn(supervise(core, hub, bus, started_tx));
    started.await.map_err(|_| "its supervisor ended".to_owned())
}

/// Runs one router after the other until the broker stops.
async fn supervise(core: Arc<Core>, hub: Sender<FromDevice>, first: Bus, started: oneshot::Sender<()>) {
    let mut next = Some(first);
    let mut generation = 0u64;
    let mut pause = PAUSE_MIN;
    let mut up_place: Option<Place> = None;
    let mut started = Some(started);
    let mut down_since: Option<Instant> = None;
    loop {
        let bus = match next.take() {
            Some(bus) => bus,
            None => match build(generation).await {
                Ok(bus) => bus,
                Err(error) => {
                    tracing::error!(error, "no router could be started; trying again");
                    if wait(&core, pause).await {
                        break;
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                    generation += 1;
                    continue;
                }
            },
        };
        let born = Instant::now();
        let (mut died, readers) = attach(&core, bus);
        core.bus_runs.store(true, Ordering::Release);
        if let Some(since) = down_since.take() {
            let down_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            count_many(&core.totals.bus_down_us, down_us);
            core.bus_rebuild_us.store(down_us, Ordering::Relaxed);
            tracing::info!(generation, down_us, "the bus carries again");
        }
        if let Some(place) = up_place.take() {
            place.send(FromDevice::BusUp);
        }
        if let Some(started) = started.take() {
            let _caller_gone = started.send(());
        }
        let death = watch(&core, &mut died).await;
        core.bus_runs.store(false, Ordering::Release);
        let Death::After { silent_ms } = death else {
            end(&core, readers).await;
            break;
        };
        down_since = Instant::now().checked_sub(Duration::from_millis(silent_ms));
        // Both places or neither: whoever heard of the death must hear of the new life.
        if let (Ok(down), Ok(up)) = (hub.clone().try_reserve_owned(), hub.clone().try_reserve_owned()) {
            down.send(FromDevice::BusDown);
            up_place = Some(up);
        }
        // One that is not dead but stuck would stay for ever; if it ever looks into its queue again, it ends by this.
        core.down.poison();
        end(&core, readers).await;
        count(&core.totals.bus_rebuilds);
        generation += 1;
        tracing::warn!(generation, "the bus's router died; building a new one");
        if born.elapsed() >= OLD_AGE {
            pause = PAUSE_MIN;
        } else if wait(&core, pause).await {
            break;
        } else {
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
    // The sessions have ended: what was still under way is told without the bus, so that each command has its fate.
    for (body, place) in core.down.take_all() {
        core.deliver_command(body, place);
    }
    for (body, cargo) in core.up.take_all() {
        core.deliver(body, cargo);
    }
    drop(hub);
    core.bus_ended.cancel();
}

/// Waits; true if the bus stops meanwhile.
async fn wait(core: &Core, pause: Duration) -> bool {
    tokio::select! {
        () = core.bus_stops.cancelled() => true,
        () = tokio::time::sleep(pause) => false,
    }
}

/// Why a router is watched no more.
enum Death {
    /// The bus is to stop.
    Stop,
    /// It died, or hangs and gave nothing out for so long.
    After { silent_ms: u64 },
}

/// Watches a running router.
async fn watch(core: &Core, died: &mut mpsc::Receiver<()>) -> Death {
    let mut tick = tokio::time::interval(CANARY_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut late = 0u32;
    loop {
        tokio::select! {
            () = core.bus_stops.cancelled() => return Death::Stop,
            _ = died.recv() => return Death::After { silent_ms: 0 },
            _ = tick.tick() => {}
        }
        let now_ms = core.now_ms();
        let age_ms = core.up.canary_age_ms(now_ms).max(core.down.canary_age_ms(now_ms));
        // Twice in a row: after a machine was asleep or stopped, the canaries get one more turn.
        late = if age_ms > CANARY_DEAD_MS { late + 1 } else { 0 };
        if late >= 2 {
            tracing::error!(age_ms, "the bus's canary does not come back");
            return Death::After { silent_ms: age_ms };
        }
        core.up.canary();
        core.down.canary();
        core.credits.wake(); // places may have become free, which nobody is told of
    }
}

/// Two reader tasks of one router.
type Readers = [tokio::task::JoinHandle<()>; 2];

fn attach(core: &Arc<Core>, bus: Bus) -> (mpsc::Receiver<()>, Readers) {
    let (died_tx, died) = mpsc::channel(2);
    let Bus { door: (door_tx, door_rx), hub: (hub_tx, hub_rx), hang } = bus;
    *lock(&core.hanger) = Some(hang);
    let up = {
        let core = core.clone();
        read(hub_rx, died_tx.clone(), move |frame| {
            if let Some((body, cargo)) = core.up.arrived(frame, core.now_ms()) {
                core.deliver(body, cargo);
            }
        })
    };
    let down = {
        let core = core.clone();
        read(door_rx, died_tx, move |frame| {
            if let Some((body, place)) = core.down.arrived(frame, core.now_ms()) {
                core.deliver_command(body, place);
            }
        })
    };
    let readers = [tokio::spawn(up), tokio::spawn(down)];
    let now_ms = core.now_ms();
    core.up.attach(door_tx, now_ms);
    core.down.attach(hub_tx, now_ms);
    (died, readers)
}

async fn end(core: &Core, readers: Readers) {
    *lock(&core.hanger) = None; // it holds the router's own sender
    core.up.detach();
    core.down.detach();
    for reader in readers {
        reader.abort();
        let _aborted = reader.await;
    }
}

/// Reads one link until its router dies.
async fn read(mut link: LinkRx, died: Sender<()>, mut take: impl FnMut(&Bytes)) {
    let mut taken = 0u64;
    loop {
        let Ok(notification) = link.next().await else { break };
        let Some(notification) = notification else { continue };
        match Option::<Packet>::from(notification) {
            Some(Packet::Publish(publish, _)) => take(&publish.payload),
            Some(_) => {} // acknowledgements of our own subscription
            None => {
                // `Unschedule`: the link was handed a full batch and sleeps until it is woken
                if link.wake().await.is_err() {
                    break;
                }
            }
        }
        taken += 1;
        if taken.is_multiple_of(BATCH) {
            tokio::task::yield_now().await; // a full cache is read without waiting; others want the thread as well
        }
    }
    let _supervisor_gone = died.try_send(());
}
