//! A simulated device, and the scripted hub that it talks to.

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use truetwin::sim::{self, Fault, Happened, Kind, Options, Simulator};
use truetwin_wire::{
    Scalar,
    hub::{ActionReport, Hello, Incoming},
    words::{ReasonWord, ReportResult},
};

use super::{Hub, Peer};

pub(crate) struct Rig {
    pub(crate) hub: Hub,
    pub(crate) sim: Simulator,
    pub(crate) happened: Receiver<Happened>,
}

impl Rig {
    /// A socket.
    pub(crate) async fn new(fault: Fault) -> Self {
        Self::of(Kind::Socket, 1.0, fault).await
    }

    pub(crate) async fn of(kind: Kind, speed: f64, fault: Fault) -> Self {
        let hub = Hub::listen().await;
        let mut sim = sim::start(Options { kind, speed, fault, ..Options::new(hub.address, "socket_1", "hush") });
        let happened = sim.events();
        Self { hub, sim, happened }
    }

    /// The device of a new connection, its hello, and it welcomed into a session.
    pub(crate) async fn greeted(&mut self, session: &str) -> (Peer, Incoming, Hello) {
        let mut peer = self.hub.accept().await;
        let (incoming, hello) = peer.hello().await;
        peer.welcome(session).await;
        self.until(|h| *h == Happened::Welcomed).await;
        (peer, incoming, hello)
    }

    pub(crate) async fn until(&mut self, wanted: impl Fn(&Happened) -> bool) -> Happened {
        loop {
            let happened = self.happened.recv().await.unwrap();
            if wanted(&happened) {
                return happened;
            }
        }
    }

    /// Where a thing, an action or a measurement really is, and how often it moved.
    pub(crate) fn truth(&self, name: &str) -> (f64, u64) {
        let truth = self.sim.handle().truth_of(name).unwrap();
        (truth.at, truth.moves)
    }
}

pub(crate) fn facts(reports: &[ActionReport]) -> Vec<(&str, ReportResult, Option<ReasonWord>, bool)> {
    reports.iter().map(|r| (&*r.op, r.result, r.reason, r.dup)).collect()
}

/// One value of a status.
pub(crate) fn value<'s>(status: &'s [(Arc<str>, Scalar)], name: &str) -> Option<&'s Scalar> {
    status.iter().find(|(property, _)| **property == *name).map(|(_, value)| value)
}
