//! A new router, with both links subscribed; and the ways to break one.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use rumqttd::{
    Router, RouterConfig,
    local::{LinkBuilder, LinkRx, LinkTx},
    protocol::Packet,
};

/// Bytes of one segment of the router's log, and how many it keeps. 64 KiB x 3 carried 4.7 million reports through 30
/// router deaths; larger ones only cost memory (350 to 500 bytes more for each report than rumqttd counts).
const SEGMENT_BYTES: usize = 64 << 10;
const SEGMENTS: usize = 3;

/// Bytes that the router's log is sure to keep for a reader that has not come to them: all segments but the one that is
/// being filled (rumqttd 0.20 `segments/mod.rs`). Whatever is behind them may be rotated away without a word.
pub(super) const SURE_TO_KEEP_BYTES: u64 = ((SEGMENTS - 1) * SEGMENT_BYTES) as u64;

/// Bytes that may be inside the router (see [`Lane`](crate::broker::lane::Lane)).
pub(super) const ROOM_BYTES: u64 = SURE_TO_KEEP_BYTES / 2;

/// The largest frame: the largest packet that can be set, the largest device name, and what both lanes put before them.
const FRAME_BYTES_MAX: u64 = 16_384 + 32 + 32;

/// Canaries that can be inside before the router is given up, with what the log counts for each.
const CANARIES_BYTES_MAX: u64 = 16 * 40;

const _: () = assert!(
    ROOM_BYTES + FRAME_BYTES_MAX + CANARIES_BYTES_MAX <= SURE_TO_KEEP_BYTES,
    "what is inside the router stays below what it may rotate away"
);

/// Messages that one link is handed at once (rumqttd's own example uses 200).
pub(super) const BATCH: u64 = 200;

/// How long a new router may take to answer its first two links.
const BUILD_WAIT: Duration = Duration::from_secs(2);

/// Both links of a new router, subscribed.
pub(super) struct Bus {
    pub(super) door: (LinkTx, LinkRx),
    pub(super) hub: (LinkTx, LinkRx),
    pub(super) hang: Hanger,
}

/// Hangs the router that it belongs to.
pub(in crate::broker) type Hanger = Box<dyn Fn() -> Result<Hang, String> + Send + Sync>;

/// A router that hangs: it is alive and does nothing until this is dropped.
#[derive(Debug)]
pub struct Hang {
    _released_when_dropped: mpsc::Sender<()>,
}

/// A new router with both links, on a thread of its own because linking blocks.
pub(super) async fn build(generation: u64) -> Result<Bus, String> {
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
    let (door, hub) = (link("door", "down")?, link("hub", "up")?);
    // The type of the router's sender has no name outside of rumqttd.
    let times = AtomicU64::new(0);
    let hang = Box::new(move || {
        let (router, id) = (router.clone(), format!("hang-{}", times.fetch_add(1, Relaxed)));
        let (held_tx, held) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let hold = move || {
            let Ok((tx, rx, _)) = LinkBuilder::new(&id, router.clone()).build() else { return };
            // It is told to look into a link's buffer while we hold the lock of that: it waits, in the middle of its loop.
            let ours = tx.buffer();
            let told = LinkTx::new(rx.id(), router, Default::default()).try_publish("up", "");
            let _nobody_waits = held_tx.send(told.is_ok());
            let _released = released.recv() as Result<(), _>;
            drop(ours);
        };
        thread::Builder::new().name("hang".to_owned()).spawn(hold).map_err(|error| error.to_string())?;
        match held.recv_timeout(BUILD_WAIT) {
            Ok(true) => Ok(Hang { _released_when_dropped: release }),
            Ok(false) | Err(_) => Err("the router takes no link".to_owned()),
        }
    });
    Ok(Bus { door, hub, hang })
}
