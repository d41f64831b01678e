//! Sessions and streams are told what has changed: their tools, their list of resources, and the resources that they
//! subscribed to. In sessions that is `resources/subscribe`; from 2026-07-28 on, a stream of `subscriptions/listen`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{Peer, SubscriptionSink},
};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use super::{
    Server,
    resources::{SCHEME, entry},
};
use crate::authz::Principal;

/// How often it is looked whether tools or resources have changed. Devices that greet one after the other are one change a
/// second at most.
const CHANGES_EVERY: Duration = Duration::from_secs(1);

/// The shortest time between two updates of one resource to one subscriber: a chattering device is no reason to send a
/// client more than it can read. The first change is told at once, the last one always.
const UPDATES_EVERY: Duration = Duration::from_secs(1);

/// How long telling a client may take; one that does not read is not told again.
const TELLING_WITHIN: Duration = Duration::from_secs(5);

/// Resources that one session, or one stream, may be subscribed to. Each holds a task of a few hundred bytes; a dashboard of
/// a home has fewer. One more is refused in a session, and not accepted in a stream.
pub const SUBSCRIPTIONS_MAX: usize = 64;

/// Why a subscription was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubscribed {
    /// There is no such resource for this caller.
    #[error("no such resource")]
    NoSuchResource,
    /// Too many.
    #[error("a session may be subscribed to {SUBSCRIPTIONS_MAX} resources at most")]
    TooMany,
}

/// What one session is subscribed to; ends with it.
#[derive(Debug, Default)]
pub(super) struct Subscribed(Mutex<HashMap<String, Ends>>);

/// A task that ends with its handle.
#[derive(Debug)]
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The way to a client.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// A session that may be told at any time.
    Session(Peer<RoleServer>),
    /// A stream that was opened to be told, with what it wants to hear.
    Stream(SubscriptionSink),
}

impl Line {
    /// Whether nobody listens any more.
    fn is_closed(&self) -> bool {
        match self {
            Self::Session(peer) => peer.is_transport_closed(),
            // What waits on a stream is dropped with it.
            Self::Stream(_) => false,
        }
    }

    fn wants_tools(&self) -> bool {
        match self {
            Self::Session(_) => true,
            Self::Stream(sink) => sink.accepted().tools_list_changed == Some(true),
        }
    }

    fn wants_resources(&self) -> bool {
        match self {
            Self::Session(_) => true,
            Self::Stream(sink) => sink.accepted().resources_list_changed == Some(true),
        }
    }

    /// Whether it was told.
    async fn tools_changed(&self) -> bool {
        in_time(async {
            match self {
                Self::Session(peer) => peer.notify_tool_list_changed().await.is_ok(),
                Self::Stream(sink) => sink.notify_tool_list_changed().await.is_ok(),
            }
        })
        .await
    }

    /// Whether it was told.
    async fn resources_changed(&self) -> bool {
        in_time(async {
            match self {
                Self::Session(peer) => peer.notify_resource_list_changed().await.is_ok(),
                Self::Stream(sink) => sink.notify_resource_list_changed().await.is_ok(),
            }
        })
        .await
    }

    /// Whether it was told.
    async fn updated(&self, uri: &str) -> bool {
        in_time(async {
            match self {
                Self::Session(peer) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
                }
                Self::Stream(sink) => sink.notify_resource_updated(uri).await.is_ok(),
            }
        })
        .await
    }
}

async fn in_time(telling: impl Future<Output = bool>) -> bool {
    tokio::time::timeout(TELLING_WITHIN, telling).await.unwrap_or(false)
}

/// What of a wanted stream is told: all lists that there are, and as many resources as may be. Whether a resource exists for
/// the caller is not said here: of one that does not, nothing is ever told.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let ours = |uris: &Vec<String>| {
        uris.iter().filter(|uri| uri.starts_with(SCHEME)).take(SUBSCRIPTIONS_MAX).cloned().collect::<Vec<_>>()
    };
    let mut accepted = requested.clone();
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(ours);
    accepted
}

impl Server {
    /// Tells one session whenever its tools or resources have changed, until it ends or its principal loses access.
    pub(super) async fn tell_changes(self, principal: Principal, line: Line) {
        let now = || self.guest(principal.clone(), "").map(|guest| self.house(&guest));
        let Some(mut told) = now() else { return };
        while !line.is_closed() {
            tokio::time::sleep(CHANGES_EVERY).await;
            let Some(now) = now() else { return };
            if Arc::ptr_eq(&told, &now) {
                continue;
            }
            if line.wants_tools() && now.tools != told.tools && !line.tools_changed().await {
                return;
            }
            if line.wants_resources() && now.resources != told.resources && !line.resources_changed().await {
                return;
            }
            told = now;
        }
    }

    /// Says in the log when a session has ended, beside the line of its beginning.
    pub(super) async fn tell_end(&self, peer: &Peer<RoleServer>, client: &str) {
        while !peer.is_transport_closed() {
            tokio::time::sleep(CHANGES_EVERY).await;
        }
        tracing::info!(transport = self.transport.as_str(), client, "mcp session ended");
        self.shared.observer.session_ended(self.transport.as_str(), client);
    }

    /// Subscribes a session to a resource; twice is once.
    ///
    /// # Errors
    /// [`NotSubscribed`].
    pub(super) async fn subscribe(
        &self,
        principal: &Principal,
        uri: &str,
        peer: Peer<RoleServer>,
    ) -> Result<(), NotSubscribed> {
        let follower = self.follower(principal, uri, Line::Session(peer)).await.ok_or(NotSubscribed::NoSuchResource)?;
        let mut all = self.subscribed.lock();
        all.retain(|_, task| !task.0.is_finished());
        if all.contains_key(uri) {
            return Ok(());
        }
        if all.len() >= SUBSCRIPTIONS_MAX {
            return Err(NotSubscribed::TooMany);
        }
        all.insert(uri.to_owned(), Ends(tokio::spawn(follower).abort_handle()));
        Ok(())
    }

    /// Ends a subscription of a session; one that it does not have is none.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
    }

    /// Serves one stream until its principal loses access or there is nothing left to tell.
    pub(super) async fn tell_stream(&self, principal: &Principal, sink: SubscriptionSink) {
        let line = Line::Stream(sink.clone());
        let mut followers = JoinSet::new();
        for uri in sink.accepted().resource_subscriptions.iter().flatten() {
            if let Some(follower) = self.follower(principal, uri, line.clone()).await {
                followers.spawn(follower);
            }
        }
        // The followers end with this future.
        self.clone().tell_changes(principal.clone(), line).await;
    }

    /// Whoever tells a client of the changes of one resource. `None`: there is none for this principal.
    async fn follower(
        &self,
        principal: &Principal,
        uri: &str,
        line: Line,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let guest = self.guest(principal.clone(), "")?;
        let kept = self.house(&guest);
        let permitted = kept.house.rights().look(&entry(&kept.house, uri)?.thing).ok()?;
        let changed = self.shared.fleet.changes(&permitted)?;
        let seen = self.seen(&guest, uri).await?.still();
        // Without the session's own handle, so that the session can end.
        let server = self.for_session();
        Some(server.follow(principal.clone(), uri.to_owned(), changed, seen, line))
    }

    /// Tells a client of the changes of one resource: those that it can see, until it may not read it any more, the device
    /// is removed, or the session ends.
    async fn follow(
        self,
        principal: Principal,
        uri: String,
        mut changed: watch::Receiver<u64>,
        mut told: crate::twin::view::View,
        line: Line,
    ) {
        while changed.changed().await.is_ok() && !line.is_closed() {
            let Some(guest) = self.guest(principal.clone(), "") else { return };
            let Some(seen) = self.seen(&guest, &uri).await else { return };
            let seen = seen.still();
            if seen == told {
                continue;
            }
            if !line.updated(&uri).await {
                return;
            }
            told = seen;
            tokio::time::sleep(UPDATES_EVERY).await;
        }
    }
}

impl Subscribed {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Ends>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
