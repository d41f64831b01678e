//! The server over streamable HTTP, as a router for `/mcp`: sessions for older clients, requests without a session for
//! those of 2026-07-28, by the same service.
//!
//! Other hosts and origins than the hub's own are refused, so that no web page can reach it through a browser. Who asks, the
//! composition root's door has found out from the token and left as a [`Principal`] in the request.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Server, delivery::Delivered, inflight::InFlight, owners::Owners};
use crate::authz::Principal;

/// The largest request, bytes. The longest call is a few hundred; the SDK's 4 MiB would be for uploads.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// How long a request may take to arrive whole: its client is slow, or holds a connection for nothing.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// How long a stop waits for answers to reach their clients. The hub answers everybody before it stops HTTP; what is
/// left is writing them out.
const DELIVERY_MAX: Duration = Duration::from_secs(1);

/// How long a session keeps an answered call for a client whose stream broke just then. The SDK looks through all kept
/// calls at each new one and bounds only their age: at its 60 s, a client that calls without a pause filled 200 MB and
/// made each of its calls take longer. With none, an answer is kept until the session's next call, so a client that comes
/// back for it first still gets it; `check_operation` tells what became of any.
const ANSWERS_KEPT: Duration = Duration::ZERO;

/// Events of one call that wait for a slow client, and that are kept for one that comes back. A call has two (its stream's
/// beginning, its answer); the SDK sets memory aside for all of them at each call, and the session waits when they are full.
const EVENTS_KEPT: usize = 6;

/// The protocol version from which on requests have no session.
const SESSIONLESS_FROM: &str = "2026-07-28";

/// What the HTTP transport is told.
#[derive(Clone, Debug)]
pub struct Http {
    /// Ends all sessions and open streams when cancelled; without it a long-lived stream would hold the stop up. Answers
    /// that are on their way are written out first, for at most a second.
    pub stop: CancellationToken,
    /// How many sessions may be open. The SDK has no limit of its own, and each holds tasks and buffers; idle ones end
    /// after five minutes. At the limit a new session is refused with 503; those that are open go on.
    pub sessions_max: usize,
    /// Host names that may be asked for beside those of this machine; `None`: whoever routes here has looked at it.
    pub hosts: Option<Vec<String>>,
}

impl Http {
    /// Enough for a home with several assistants, few enough not to matter for memory.
    pub const SESSIONS_MAX: usize = 64;

    /// The defaults, with a token to stop by.
    pub fn new(stop: CancellationToken) -> Self {
        Self { stop, sessions_max: Self::SESSIONS_MAX, hosts: Some(Vec::new()) }
    }
}

#[derive(Clone)]
struct Door {
    sessions: Arc<LocalSessionManager>,
    sessions_max: usize,
    /// How many requests have come whose answers are not written out yet.
    open: watch::Sender<usize>,
    in_flight: InFlight,
    owners: Owners,
}

/// The routes of the MCP server: `/mcp`. The listener must set TCP_NODELAY, or each answer of a stream waits 40 ms.
pub fn router(server: Server, http: Http) -> Router {
    server.announce(Principal::Http);
    let server = Server { closing: http.stop.clone(), ..server };
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config();
    let sessions = Arc::new(sessions);
    let (open, unanswered) = watch::channel(0);
    let end_sessions = CancellationToken::new();
    let owners = Owners::default();
    let access = server.shared.access.clone();
    tokio::spawn(owners.clone().end_withdrawn(sessions.clone(), access, http.stop.clone()));
    tokio::spawn(end_after_answers(http.stop, unanswered, end_sessions.clone()));
    let hosts = http
        .hosts
        .as_ref()
        .map(|more| ["localhost", "127.0.0.1", "::1"].into_iter().chain(more.iter().map(String::as_str)));
    let more_origins =
        http.hosts.iter().flatten().flat_map(|host| [format!("http://{host}:*"), format!("https://{host}:*")]);
    let origins = ["http://localhost:*", "http://127.0.0.1:*"].map(str::to_owned).into_iter().chain(more_origins);
    let config = StreamableHttpServerConfig::default();
    let config = match hosts {
        Some(hosts) => config.with_allowed_hosts(hosts),
        None => config.disable_allowed_hosts(),
    };
    let config = config
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(REQUEST_BYTES_MAX)
        .with_cancellation_token(end_sessions);
    let service = StreamableHttpService::new(move || Ok(server.for_session()), sessions.clone(), config);
    let door = Door { sessions, sessions_max: http.sessions_max, open, in_flight: InFlight::default(), owners };
    Router::new().route_service("/mcp", service).layer(middleware::from_fn_with_state(door, pass))
}

fn session_config() -> SessionConfig {
    let mut config = SessionConfig::default(); // non-exhaustive: no other way
    config.completed_cache_ttl = ANSWERS_KEPT;
    config.channel_capacity = EVENTS_KEPT;
    config
}

/// The SDK cuts a session's streams at once when it is told to stop, answers that were just given and all: so it is told
/// only when they are written out.
async fn end_after_answers(stop: CancellationToken, mut unanswered: watch::Receiver<usize>, end: CancellationToken) {
    stop.cancelled().await;
    let written = unanswered.wait_for(|open| *open == 0);
    if tokio::time::timeout(DELIVERY_MAX, written).await.is_err() {
        tracing::warn!("mcp requests are still open at the stop, their connections are cut");
    }
    end.cancel();
}

/// Refuses to open one session too many, and counts what is not answered yet. Sessions are counted before one is opened,
/// so a burst may overshoot by as many as arrive in the same instant; the bound is against growth, not to the last one.
async fn pass(State(door): State<Door>, request: Request, next: Next) -> Response {
    let principal = request.extensions().get::<Principal>().cloned().unwrap_or(Principal::Http);
    if let Some(refused) = door.owners.refuse(request.headers(), &principal) {
        return refused;
    }
    let opens = opens_session(&request);
    if opens && door.sessions.sessions.read().await.len() >= door.sessions_max {
        tracing::warn!(limit = door.sessions_max, "too many mcp sessions, a new one was refused");
        let text = format!("too many mcp sessions: {} are open, idle ones end after five minutes", door.sessions_max);
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    // A GET is a stream that waits for what the hub may say; only its end ends it.
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let delivered = Delivered::expected(door.open);
    let (mut parts, body) = request.into_parts();
    let body = match tokio::time::timeout(REQUEST_WITHIN, axum::body::to_bytes(body, REQUEST_BYTES_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let text = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, "the request did not come in time").into_response(),
    };
    let session = parts.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    let held = match session.map(|session| door.in_flight.take_in(session, &body)) {
        None | Some(Ok(None)) => None,
        Some(Ok(Some(held))) => {
            // The handler's context keeps the request's extensions: as long as it works, the id is taken.
            parts.extensions.insert(held.clone());
            Some(held)
        }
        Some(Err(refused)) => return *refused,
    };
    let request = Request::from_parts(parts, Body::from(body));
    let response = next.run(request).await;
    if opens {
        door.owners.opened(response.headers(), &principal, &door.sessions).await;
    }
    let (head, body) = response.into_parts();
    Response::from_parts(head, Body::new(delivered.with(body, held).await))
}

/// Whether a request would open a session: a POST that names none and does not speak a version without sessions.
fn opens_session(request: &Request) -> bool {
    let headers = request.headers();
    let sessionless = headers.get("mcp-protocol-version").is_some_and(|v| v.as_bytes() >= SESSIONLESS_FROM.as_bytes());
    request.method() == Method::POST && !headers.contains_key("mcp-session-id") && !sessionless
}
