//! Which requests of a session are being answered: two at once under one id would both be answered to the newer one, since
//! the SDK routes answers by the id alone. The second is told so instead, and the first gets its answer.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A session and the id of a request in it.
type Key = (String, String);

/// The requests that are being answered; as many as there are open ones, which the connections bound.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Arc<Mutex<HashSet<Key>>>);

/// One request that is being answered. The door and the handler hold it; when both have let go, its id is free again.
#[derive(Debug)]
pub(super) struct Held {
    all: InFlight,
    key: Key,
}

/// As much of a message as is looked at.
#[derive(Deserialize)]
struct Message {
    id: Option<Json>,
    method: Option<String>,
}

impl InFlight {
    /// Takes a request in: `Ok(None)` for what is no request with an id, which cannot be in anybody's way.
    ///
    /// # Errors
    /// The answer for a request whose id is that of another one in the same session.
    pub(super) fn take_in(&self, session: &str, body: &Bytes) -> Result<Option<Arc<Held>>, Box<Response>> {
        let Ok(Message { id: Some(id), method: Some(_) }) = serde_json::from_slice(body) else { return Ok(None) };
        let key = (session.to_owned(), id.to_string());
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
            return Ok(Some(Arc::new(Held { all: self.clone(), key })));
        }
        tracing::warn!("a second request under an id that is being answered was refused");
        let message =
            format!("a request with the id {id} is being answered in this session; each needs an id of its own");
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": message}});
        let content = [(header::CONTENT_TYPE, "application/json")];
        Err(Box::new((StatusCode::OK, content, error.to_string()).into_response()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
