//! Who asks over HTTP: whose bearer token a request brings. Wrong ones are refused, and slowly once there were several.
//!
//! Reads headers only, and only of requests to this port; what a principal may, [`super::access`] says.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::sync::Semaphore;

use crate::{authz::Principal, config, data::Tokens};

/// So many wrong tokens are answered at once: a client with an old token tries a few times.
const FREE: u32 = 5;

/// How long wrong tokens are remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// How long each further wrong one waits for its answer. With [`WAITING_MAX`] at once, 4 a second can be tried; of 128 random
/// bits that is nothing, and the hub does not work for it.
const PENALTY: Duration = Duration::from_secs(1);

/// Wrong tokens that wait for their answer. One more is refused at once with 429, so that they fill no connections.
const WAITING_MAX: usize = 4;

/// The shortest time between two lines in the log about wrong tokens.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// The one who looks at tokens.
#[derive(Clone)]
pub(super) struct Bearer(Arc<Inner>);

struct Inner {
    tokens: Tokens,
    required: bool,
    /// Wrong tokens since the first of the last minute, and when that was.
    wrong: Mutex<Option<(Instant, u32)>>,
    said: Mutex<Option<Instant>>,
    waiting: Semaphore,
}

/// What a request brings.
enum Brought {
    Nothing,
    Token(Principal),
    Wrong,
}

impl Bearer {
    pub(super) fn new(tokens: Tokens, wanted: config::Tokens) -> Self {
        let required = wanted == config::Tokens::Required;
        let (wrong, said, waiting) = (Mutex::default(), Mutex::default(), Semaphore::new(WAITING_MAX));
        Self(Arc::new(Inner { tokens, required, wrong, said, waiting }))
    }

    fn brought(&self, headers: &HeaderMap) -> Brought {
        let mut all = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = all.next() else { return Brought::Nothing };
        // The scheme is case-insensitive (RFC 9110, 11.1); a second header would leave open which one counts.
        let token = value.to_str().ok().and_then(|value| value.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") && all.next().is_none());
        let name = token.and_then(|(_, token)| self.0.tokens.verify(token.trim().as_bytes()));
        name.map_or(Brought::Wrong, |name| Brought::Token(Principal::Token(name)))
    }

    /// Refuses a wrong token: at once, later, or not even that.
    async fn wrong(&self) -> Response {
        let inner = &*self.0;
        let count = {
            let mut wrong = inner.wrong.lock().unwrap_or_else(PoisonError::into_inner);
            let (since, count) = wrong.filter(|(since, _)| since.elapsed() < REMEMBERED).unwrap_or((Instant::now(), 0));
            *wrong = Some((since, count.saturating_add(1)));
            count
        };
        {
            let mut said = inner.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.is_none_or(|at| at.elapsed() >= SAID_EVERY) {
                *said = Some(Instant::now());
                tracing::warn!("refused: a wrong http token; `truetwin token list` shows those there are");
            }
        }
        if count >= FREE {
            let Ok(_place) = inner.waiting.try_acquire() else {
                return (StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens\n").into_response();
            };
            tokio::time::sleep(PENALTY).await;
        }
        unauthorized("Bearer error=\"invalid_token\"", "the token is wrong, or was revoked\n")
    }
}

/// Finds out who asks, for those behind it.
pub(super) async fn identify(State(bearer): State<Bearer>, mut request: Request, next: Next) -> Response {
    let principal = match bearer.brought(request.headers()) {
        Brought::Token(principal) => principal,
        Brought::Nothing if !bearer.0.required => Principal::Http,
        Brought::Nothing => {
            return unauthorized(
                "Bearer",
                "a token is needed: Authorization: Bearer TOKEN (truetwin token add makes one)\n",
            );
        }
        Brought::Wrong => return bearer.wrong().await,
    };
    request.extensions_mut().insert(principal);
    next.run(request).await
}

fn unauthorized(challenge: &'static str, text: &'static str) -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], text).into_response()
}
