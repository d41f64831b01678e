//! One direction of the bus: a lane, and the link that feeds it while there is a router.

use std::sync::{Mutex, atomic::AtomicU64};

use bytes::{Bytes, BytesMut};
use rumqttd::{
    local::{LinkError, LinkTx},
    protocol::{Packet, Publish},
};
use tokio::sync::Notify;

use super::build::{ROOM_BYTES, SURE_TO_KEEP_BYTES};
use crate::broker::{
    core::lock,
    counters::{count, count_many},
    lane::{Arrived, Lane},
};

/// See the module.
pub(in crate::broker) struct Line<C> {
    topic: &'static str,
    pub(in crate::broker) totals: LineTotals,
    state: Mutex<LineState<C>>,
    /// There is something to hand to the router.
    ready: Notify,
}

#[derive(Default)]
pub(in crate::broker) struct LineTotals {
    pub(in crate::broker) gaps: AtomicU64,
    pub(in crate::broker) resends: AtomicU64,
    pub(in crate::broker) duplicates: AtomicU64,
    pub(in crate::broker) full: AtomicU64,
}

struct LineState<C> {
    lane: Lane<C>,
    link: Option<LinkTx>,
}

impl<C> Line<C> {
    pub(in crate::broker) fn new(topic: &'static str) -> Self {
        let lane = Lane::new(topic.len(), ROOM_BYTES);
        let state = Mutex::new(LineState { lane, link: None });
        Self { topic, totals: LineTotals::default(), state, ready: Notify::new() }
    }

    /// Puts a frame in line; without a router it waits for one.
    pub(in crate::broker) fn push(&self, cargo: C, body_bytes: usize, write: impl FnOnce(&mut BytesMut)) {
        lock(&self.state).lane.push(cargo, body_bytes, write);
        self.ready.notify_one();
    }

    /// Hands the router what was put in line, for ever. A task of its own, so that what many devices and callers put in
    /// line in one turn of the runtime wakes the router's thread once.
    pub(super) async fn hand_over(&self) {
        loop {
            self.ready.notified().await;
            self.pump(&mut lock(&self.state));
        }
    }

    pub(in crate::broker) fn waiting_bytes(&self) -> usize {
        lock(&self.state).lane.waiting_bytes()
    }

    pub(in crate::broker) fn waiting_frames(&self) -> usize {
        lock(&self.state).lane.waiting_frames()
    }

    /// Kills the router (see [`Broker::break_bus`](crate::broker::Broker::break_bus)).
    pub(in crate::broker) fn poison(&self) {
        if let Some(link) = &mut lock(&self.state).link {
            let _full = link.try_publish("é", "");
        }
    }

    /// Takes what came out of the router; what is next in order, if this is it.
    pub(super) fn arrived(&self, frame: &Bytes, now_ms: u64) -> Option<(Bytes, C)> {
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
    pub(super) fn attach(&self, link: LinkTx, now_ms: u64) {
        let mut state = lock(&self.state);
        state.link = Some(link);
        count_many(&self.totals.resends, state.lane.restart(now_ms));
        self.pump(&mut state);
    }

    /// Cuts the link; what waits stays.
    pub(in crate::broker) fn detach(&self) {
        lock(&self.state).link = None;
    }

    pub(super) fn canary(&self) {
        let LineState { lane, link } = &mut *lock(&self.state);
        if let Some(link) = link {
            let _full = link.try_publish(self.topic, lane.canary()); // then it lies in the buffer and goes with the next
        }
    }

    pub(super) fn canary_age_ms(&self, now_ms: u64) -> u64 {
        lock(&self.state).lane.canary_age_ms(now_ms)
    }

    /// Takes out all that waits, in order: there will be no router any more.
    pub(super) fn take_all(&self) -> Vec<(Bytes, C)> {
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
        debug_assert!(state.lane.inside() <= SURE_TO_KEEP_BYTES, "the router may rotate what has not been read");
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
