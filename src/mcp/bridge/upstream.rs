//! The bridge's side towards the hub: its connections, found again when they are lost, and what the hub says unasked.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex as Now, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient, RoleServer,
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, ClientResult, ElicitRequest, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, PingRequest, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, RequestMetaObject, ResourceUpdatedNotificationParam, ServerRequest, SubscribeRequestParams,
    },
    service::{ClientLifecycleMode, NotificationContext, Peer, RequestContext, RunningService},
};
use tokio::sync::{Mutex, mpsc};

use super::{BridgeError, Whereabouts};
use crate::mcp::{
    ClientError, SUBSCRIPTIONS_MAX,
    client::{connect, this_client},
};

/// How long a hub may take to say that it is there, or to open a session. It does neither with devices, so a second is long.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// Steps of one call that wait for a client that does not read; more are not told.
const UNTOLD_MAX: usize = 16;

/// The connections with the hub.
pub(super) struct Upstream {
    whereabouts: Whereabouts,
    /// The bearer token that the hub wants, if it wants one.
    token: Option<Arc<str>>,
    ear: Ear,
    /// The session; `None` after it was lost.
    session: Mutex<Option<Session>>,
    /// For requests without a session; `None` until one was made, and after the hub was lost.
    sessionless: Mutex<Option<RunningService<RoleClient, Ear>>>,
    /// What the client is subscribed to, so that a hub that was restarted is told; bounded as the hub bounds it.
    subscribed: Now<BTreeSet<String>>,
}

struct Session {
    running: RunningService<RoleClient, Ear>,
    /// What the hub was told of questions that the client can put to a person.
    shows: Option<ElicitationCapability>,
}

/// What the hub says unasked, handed to the client.
#[derive(Clone, Default)]
struct Ear(Arc<Heard>);

#[derive(Default)]
struct Heard {
    /// The client, if it has opened a session.
    client: Now<Option<Peer<RoleServer>>>,
    /// What that client can put to a person.
    shows: Now<Option<ElicitationCapability>>,
    /// The calls that are on their way and whose clients want to hear how far they are.
    calls: Now<HashMap<ProgressToken, Call>>,
}

struct Call {
    told: f64,
    steps: mpsc::Sender<ProgressNotificationParam>,
}

/// The steps of one call, in order; forgotten with it, so that nothing is told after its answer.
pub(super) struct Steps {
    ear: Ear,
    token: ProgressToken,
    steps: mpsc::Receiver<ProgressNotificationParam>,
}

impl Steps {
    /// The next one.
    pub(super) async fn next(&mut self) -> ProgressNotificationParam {
        match self.steps.recv().await {
            Some(step) => step,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        lock(&self.ear.0.calls).remove(&self.token);
    }
}

impl Upstream {
    /// Opens a session with the hub; what the hub says of itself comes along.
    pub(super) async fn connected(
        whereabouts: Whereabouts,
        token: Option<Arc<str>>,
    ) -> Result<(Self, Option<String>), BridgeError> {
        let url = whereabouts().unwrap_or_default();
        let ear = Ear::default();
        let session = Session::open(&url, token.as_deref(), &ear, None).await?;
        tracing::info!(url, "standard input is bridged to the hub");
        let instructions = session.running.peer().peer_info().and_then(|hub| hub.instructions.clone());
        let (session, sessionless) = (Mutex::new(Some(session)), Mutex::new(None));
        Ok((Self { whereabouts, token, ear, session, sessionless, subscribed: Now::default() }, instructions))
    }

    /// The client has opened a session, and can put such questions to a person.
    pub(super) fn serve(&self, client: Peer<RoleServer>, shows: Option<ElicitationCapability>) {
        *lock(&self.ear.0.client) = Some(client);
        *lock(&self.ear.0.shows) = shows;
    }

    /// The hub's side of a session that has just answered; a new session if the old one does not, or says too little of the
    /// client. `None`: no hub is there, and nothing was sent to any.
    pub(super) async fn session(&self) -> Option<Peer<RoleClient>> {
        // One caller looks for the hub at a time; the others find what it found.
        let mut kept = self.session.lock().await;
        let shows = lock(&self.ear.0.shows).clone();
        let fits = kept.take_if(|session| session.shows != shows);
        if let Some(unfit) = fits {
            // Nothing was asked for through it yet: the client had not said what it can.
            let _ended_either_way = unfit.running.cancel().await;
        } else if let Some(session) = &*kept {
            if answers(session.running.peer()).await {
                return Some(session.running.peer().clone());
            }
            // Whatever calls it still holds end with it, as not known.
            *kept = None;
        }
        let url = (self.whereabouts)()?;
        let session = in_time(&url, Session::open(&url, self.token.as_deref(), &self.ear, shows)).await?;
        let peer = session.running.peer().clone();
        self.subscribe_again(&peer).await;
        *kept = Some(session);
        Some(peer)
    }

    /// The hub's side for requests without a session. `None`: no hub is there.
    pub(super) async fn sessionless(&self) -> Option<Peer<RoleClient>> {
        let mut kept = self.sessionless.lock().await;
        if let Some(running) = &*kept {
            // There is no ping without a session; what the hub is can be asked at any time.
            let asked = running.peer().discover(RequestMetaObject::default());
            if matches!(tokio::time::timeout(PROBE_WITHIN, asked).await, Ok(Ok(_))) {
                return Some(running.peer().clone());
            }
            *kept = None;
        }
        let url = (self.whereabouts)()?;
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let running = in_time(&url, connect(&url, self.token.as_deref(), self.ear.clone(), mode)).await?;
        let peer = running.peer().clone();
        *kept = Some(running);
        Some(peer)
    }

    /// The steps of a call, by the token that the hub knows.
    pub(super) fn steps_of(&self, token: &ProgressToken) -> Steps {
        let (steps, told) = mpsc::channel(UNTOLD_MAX);
        lock(&self.ear.0.calls).insert(token.clone(), Call { told: 0.0, steps });
        Steps { ear: self.ear.clone(), token: token.clone(), steps: told }
    }

    /// The client is subscribed to this.
    pub(super) fn remember(&self, uri: String) {
        let mut all = lock(&self.subscribed);
        if all.len() < SUBSCRIPTIONS_MAX {
            all.insert(uri);
        }
    }

    /// It no longer is.
    pub(super) fn forget(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// A new session of the hub knows of no subscriptions; what is gone meanwhile is none any more.
    #[expect(deprecated, reason = "the way of sessions")]
    async fn subscribe_again(&self, hub: &Peer<RoleClient>) {
        let all: Vec<String> = lock(&self.subscribed).iter().cloned().collect();
        for uri in all {
            if hub.subscribe(SubscribeRequestParams::new(uri.clone())).await.is_err() {
                self.forget(&uri);
            }
        }
    }

    /// Ends the sessions.
    pub(super) async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            let _ended_either_way = session.running.cancel().await;
        }
        if let Some(running) = self.sessionless.lock().await.take() {
            let _ended_either_way = running.cancel().await;
        }
    }
}

impl Session {
    async fn open(
        url: &str,
        token: Option<&str>,
        ear: &Ear,
        shows: Option<ElicitationCapability>,
    ) -> Result<Self, ClientError> {
        let running = connect(url, token, ear.clone(), ClientLifecycleMode::Initialize).await?;
        Ok(Self { running, shows })
    }
}

async fn answers(hub: &Peer<RoleClient>) -> bool {
    let ping = hub.send_request(ClientRequest::PingRequest(PingRequest::default()));
    matches!(tokio::time::timeout(PROBE_WITHIN, ping).await, Ok(Ok(_)))
}

async fn in_time<T>(url: &str, connecting: impl Future<Output = Result<T, ClientError>>) -> Option<T> {
    match tokio::time::timeout(PROBE_WITHIN, connecting).await {
        Ok(Ok(connected)) => {
            tracing::debug!(url, "the hub was found");
            Some(connected)
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "no hub is there");
            None
        }
        Err(_elapsed) => {
            tracing::error!(url, "the hub does not open a session");
            None
        }
    }
}

impl Ear {
    fn client(&self) -> Option<Peer<RoleServer>> {
        lock(&self.0.client).clone()
    }
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default(); // non-exhaustive: no other way
        can.elicitation = lock(&self.0.shows).clone();
        ClientConfig::new(can, this_client())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(client) = self.client() else { return Ok(ElicitResult::new(ElicitationAction::Decline)) };
        let question = client.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(request)));
        tokio::select! {
            said = question => match said {
                Ok(ClientResult::ElicitResult(said)) => Ok(said),
                Ok(_) => Err(ErrorData::internal_error("the client gave no answer to a question", None)),
                Err(error) => {
                    Err(ErrorData::internal_error(format!("the client did not put the question: {error}"), None))
                }
            },
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Each note of the hub has a task of its own: one that was overtaken is old and not told.
        let mut calls = lock(&self.0.calls);
        if let Some(call) = calls.get_mut(&step.progress_token).filter(|call| call.told < step.progress) {
            call.told = step.progress;
            let _client_does_not_read = call.steps.try_send(step);
        }
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(client) = self.client() {
            let _client_gone = client.notify_resource_updated(params).await;
        }
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(client) = self.client() {
            let _client_gone = client.notify_resource_list_changed().await;
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(client) = self.client() {
            let _client_gone = client.notify_tool_list_changed().await;
        }
    }
}

fn lock<T>(mutex: &Now<T>) -> std::sync::MutexGuard<'_, T> {
    // Every write is one assignment: a panic beside the lock leaves nothing half-done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
