//! A small MCP client: what `truetwin call`, `truetwin demo` and the bridge speak to a running hub with.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
        JsonObject, PingRequest,
    },
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use serde_json::Value as Json;

/// How often a hub that has not answered yet is asked whether it is there, and how long it may take to say so: the SDK waits for
/// ever for one that died in the middle of a call, and says so of one that began anew only when it is asked something.
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// How long a call may take: a hub answers in 10 minutes at the latest (`timing.answer_by_ms`), however it is configured.
const CALL_WITHIN: Duration = Duration::from_secs(605);

/// How long a goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Why a hub could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No HTTP client could be made.
    #[error("no http client can be made")]
    Http(#[from] reqwest::Error),
    /// Nobody answers at the address, or it is no MCP server.
    #[error("no hub answers at {url}")]
    Connect {
        /// The address.
        url: String,
        /// What went wrong.
        source: Box<ClientInitializeError>,
    },
    /// The hub wants a token, and this is none of its own.
    #[error(
        "the hub at {url} wants a token, or takes this one no more; put yours into TRUETWIN_TOKEN; `truetwin token add NAME` makes one"
    )]
    Token {
        /// The address.
        url: String,
    },
    /// The arguments are no JSON object.
    #[error("arguments must be a json object, not {0}")]
    Arguments(&'static str),
    /// The call was refused as such (an unknown tool), or the connection broke.
    #[error("{0}")]
    Call(Box<ServiceError>),
    /// The hub stopped answering, or began anew, in the middle of a call.
    #[error(
        "the hub at {url} does not answer any more: whether {tool} was carried out is not known; look, before it is tried again"
    )]
    Gone {
        /// The address.
        url: String,
        /// What was called.
        tool: String,
    },
}

/// A connection to a hub.
#[derive(Debug)]
pub struct Client {
    url: String,
    running: RunningService<RoleClient, ClientConfig>,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The whole answer.
    pub structured: Json,
    /// The text item, as a model reads it.
    pub text: String,
    /// Whether it is shown as a failure.
    pub is_error: bool,
}

impl Client {
    /// Connects to the hub at an address such as `http://127.0.0.1:8300/mcp`.
    ///
    /// # Errors
    /// [`ClientError::Connect`] if nobody answers there or it is no MCP server.
    pub async fn connect(url: &str) -> Result<Self, ClientError> {
        Self::connect_as(url, None).await
    }

    /// As [`Client::connect`], as the caller whose token this is.
    ///
    /// # Errors
    /// As [`Client::connect`]; [`ClientError::Token`] if the hub does not take the token.
    pub async fn connect_as(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        let this = ClientConfig::new(ClientCapabilities::default(), this_client());
        let running = connect(url, token, this, ClientLifecycleMode::Initialize).await?;
        Ok(Self { url: url.to_owned(), running })
    }

    /// The names of the tools that the hub offers.
    ///
    /// # Errors
    /// [`ClientError::Call`] if the connection broke.
    pub async fn tools(&self) -> Result<Vec<String>, ClientError> {
        let tools = self.running.list_all_tools().await.map_err(call_error)?;
        Ok(tools.into_iter().map(|t| t.name.into_owned()).collect())
    }

    /// Calls a tool. Dropping the future tells the hub that nobody waits.
    ///
    /// # Errors
    /// [`ClientError::Arguments`] if the arguments are no object; [`ClientError::Call`] if there is no such tool or
    /// the connection broke; [`ClientError::Gone`] if the hub died or hangs while it was waited for. A tool that failed is no
    /// error here: see [`Called::is_error`].
    pub async fn call(&self, tool: &str, arguments: Json) -> Result<Called, ClientError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(object(arguments)?);
        let called = tokio::select! {
            // What was answered counts, whatever became of the hub since.
            biased;
            called = self.running.call_tool(params) => Some(called),
            () = self.stops_answering() => None,
        };
        match called {
            Some(Ok(called)) => Ok(Called::from(called)),
            Some(Err(error)) if !began_anew(&error) => Err(call_error(error)),
            Some(Err(_)) | None => Err(ClientError::Gone { url: self.url.clone(), tool: tool.to_owned() }),
        }
    }

    /// Comes back once the hub is not there any more, or has had all the time that it may take.
    async fn stops_answering(&self) {
        let by = tokio::time::Instant::now() + CALL_WITHIN;
        while tokio::time::Instant::now() < by {
            tokio::time::sleep(PROBE_EVERY).await;
            let ping = self.running.send_request(ClientRequest::PingRequest(PingRequest::default()));
            if !matches!(tokio::time::timeout(PROBE_WITHIN, ping).await, Ok(Ok(_))) {
                break;
            }
        }
    }

    /// Ends the session; a hub that is not there any more has ended it already.
    pub async fn close(self) {
        let _ended_either_way = tokio::time::timeout(CLOSE_WITHIN, self.running.cancel()).await;
    }
}

/// What this program is called as a client.
pub(super) fn this_client() -> Implementation {
    Implementation::new("truetwin", env!("CARGO_PKG_VERSION"))
}

/// Connects to a hub as that client and as the caller whose token this is, with a session or without one.
///
/// # Errors
/// [`ClientError::Connect`] if nobody answers there or it is no MCP server.
pub(super) async fn connect<C: ClientHandler>(
    url: &str,
    token: Option<&str>,
    client: C,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, C>, ClientError> {
    // Never through a proxy: the hub is in the house. No idle connections: a half-read answer would cost the
    // next call 40 ms on it.
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::<str>::from(url));
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let connected = client.serve_with_lifecycle(transport, lifecycle).await;
    connected.map_err(|source| match wants_token(&source) {
        true => ClientError::Token { url: url.to_owned() },
        false => ClientError::Connect { url: url.to_owned(), source: Box::new(source) },
    })
}

/// Whether a hub answered, with 401. The SDK hides its transport's error in a box.
fn wants_token(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::TransportError { error, .. } = error else { return false };
    let http = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(http, Some(StreamableHttpError::AuthRequired(_)))
}

impl From<CallToolResult> for Called {
    fn from(result: CallToolResult) -> Self {
        let texts: Vec<&str> = result.content.iter().filter_map(|c| c.as_text()).map(|t| t.text.as_str()).collect();
        Self {
            text: texts.join("\n"),
            is_error: result.is_error.unwrap_or_default(),
            structured: result.structured_content.unwrap_or_default(),
        }
    }
}

fn object(arguments: Json) -> Result<JsonObject, ClientError> {
    match arguments {
        Json::Object(map) => Ok(map),
        Json::Null => Ok(JsonObject::new()),
        Json::Bool(_) => Err(ClientError::Arguments("a boolean")),
        Json::Number(_) => Err(ClientError::Arguments("a number")),
        Json::String(_) => Err(ClientError::Arguments("a text")),
        Json::Array(_) => Err(ClientError::Arguments("an array")),
    }
}

/// Whether the hub has begun anew since the call: the SDK opens a new session then, and has no kind of error of its own for what
/// had been asked in the old one.
fn began_anew(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(told) if told.message.contains("re-initialized"))
}

fn call_error(error: ServiceError) -> ClientError {
    ClientError::Call(Box::new(error))
}
