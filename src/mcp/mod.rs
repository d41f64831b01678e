//! The MCP server: one handler for every transport (stdio, streamable HTTP), and the client half that the command
//! line uses.
//!
//! | file | what |
//! |---|---|
//! | `catalogue` | the tools as a model sees them |
//! | `house` | the devices under unique names |
//! | `arguments` | arguments to request, or to the refusal that names the mistake |
//! | `tools` | request to answer |
//! | `together` | several wishes side by side: groups and scenes |
//! | `http`, `stdio` | transports |
//! | `inflight` | which requests of a session are being answered |
//! | `delivery` | when an answer has left, so that a stop does not cut it off |
//! | `bridge`, `client` | the other side: towards a hub that runs already |
//!
//! It knows the fleet, names and sentences; it must not know topics, sessions of devices or how a wish is made true.
//! To add a tool: a variant of [`Tool`], its texts and schema in `catalogue`, its arguments in `arguments`, its call in
//! `tools`, the golden files in `tests/golden`.

mod arguments;
mod bridge;
mod catalogue;
mod client;
mod delivery;
mod house;
mod http;
mod inflight;
mod stdio;
mod together;
pub mod tools;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::{Duration, Instant},
};

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{NotificationContext, Peer, RequestContext},
};

use crate::{
    answer::{self, Rendered},
    fleet::{Caller, Fleet},
    names::{Lang, Scene},
    twin::words::RefusalWord,
};

pub use arguments::{Part, Refused, Request, Together, parse};
pub use bridge::{BridgeError, BridgeSettings, Whereabouts, run as bridge};
pub use catalogue::{CATALOGUE_BYTES_MAX, Tool, instructions, tool_list};
pub use client::{Called, Client, ClientError};
pub use house::{Entry, Group, House, Meant, Switch};
pub use http::{Http, router};
pub use stdio::{StdioError, run as stdio};

/// How long a caller waits for its answer if it says nothing else, milliseconds (semantics 4.2).
pub const ANSWER_BY_MS: u64 = 30_000;

/// How often a session looks whether its tools have changed.
const CHANGES_EVERY: Duration = Duration::from_secs(1);

/// How long telling a client may take; one that does not read is not told again.
const TELLING_WITHIN: Duration = Duration::from_secs(5);

/// Longest client name in a caller's identity and in logs, characters: it comes from outside.
const CLIENT_CHARS_MAX: usize = 32;

/// How much of a session id identifies a caller, characters. The whole id would let a reader of a log take the session
/// over; eight hexadecimal digits tell sessions apart.
const SESSION_CHARS: usize = 8;

/// What is counted of the calls. Implemented by the metrics; labels are closed sets, except a session's words.
pub trait Observer: Send + Sync + 'static {
    /// A call was answered: its tool, its result ([`answer::ResultWord`] or `cancelled`), and how long it took.
    fn call(&self, tool: &'static str, result: &'static str, elapsed: Duration);
    /// The arguments of a call were refused, so that the fleet was not asked; what the fleet refuses it counts itself.
    fn refused(&self, refusal: RefusalWord);
    /// A tool panicked; its caller was answered `unconfirmed`.
    fn panicked(&self);
    /// A session began: transport, protocol version, client.
    fn session(&self, transport: &'static str, protocol: &str, client: &str);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn call(&self, _: &'static str, _: &'static str, _: Duration) {}
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

/// What the handler is told at construction.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The language of tools and answers.
    pub lang: Lang,
    /// How long a caller waits for its answer, milliseconds; [`ANSWER_BY_MS`] unless the owner chose another.
    pub answer_by_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lang: Lang::default(), answer_by_ms: ANSWER_BY_MS }
    }
}

/// The MCP server's handler: cheap to clone, one for all sessions.
#[derive(Clone)]
pub struct Server {
    fleet: Fleet,
    settings: Settings,
    scenes: Arc<[Scene]>,
    transport: Transport,
    observer: Arc<dyn Observer>,
    kept: Arc<Mutex<Option<Arc<Kept>>>>,
    latest: Arc<together::Latest>,
}

/// A house and its catalogue, as of one revision of the fleet.
struct Kept {
    revision: u64,
    house: House,
    tools: Vec<rmcp::model::Tool>,
}

impl Server {
    /// A handler for one transport, without scenes.
    pub fn new(fleet: Fleet, settings: Settings, transport: Transport, observer: Arc<dyn Observer>) -> Self {
        Self {
            fleet,
            settings,
            scenes: Arc::default(),
            transport,
            observer,
            kept: Arc::default(),
            latest: Arc::default(),
        }
    }

    /// The same with scenes.
    #[must_use]
    pub fn with_scenes(self, scenes: Arc<[Scene]>) -> Self {
        Self { scenes, ..self }
    }

    /// The same handler, catalogue and all, for another transport.
    #[must_use]
    pub fn over(&self, transport: Transport) -> Self {
        Self { transport, ..self.clone() }
    }

    /// The house as it is now; built anew only when the fleet's revision has changed.
    fn house(&self) -> Arc<Kept> {
        // Read before the cards: a change in between is then seen again by the next call instead of being missed.
        let revision = self.fleet.revision();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(known) if known.revision == revision => known.clone(),
            Some(_) | None => {
                let house = House::new(&self.fleet.cards(), self.scenes.clone(), self.settings.lang);
                let tools = tool_list(&house);
                let fresh = Arc::new(Kept { revision, house, tools });
                *kept = Some(fresh.clone());
                fresh
            }
        }
    }

    /// An answer with what is owed to its caller in front (semantics 6.3).
    fn corrected(&self, rendered: Rendered, caller: &Caller) -> Rendered {
        let owed = self.fleet.corrections_for(caller);
        if owed.is_empty() {
            return rendered;
        }
        let house = &self.house().house;
        let named = owed.into_iter().map(|correction| {
            let naming = house.naming(&correction.device, Some(&correction.settled.property));
            (correction.settled, naming)
        });
        rendered.corrected(&named.collect::<Vec<_>>(), house.lang())
    }

    /// Tells one session whenever the tools have changed, until it ends. Devices that greet one after the other are one
    /// change a second at most.
    async fn tell_changes(self, peer: Peer<RoleServer>) {
        let mut told = self.house();
        while !peer.is_transport_closed() {
            tokio::time::sleep(CHANGES_EVERY).await;
            let now = self.house();
            if Arc::ptr_eq(&told, &now) {
                continue;
            }
            if now.tools != told.tools {
                let telling = tokio::time::timeout(TELLING_WITHIN, peer.notify_tool_list_changed()).await;
                if !matches!(telling, Ok(Ok(()))) {
                    return;
                }
            }
            told = now;
        }
    }

    /// Says in the log what is offered, once a transport begins.
    fn announce(&self) {
        let kept = self.house();
        let names: Vec<&str> = kept.tools.iter().map(|t| &*t.name).collect();
        tracing::info!(transport = self.transport.as_str(), devices = kept.house.entries().len(), tools = ?names, "mcp tools registered");
    }

    /// Who asks: known from the session, never from the arguments.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        match self.transport {
            Transport::Stdio => Caller("stdio".into()),
            Transport::Http => {
                let client = context.client_info().map_or_else(|| "unknown".to_owned(), |c| client_name(&c));
                let session = context
                    .extensions
                    .get::<Parts>()
                    .and_then(|parts| parts.headers.get("mcp-session-id"))
                    .and_then(|id| id.to_str().ok())
                    .map(|id| id.chars().take(SESSION_CHARS).collect::<String>());
                session.map_or_else(
                    || Caller::without_session(&client),
                    |session| Caller(format!("http:{client}:{session}").into()),
                )
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.settings)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(self.settings.lang))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(peer) = context.peer.peer_info() else { return };
        let (protocol, client) = (peer.protocol_version.as_str(), client_name(&peer.client_info));
        let version: String = peer.client_info.version.chars().take(CLIENT_CHARS_MAX).collect();
        tracing::info!(transport = self.transport.as_str(), protocol, client, version, "mcp session began");
        self.observer.session(self.transport.as_str(), protocol, &client);
        tokio::spawn(self.clone().tell_changes(context.peer));
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.house().tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.house().tools.iter().find(|t| t.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let started = Instant::now();
        let Some(tool) = Tool::parse(&request.name) else {
            let kept = self.house();
            let known: Vec<&str> = kept.tools.iter().map(|t| &*t.name).collect();
            return Err(ErrorData::invalid_params(format!("no such tool; there are: {}", known.join(", ")), None));
        };
        let caller = self.caller(&context);
        let arguments = request.arguments.unwrap_or_default();
        let answer_by = started + Duration::from_millis(self.settings.answer_by_ms);
        let desk = tools::Desk { fleet: &self.fleet, observer: self.observer.as_ref(), latest: &self.latest };
        let work = tools::call(&desk, || self.house(), tool, &arguments, &caller, answer_by);
        let rendered = tokio::select! {
            outcome = caught(work) => outcome.unwrap_or_else(|| {
                tracing::error!(tool = tool.as_str(), caller = %caller.0, "a tool panicked");
                self.observer.panicked();
                answer::internal(self.settings.lang)
            }),
            // The client no longer waits: dropping the work tells the fleet so (semantics 4.7).
            () = context.ct.cancelled() => {
                self.observer.call(tool.as_str(), "cancelled", started.elapsed());
                return Err(ErrorData::internal_error("cancelled by the client", None));
            }
        };
        self.observer.call(tool.as_str(), rendered.result.as_str(), started.elapsed());
        Ok(result(self.corrected(rendered, &caller)).into())
    }
}

/// An answer in the form of the protocol.
fn result(rendered: Rendered) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(rendered.text())]);
    result.is_error = Some(rendered.is_error);
    result.structured_content = Some(rendered.structured);
    result
}

/// Runs a future and catches its panic: `None`. The SDK drops the handle of a call's task, so a panic would otherwise
/// leave the caller without any answer.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        // Unwind safety: after a panic the future is never polled again, and what it shares (the fleet's handles, the
        // kept house) is either whole or behind a lock that forgives poison.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Err(_panic) => Poll::Ready(None),
        }
    })
    .await
}

/// A client's name, bounded and without characters that could forge a log line or a caller.
fn client_name(client: &Implementation) -> String {
    let clean: String = client.name.chars().filter(|c| !c.is_control() && *c != ':').take(CLIENT_CHARS_MAX).collect();
    if clean.trim().is_empty() { "unknown".to_owned() } else { clean }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
