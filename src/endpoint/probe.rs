//! Whether a relay leads to this hub, asked from its callers' side: the same token opens it. `ping` has no effect.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value as Json;
use tokio_tungstenite::tungstenite::Message;

use super::{
    Address, End, EndWord, Network, Tuning,
    dial::{Dialler, Line},
    supervisor::Post,
};

/// What is asked. Any id but 0 will do: a relay loses the answer to 0.
const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

/// What a relay answers when no tool side is registered for the token.
const NOT_CONNECTED: i64 = -32_001;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A question comes back to this hub and is answered, so soon.
    Routed(Duration),
    /// The relay knows of no tool side: where there is a connection, it is a dead one, and has to be made anew.
    NotRegistered,
    /// The relay takes a question and says nothing. Either the line to it was cut off, which both ends notice within a minute;
    /// or it hangs, for all its agents: then mcp-endpoint-server has to be restarted.
    Hangs,
    /// The relay answers with another error.
    Refused(String),
    /// The relay cannot be reached, or takes no caller.
    Unreachable(End),
    /// The official access point has no callers' side.
    NoWay,
}

impl Probe {
    /// The word in lists.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Routed(_) => "routed",
            Self::NotRegistered => "not_registered",
            Self::Hangs => "hangs",
            Self::Refused(_) => "refused",
            Self::Unreachable(_) => "unreachable",
            Self::NoWay => "no_way",
        }
    }
}

/// Asks.
pub(super) async fn probe(post: &Arc<Post>) -> Probe {
    probe_at(&post.dialler, &post.settings.address, &post.tuning).await
}

/// Asks where no hub runs: whether a relay is there, takes the token, and leads anywhere.
pub async fn probe_alone(address: &Address) -> Probe {
    probe_at(&Dialler::new(Arc::new(Network), &[]), address, &Tuning::default()).await
}

/// Dials the official access point where no hub runs, waits for its first word, and hangs up: whether it takes the token.
///
/// # Errors
/// How it ended instead.
pub async fn greeted_alone(address: &Address) -> Result<(), End> {
    let tuning = Tuning::default();
    let dialler = Dialler::new(Arc::new(Network), &[]);
    let mut line = dialler.dial(address.reveal(), address.authority(), tuning.dial).await?;
    let first = tokio::time::timeout(tuning.dial, line.next()).await;
    let _best_effort = tokio::time::timeout(tuning.close, line.close(None)).await;
    match first {
        Ok(Some(Ok(Message::Close(Some(frame))))) => {
            Err(End::closed(frame.code.into(), &frame.reason, super::Profile::Official))
        }
        Ok(Some(Ok(Message::Close(None)) | Err(_)) | None) => Err(End::new(EndWord::Dropped)),
        Ok(Some(Ok(_))) => Ok(()),
        Err(_) => Err(End::new(EndWord::Silent)),
    }
}

async fn probe_at(dialler: &Dialler, address: &Address, tuning: &Tuning) -> Probe {
    let Some(url) = address.call_side() else { return Probe::NoWay };
    let began = Instant::now();
    let mut line = match dialler.dial(&url, address.authority(), tuning.dial).await {
        Ok(line) => line,
        Err(end) => return Probe::Unreachable(end),
    };
    let asked = tokio::time::timeout(tuning.write, ask(&mut line)).await;
    let closing = tokio::time::timeout(tuning.close, line.close(None));
    let _best_effort = closing.await;
    match asked {
        Err(_) | Ok(Err(None)) => Probe::Hangs,
        Ok(Err(Some(end))) => Probe::Unreachable(end),
        Ok(Ok(answer)) if answer["error"]["code"] == NOT_CONNECTED => Probe::NotRegistered,
        Ok(Ok(answer)) if answer["error"].is_object() => {
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            Probe::Refused(End::with(EndWord::Closed, None, message).said)
        }
        Ok(Ok(_)) => Probe::Routed(began.elapsed()),
    }
}

/// The answer to the question; how the line ended, if it did; `None`: nothing came.
async fn ask(line: &mut Line) -> Result<Json, Option<End>> {
    line.send(Message::text(PING)).await.map_err(|_| None)?;
    while let Some(message) = line.next().await {
        match message {
            Ok(Message::Text(text)) => {
                let answer = serde_json::from_str::<Json>(&text).unwrap_or_default();
                if answer["id"] == 7 || answer["id"] == "7" {
                    return Ok(answer);
                }
            }
            Ok(Message::Close(Some(frame))) => {
                return Err(Some(End::closed(frame.code.into(), &frame.reason, super::Profile::Relay)));
            }
            Ok(_) => {}
            Err(_) => return Err(None),
        }
    }
    Err(None)
}
