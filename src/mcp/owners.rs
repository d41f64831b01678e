//! Whose each HTTP session is. A session's id says which one is meant, never who asks: with another's id and one's own
//! token, the session is as good as unknown.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use rmcp::transport::streamable_http_server::session::{SessionManager as _, local::LocalSessionManager};
use tokio_util::sync::CancellationToken;

use crate::authz::{Access, Principal};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// How often it is looked whether a session's principal has lost its access: its calls are refused at once, this ends what
/// the hub would tell it on its own.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The principals of the sessions; as many as there are sessions.
#[derive(Clone, Default)]
pub(super) struct Owners(Arc<Mutex<HashMap<String, Principal>>>);

impl Owners {
    /// The answer to a request for somebody else's session.
    pub(super) fn refuse(&self, headers: &HeaderMap, principal: &Principal) -> Option<Response> {
        let session = named(headers)?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The words that an unknown session gets.
        let is_others = all.get(session).is_some_and(|owner| owner != principal);
        is_others.then(|| (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response())
    }

    /// Notes a session that was opened; those that have ended are forgotten.
    pub(super) async fn opened(&self, headers: &HeaderMap, principal: &Principal, sessions: &LocalSessionManager) {
        let Some(session) = named(headers) else { return };
        let open = sessions.sessions.read().await;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known, _| open.contains_key(known.as_str()));
        all.insert(session.to_owned(), principal.clone());
    }

    /// Ends the sessions of principals that may nothing any more, until the hub stops.
    pub(super) async fn end_withdrawn(
        self,
        sessions: Arc<LocalSessionManager>,
        access: Arc<dyn Access>,
        stop: CancellationToken,
    ) {
        let mut seen = access.revision();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let revision = access.revision();
            if revision == seen {
                continue;
            }
            seen = revision;
            let withdrawn: Vec<String> = {
                let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let gone = all.iter().filter(|(_, owner)| access.policy(owner).is_none());
                let gone: Vec<String> = gone.map(|(session, _)| session.clone()).collect();
                gone.iter().for_each(|session| drop(all.remove(session)));
                gone
            };
            for session in withdrawn {
                if let Err(error) = sessions.close_session(&session.into()).await {
                    tracing::warn!(%error, "a session whose access was withdrawn did not end");
                }
            }
        }
    }
}

fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|id| id.to_str().ok())
}
