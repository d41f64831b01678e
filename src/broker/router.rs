//! The bus: rumqttd's `Router` with two in-process links. The only file that names rumqttd.
//!
//! Why so few, and why like this (rumqttd 0.20, measured):
//! - Two links with one fixed filter each: a link per device costs 46 kB and makes one of the router's panics reachable.
//! - No packet of a device ever reaches the router: only frames, on two topics of ours.
//! - Both SUBACKs are in before the first publish: packets wait in a buffer per link that an *earlier* event drains, so
//!   a report could overtake the hub's SUBSCRIBE and match nothing.
//! - Frames are appended through `LinkTx::buffer`, the last of a batch with an event unless that was not empty (an event
//!   that will drain it is on its way): so the router's channel of 1000 is hardly ever full. `publish` would block then.
//! - `Unschedule` must be answered with `wake`, or delivery stops for good.
//! - Readers never wait for a consumer, so a canary that does not come back means a dead router and nothing else.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use rumqttd::{
    Router, RouterConfig,
    local::{LinkBuilder, LinkError, LinkRx, LinkTx},
    protocol::{Packet, Publish},
};
use tokio::sync::{Notify, mpsc, mpsc::Sender, oneshot};

use super::{
    FromDevice,
    conn::Place,
    core::{Core, lock},
    counters::{count, count_many},
    lane::{Arrived, Lane},
};

/// Bytes of one segment of the router's log, and how many it keeps. 64 KiB x 3 carried 4.7 million reports through 30
/// router deaths; larger ones only cost memory (350 to 500 bytes more for each report than rumqttd counts).
const SEGMENT_BYTES: usize = 64 << 10;
const SEGMENTS: usize = 3;

/// Bytes that may be inside the router: half of what its log is sure to keep (see [`Lane`]).
const ROOM_BYTES: u64 = ((SEGMENTS - 1) * SEGMENT_BYTES / 2) as u64;

/// Messages that one link is handed at once (rumqttd's own example uses 200).
const BATCH: u64 = 200;

/// How often a canary is sent through each direction.
const CANARY_EVERY: Duration = Duration::from_millis(250);

/// After so long without a canary the router is given up. Six canaries: a busy machine delays one, not six.
const CANARY_DEAD_MS: u64 = 1500;

/// How long a new router may take to answer its first two links.
const BUILD_WAIT: Duration = Duration::from_secs(2);

/// The pause before the next attempt, doubled each time up to the maximum, while routers die young.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A router that lived so long was a good one.
const OLD_AGE: Duration = Duration::from_secs(1);

/// One direction of the bus: a lane, and the link that feeds it while there is a router.
pub(super) struct Line<C> {
    topic: &'static str,
    pub(super) totals: LineTotals,
    state: Mutex<LineState<C>>,
    /// There is something to hand to the router.
    ready: Notify,
}

#[derive(Default)]
pub(super) struct LineTotals {
    pub(super) gaps: AtomicU64,
    pub(super) resends: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) full: AtomicU64,
}

struct LineState<C> {
    lane: Lane<C>,
    link: Option<LinkTx>,
}

impl<C> Line<C> {
    pub(super) fn new(topic: &'static str) -> Self {
        let lane = Lane::new(topic.len(), ROOM_BYTES);
        let state = Mutex::new(LineState { lane, link: None });
        Self { topic, totals: LineTotals::default(), state, ready: Notify::new() }
    }

    /// Puts a frame in line; without a router it waits for one.
    pub(super) fn push(&self, cargo: C, body_bytes: usize, write: impl FnOnce(&mut BytesMut)) {
        lock(&self.state).lane.push(cargo, body_bytes, write);
        self.ready.notify_one();
    }

    /// Hands the router what was put in line, for ever. A task of its own, so that what many devices and callers put in
    /// line in one turn of the runtime wakes the router's thread once.
    async fn hand_over(&self) {
        loop {
            self.ready.notified().await;
            self.pump(&mut lock(&self.state));
        }
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        lock(&self.state).lane.waiting_bytes()
    }

    pub(super) fn waiting_frames(&self) -> usize {
        lock(&self.state).lane.waiting_frames()
    }

    /// Kills the router (see [`super::Broker::break_bus`]).
    pub(super) fn poison(&self) {
        if let Some(link) = &mut lock(&self.state).link {
            let _full = link.try_publish("é", "");
        }
    }

    /// Takes what came out of the router; what is next in order, if this is it.
    fn arrived(&self, frame: &Bytes, now_ms: u64) -> Option<(Bytes, C)> {
        let mut state = lock(&self.state);
        let arrived = state.lane.arrived(frame, now_ms);
        let more = state.lane.has_more();
        drop(state);
        if more {
            self.ready.notify_one();
        }
        match arrived {
            Arrived::Next(body, cargo) => return Some((body, cargo)),
            Arrived::Duplicate => count(&self.totals.duplicates),
            Arrived::Gap(again) => {
                count(&self.totals.gaps);
                count_many(&self.totals.resends, again);
            }
            Arrived::StillGap | Arrived::Canary | Arrived::Foreign => {}
        }
        None
    }

    /// A new router: everything that has not come out goes in again.
    fn attach(&self, link: LinkTx, now_ms: u64) {
        let mut state = lock(&self.state);
        state.link = Some(link);
        count_many(&self.totals.resends, state.lane.restart(now_ms));
        self.pump(&mut state);
    }

    /// Cuts the link; what waits stays.
    pub(super) fn detach(&self) {
        lock(&self.state).link = None;
    }

    fn canary(&self) {
        let mut state = lock(&self.state);
        let canary = state.lane.canary();
        if let Some(link) = &mut state.link {
            let _full = link.try_publish(self.topic, canary); // then it lies in the buffer and goes with the next
        }
    }

    fn canary_age_ms(&self, now_ms: u64) -> u64 {
        lock(&self.state).lane.canary_age_ms(now_ms)
    }

    /// Takes out all that waits, in order: there will be no router any more.
    fn take_all(&self) -> Vec<(Bytes, C)> {
        lock(&self.state).lane.take_all()
    }

    /// Hands the router all that it has room for, with one event: the last frame's, behind the others. A frame with an
    /// event of its own would wake the router's thread each time, which on a busy processor runs at once instead of us.
    fn pump(&self, state: &mut LineState<C>) {
        let Some(link) = &mut state.link else { return };
        let mut buffer = link.buffer();
        let event_under_way = !buffer.is_empty();
        let mut last = None;
        while let Some(frame) = state.lane.next_to_inject() {
            buffer.extend(last.replace(frame).map(|frame| self.packet(frame)));
        }
        let Some(last) = last else { return };
        if event_under_way {
            buffer.push_back(self.packet(last));
            return;
        }
        drop(buffer);
        if let Err(LinkError::TrySend(_)) = link.try_publish(self.topic, last) {
            count(&self.totals.full); // it lies in the buffer; the next event, at the latest a canary's, drains it
        }
    }

    fn packet(&self, frame: Bytes) -> Packet {
        Packet::Publish(Publish::new(Bytes::from_static(self.topic.as_bytes()), frame, false), None)
    }
}

/// Both links of a new router, subscribed.
struct Bus {
    door: (LinkTx, LinkRx),
    hub: (LinkTx, LinkRx),
}

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
        if let Some(place) = up_place.take() {
            place.send(FromDevice::BusUp);
        }
        if let Some(started) = started.take() {
            let _caller_gone = started.send(());
        }
        let stopped = watch(&core, &mut died).await;
        core.bus_runs.store(false, Ordering::Release);
        if stopped {
            end(&core, readers).await;
            break;
        }
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

/// Watches a running router. True when the bus is to stop, false when the router died.
async fn watch(core: &Core, died: &mut mpsc::Receiver<()>) -> bool {
    let mut tick = tokio::time::interval(CANARY_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut late = 0u32;
    loop {
        tokio::select! {
            () = core.bus_stops.cancelled() => return true,
            _ = died.recv() => return false,
            _ = tick.tick() => {}
        }
        let now_ms = core.now_ms();
        let age_ms = core.up.canary_age_ms(now_ms).max(core.down.canary_age_ms(now_ms));
        // Twice in a row: after a machine was asleep or stopped, the canaries get one more turn.
        late = if age_ms > CANARY_DEAD_MS { late + 1 } else { 0 };
        if late >= 2 {
            tracing::error!(age_ms, "the bus's canary does not come back");
            return false;
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
    let (door_tx, door_rx) = bus.door;
    let (hub_tx, hub_rx) = bus.hub;
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

/// A new router with both links, on a thread of its own because linking blocks.
async fn build(generation: u64) -> Result<Bus, String> {
    let building = tokio::task::spawn_blocking(move || build_blocking(generation));
    match tokio::time::timeout(BUILD_WAIT, building).await {
        Ok(Ok(result)) => result,
        Ok(Err(_panicked)) => Err("the router's thread could not be started".to_owned()),
        Err(_) => Err("the router does not answer".to_owned()),
    }
}

fn build_blocking(generation: u64) -> Result<Bus, String> {
    let config = RouterConfig {
        max_connections: 4,
        max_outgoing_packet_count: BATCH,
        max_segment_size: SEGMENT_BYTES,
        max_segment_count: SEGMENTS,
        custom_segment: None,
        initialized_filters: None,
        shared_subscriptions_strategy: rumqttd::Strategy::default(),
    };
    let router = Router::new(0, config).spawn();
    let link = |name: &str, filter: &str| {
        let id = format!("{name}-{generation}");
        let (mut tx, mut rx, _) = LinkBuilder::new(&id, router.clone()).build().map_err(|error| error.to_string())?;
        tx.try_subscribe(filter).map_err(|error| error.to_string())?;
        let until = Instant::now() + BUILD_WAIT / 2;
        loop {
            let notification = rx.recv_deadline(until).map_err(|error| error.to_string())?;
            if let Some(Packet::SubAck(..)) = notification.and_then(Option::<Packet>::from) {
                return Ok::<_, String>((tx, rx));
            }
        }
    };
    Ok(Bus { door: link("door", "down")?, hub: link("hub", "up")? })
}
