//! The MCP server: one handler for every transport (stdio, streamable HTTP), and the client half that the command
//! line uses.
//!
//! | file | what |
//! |---|---|
//! | `session` | who asks, and what holds for it |
//! | `call` | one call, whatever transport it came over |
//! | `noted` | what a call turned out to be about |
//! | `handler` | the SDK's requests, handed on to `call` |
//! | `progress` | how far a call is, for a client that asked for it |
//! | `resources`, `paging` | devices as resources, in pages |
//! | `subscriptions` | sessions and streams are told what has changed |
//! | `catalogue` | the tools as a model sees them |
//! | `house` | the devices that a caller may see, under unique names |
//! | `eyes` | what the fleet tells, cut to what the caller may see |
//! | `arguments` | arguments to request, or to the refusal that names the mistake |
//! | `tools` | request to answer |
//! | `confirm`, `person` | what has to be agreed to first, and how the person is asked |
//! | `together` | several wishes side by side: groups and scenes |
//! | `http`, `stdio` | transports |
//! | `owners` | whose each HTTP session is |
//! | `inflight` | which requests of a session are being answered |
//! | `delivery` | when an answer has left, so that a stop does not cut it off |
//! | `bridge`, `client` | the other side: towards a hub that runs already |
//!
//! It knows the fleet, names and sentences; it must not know topics, sessions of devices or how a wish is made true.
//! To add a tool: a variant of [`Tool`], its texts and schema in `catalogue`, its arguments in `arguments`, its call in
//! `tools`, the golden files in `tests/golden`.

mod arguments;
mod bridge;
mod call;
mod catalogue;
mod client;
mod confirm;
mod delivery;
mod eyes;
mod handler;
mod house;
mod http;
mod inflight;
mod noted;
mod owners;
mod paging;
mod person;
mod progress;
mod resources;
mod session;
mod stdio;
mod subscriptions;
mod together;
pub mod tools;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex},
};

use tokio_util::sync::CancellationToken;

use crate::{
    authz::{Access, Principal},
    fleet::Fleet,
    names::Scene,
    twin::words::RefusalWord,
};

pub use crate::authz::ANSWER_BY_MS;
pub use arguments::{Part, Refused, Request, Together, parse};
pub use bridge::{BridgeError, BridgeSettings, Whereabouts, run as bridge};
pub use call::{Call, Ended, NoAnswer, TurnedAway};
pub use catalogue::{CATALOGUE_BYTES_MAX, Tool, instructions, tool_list};
pub use client::{Called, Client, ClientError};
pub use confirm::Confirmer;
pub use house::{Entry, Group, House, Meant};
pub use http::{Http, router};
pub use noted::{Aim, Notes, Touched};
pub use paging::BadCursor;
pub use person::{Form, Person, Said, Show};
pub use progress::{Progress, Step};
pub use session::Guest;
pub use stdio::{StdioError, run as stdio};
pub use subscriptions::{NotSubscribed, SUBSCRIPTIONS_MAX};

/// Longest client name in a caller's identity and in logs, characters: it comes from outside.
const CLIENT_CHARS_MAX: usize = 32;

/// What is counted and kept of the calls. Implemented by the metrics; labels are closed sets, except a session's words.
pub trait Observer: Send + Sync + 'static {
    /// A call has ended, with its answer or because its client no longer waited.
    fn call(&self, ended: &Ended<'_>);
    /// A call ended with a question that its client puts to the person, and calls again: so far there is no answer.
    fn asks_first(&self, _: &Ended<'_>) {}
    /// A call was turned away before anything of it was looked at.
    fn turned_away(&self, _: &TurnedAway<'_>) {}
    /// The arguments of a call were refused, so that the fleet was not asked; what the fleet refuses it counts itself.
    fn refused(&self, refusal: RefusalWord);
    /// A tool panicked; its caller was answered `unconfirmed`.
    fn panicked(&self);
    /// A session began: transport, protocol version, client.
    fn session(&self, transport: &'static str, protocol: &str, client: &str);
    /// A session ended: transport, client.
    fn session_ended(&self, _transport: &'static str, _client: &str) {}
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn call(&self, _: &Ended<'_>) {}
    fn refused(&self, _: RefusalWord) {}
    fn panicked(&self) {}
    fn session(&self, _: &'static str, _: &str, _: &str) {}
}

/// How a client reaches the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One client on standard input and output.
    Stdio,
    /// Any number of clients over streamable HTTP.
    Http,
}

impl Transport {
    /// The word in callers, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// The MCP server: cheap to clone, one for all sessions.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    transport: Transport,
    /// What this session is subscribed to.
    subscribed: Arc<subscriptions::Subscribed>,
    /// Cancelled when the hub stops: what only listens ends then.
    closing: CancellationToken,
}

struct Shared {
    fleet: Fleet,
    access: Arc<dyn Access>,
    scenes: Arc<[Scene]>,
    observer: Arc<dyn Observer>,
    confirmer: Arc<Confirmer>,
    /// The house of each principal that has asked; as many as there are principals.
    houses: Mutex<HashMap<Principal, Arc<Kept>>>,
    latest: together::Latest,
    /// Words of policies that select nothing, as far as they were told.
    unmatched: Mutex<HashSet<(Principal, String)>>,
}

/// A house and its catalogue, as of one revision of the fleet and one of the policies.
struct Kept {
    revision: (u64, u64),
    house: House,
    tools: Vec<rmcp::model::Tool>,
    /// In the order of their URIs.
    resources: Vec<rmcp::model::Resource>,
}

impl Server {
    /// A server for one transport.
    pub fn new(
        fleet: Fleet,
        access: Arc<dyn Access>,
        scenes: Arc<[Scene]>,
        transport: Transport,
        observer: Arc<dyn Observer>,
        confirmer: Arc<Confirmer>,
    ) -> Self {
        let (houses, latest) = (Mutex::default(), together::Latest::default());
        let unmatched = Mutex::default();
        let shared = Arc::new(Shared { fleet, access, scenes, observer, confirmer, houses, latest, unmatched });
        Self { shared, transport, subscribed: Arc::default(), closing: CancellationToken::new() }
    }

    /// The same server for one more session, which is subscribed to nothing.
    #[must_use]
    fn for_session(&self) -> Self {
        Self { subscribed: Arc::default(), ..self.clone() }
    }

    /// The same server, catalogues and all, for another transport.
    #[must_use]
    pub fn over(&self, transport: Transport) -> Self {
        Self { transport, ..self.clone() }
    }

    /// Says in the log what is offered, once a transport begins.
    fn announce(&self, principal: Principal) {
        let Some(guest) = self.guest(principal, "") else { return };
        let kept = self.house(&guest);
        let names: Vec<&str> = kept.tools.iter().map(|t| &*t.name).collect();
        tracing::info!(transport = self.transport.as_str(), devices = kept.house.entries().len(), tools = ?names, "mcp tools registered");
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("transport", &self.transport).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
