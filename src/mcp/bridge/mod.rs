//! A server on standard input and output that hands all that is asked to a hub that runs already, over HTTP, and all that
//! the hub says unasked to its client.
//!
//! For clients that start their servers themselves while a hub runs as a service: two hubs on one house would each be
//! wrong about it. A hub that was restarted, perhaps on another port, is found again: before a call is handed on, the hub
//! is asked whether it is there, so that a call which certainly never left is answered as not sent.
//!
//! | what | how it passes |
//! |---|---|
//! | calls, lists, resources | through one session with the hub, so that "is it done?" knows whose operation is meant |
//! | progress, cancellation | with the call that they are of |
//! | `list_changed`, updated resources, questions to the person | from that session to a client that has a session too |
//! | the same for clients of 2026-07-28 | through requests without a session: their streams and results pass as they are |

mod upstream;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceError, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, CompleteRequestParams, CompleteResult,
        Implementation, InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        RequestMetaObject, ResultType, ServerConfig, ServerResult, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{
        NotificationContext, Peer, PeerRequestOptions, RequestContext, RoleClient, ServerInitializeError,
        SubscriptionContext,
    },
};
use tokio_util::sync::CancellationToken;

use self::upstream::Upstream;
use super::{
    ClientError,
    handler::{capabilities, result},
    subscriptions::accepted,
};
use crate::{answer, names::Lang};

/// Where the hub is now: `None` while nobody knows of one.
pub type Whereabouts = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Why the bridge ended otherwise than by its client or by being told to.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The hub could not be reached.
    #[error(transparent)]
    Hub(#[from] ClientError),
    /// The first message on standard input was none that opens a session.
    #[error("no mcp session on standard input: {0}")]
    Handshake(String),
}

/// What the bridge is told.
#[derive(Clone)]
pub struct BridgeSettings {
    /// Where the hub is; asked again each time that it has to be found.
    pub hub: Whereabouts,
    /// The bearer token that the hub wants, if it wants one. Not shown by [`fmt::Debug`].
    pub token: Option<Arc<str>>,
    /// The language of the sentences that are the bridge's own: that the hub does not answer, or is not there.
    pub lang: Lang,
    /// A call that the hub has not answered after this is answered here, as not known.
    pub answer_within: Duration,
}

impl fmt::Debug for BridgeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeSettings")
            .field("hub", &(self.hub)())
            .field("lang", &self.lang)
            .field("answer_within", &self.answer_within)
            .finish()
    }
}

/// Serves standard input and output with the tools of a running hub, until the client closes standard input or `stop` is
/// cancelled.
///
/// # Errors
/// [`BridgeError`] if the hub cannot be reached at the start, or no session was opened.
pub async fn run(settings: BridgeSettings, stop: CancellationToken) -> Result<(), BridgeError> {
    let bridge = Bridge::connected(settings).await?;
    let hub = bridge.hub.clone();
    let ended = match bridge.serve_with_ct(rmcp::transport::stdio(), stop.clone()).await {
        Ok(running) => {
            let _ended_either_way = running.waiting().await;
            Ok(())
        }
        Err(_) if stop.is_cancelled() => Ok(()),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(BridgeError::Handshake(error.to_string())),
    };
    hub.close().await;
    ended
}

/// The hub is asked in the form of older clients, whose results say no type; a client of 2026-07-28 needs one (the SDK takes
/// it out again for older clients). So each result is given the type that it has.
struct Bridge {
    hub: Arc<Upstream>,
    settings: BridgeSettings,
    instructions: Option<String>,
}

impl Bridge {
    async fn connected(settings: BridgeSettings) -> Result<Self, BridgeError> {
        let (hub, instructions) = Upstream::connected(settings.hub.clone(), settings.token.clone()).await?;
        Ok(Self { hub: Arc::new(hub), settings, instructions })
    }

    /// The session with the hub, for what is no call.
    async fn session(&self) -> Result<Peer<RoleClient>, ErrorData> {
        self.hub.session().await.ok_or_else(unreachable)
    }

    /// Hands a call on and waits for its end: the hub's answer, the limit, or its client's no longer waiting.
    async fn call(
        &self,
        hub: Peer<RoleClient>,
        request: CallToolRequestParams,
        meta: Option<RequestMetaObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = |why: &str| {
            // The command may have reached the device, so nothing is known.
            tracing::error!(why, "the hub did not answer a bridged call");
            Ok(result(answer::internal(self.settings.lang)).into())
        };
        let mut options = PeerRequestOptions::no_options(); // non-exhaustive: no other way
        options.meta = meta;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
        let Ok(mut call) = hub.send_cancellable_request(request, options).await else {
            return unknown("the connection has ended");
        };
        let told = context.meta.get_progress_token().map(|token| (token, self.hub.steps_of(&call.progress_token)));
        let (token, mut steps) = told.unzip();
        let answer_by = tokio::time::sleep(self.settings.answer_within);
        tokio::pin!(answer_by);
        let answered = loop {
            let step = async {
                match &mut steps {
                    Some(steps) => steps.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                answered = &mut call.rx => break answered,
                mut step = step => if let Some(token) = &token {
                    step.progress_token = token.clone();
                    let _client_gone = context.peer.notify_progress(step).await;
                },
                // A hub that was killed closes nothing that this end would notice: its limit is kept here as well.
                () = &mut answer_by => return unknown("its limit has passed"),
                () = context.ct.cancelled() => {
                    // The hub hears that nobody waits.
                    let _connection_gone = call.cancel(Some("the client no longer waits".into())).await;
                    return Err(ErrorData::internal_error("cancelled by the client", None));
                }
            }
        };
        match answered {
            Ok(Ok(ServerResult::CallToolResult(mut answered))) => {
                answered.result_type = Some(ResultType::COMPLETE);
                Ok(answered.into())
            }
            Ok(Ok(ServerResult::InputRequiredResult(asked))) => Ok(asked.into()),
            Ok(Err(ServiceError::McpError(error))) => Err(error),
            Ok(Err(error)) => unknown(&error.to_string()),
            Ok(Ok(_)) => unknown("it gave no answer to a call"),
            Err(_ended) => unknown("the connection has ended"),
        }
    }
}

/// Whether a request is one of 2026-07-28 or later, without a session.
fn is_sessionless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let info = ServerConfig::new(capabilities())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")));
        match &self.instructions {
            Some(instructions) => info.with_instructions(instructions.clone()),
            None => info,
        }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.hub.serve(context.peer.clone(), request.capabilities.elicitation.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        // Opened anew if the client can put questions to a person: the hub has to know.
        let _told_with_the_first_request = self.hub.session().await;
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.session().await?.list_tools(page(request)).await.map_err(protocol_error)?;
        listed.result_type = Some(ResultType::COMPLETE);
        Ok(listed)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.session().await?.list_resources(page(request)).await.map_err(protocol_error)?;
        listed.result_type = Some(ResultType::COMPLETE);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let hub = self.session().await?;
        let mut listed = hub.list_resource_templates(page(request)).await.map_err(protocol_error)?;
        listed.result_type = Some(ResultType::COMPLETE);
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let asked = ReadResourceRequestParams::new(request.uri);
        let mut read = self.session().await?.read_resource(asked).await.map_err(protocol_error)?;
        read.result_type = Some(ResultType::COMPLETE);
        Ok(read.into())
    }

    async fn complete(
        &self,
        mut request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        request.meta = None;
        let mut completed = self.session().await?.complete(request).await.map_err(protocol_error)?;
        completed.result_type = Some(ResultType::COMPLETE);
        Ok(completed)
    }

    #[allow(deprecated, reason = "the way of sessions; from 2026-07-28 on it is a stream")]
    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let hub = self.session().await?;
        hub.subscribe(SubscribeRequestParams::new(request.uri.clone())).await.map_err(protocol_error)?;
        self.hub.remember(request.uri);
        Ok(())
    }

    #[allow(deprecated, reason = "as above")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.hub.forget(&request.uri);
        let hub = self.session().await?;
        hub.unsubscribe(UnsubscribeRequestParams::new(request.uri)).await.map_err(protocol_error)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let hub = self.hub.sessionless().await.ok_or_else(unreachable)?;
        let mut stream = hub.listen(context.accepted().clone()).await.map_err(protocol_error)?;
        loop {
            // Dropping the stream tells the hub that nobody listens.
            let told = tokio::select! {
                told = stream.next() => told.map_err(protocol_error)?,
                () = context.cancelled() => return Ok(()),
            };
            let Some(told) = told else { return Ok(()) };
            if context.sink().send(told).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let shows = context.client_capabilities().filter(|can| can.elicitation.is_some());
        // Only a result can put a question to the person behind a request without a session, and only to a client that has
        // said that it can; all else goes through the session, where the hub knows the caller again.
        let (hub, meta) = match shows.filter(|_| is_sessionless(&context)) {
            Some(can) => {
                let mut meta = RequestMetaObject::default();
                meta.set_client_capabilities(can);
                (self.hub.sessionless().await, Some(meta))
            }
            None => (self.hub.session().await, None),
        };
        let Some(hub) = hub else { return Ok(result(answer::no_hub(self.settings.lang)).into()) };
        // What the client said of itself is between it and this process.
        let mut asked = CallToolRequestParams::new(request.name).with_arguments(request.arguments.unwrap_or_default());
        if meta.is_some() {
            asked.input_responses = request.input_responses;
            asked.request_state = request.request_state;
        }
        self.call(hub, asked, meta, &context).await
    }
}

/// A request for a page without what the client said of itself.
fn page(request: Option<PaginatedRequestParams>) -> Option<PaginatedRequestParams> {
    request.map(|request| PaginatedRequestParams::default().with_cursor(request.cursor))
}

fn unreachable() -> ErrorData {
    ErrorData::internal_error("the hub cannot be reached", None)
}

fn protocol_error(error: ServiceError) -> ErrorData {
    if let ServiceError::McpError(error) = error {
        return error;
    }
    ErrorData::internal_error(format!("the hub does not answer: {error}"), None)
}
