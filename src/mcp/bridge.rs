//! A server on standard input and output that hands each call to a hub that runs already, over HTTP.
//!
//! For clients that start their servers themselves while a hub runs as a service: two hubs on one house would each be
//! wrong about it. A hub that was restarted, perhaps on another port, is found again: before a call is handed on, the hub
//! is asked whether it is there, so that a call which certainly never left is answered as not sent.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, ClientRequest, Implementation, ListToolsResult,
        PaginatedRequestParams, PingRequest, ResultType, ServerCapabilities, ServerConfig,
    },
    service::{Peer, RequestContext, ServerInitializeError},
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Client, ClientError, handler::result};
use crate::{answer, names::Lang};

/// How long a hub may take to say that it is there, or to open a session. It does neither with devices, so a second is long.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

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
    if let Some(client) = hub.lock().await.take() {
        client.close().await;
    }
    ended
}

/// The hub is asked in the form of older clients, whose results say no type; a client of 2026-07-28 needs one (the SDK takes
/// it out again for older clients). So each result is given the type that it has.
struct Bridge {
    /// The session with the hub; `None` after it was lost.
    hub: Arc<Mutex<Option<Client>>>,
    settings: BridgeSettings,
    instructions: Option<String>,
}

impl Bridge {
    async fn connected(settings: BridgeSettings) -> Result<Self, BridgeError> {
        let url = (settings.hub)().unwrap_or_default();
        let client = Client::connect_as(&url, settings.token.as_deref()).await?;
        tracing::info!(url, "standard input is bridged to the hub");
        let instructions = client.peer().peer_info().and_then(|hub| hub.instructions.clone());
        Ok(Self { hub: Arc::new(Mutex::new(Some(client))), settings, instructions })
    }

    /// The hub's side of a session that has just answered; a new session if the old one does not. `None`: no hub is there,
    /// and nothing was sent to any.
    async fn peer(&self) -> Option<Peer<RoleClient>> {
        // One caller looks for the hub at a time; the others find what it found.
        let mut hub = self.hub.lock().await;
        if let Some(client) = &*hub {
            let ping = client.peer().send_request(ClientRequest::PingRequest(PingRequest::default()));
            if matches!(tokio::time::timeout(PROBE_WITHIN, ping).await, Ok(Ok(_))) {
                return Some(client.peer().clone());
            }
            // Whatever calls it still holds end with it, as not known.
            *hub = None;
        }
        let url = (self.settings.hub)()?;
        let connecting = Client::connect_as(&url, self.settings.token.as_deref());
        match tokio::time::timeout(PROBE_WITHIN, connecting).await {
            Ok(Ok(client)) => {
                tracing::info!(url, "the hub was found again");
                let peer = client.peer().clone();
                *hub = Some(client);
                Some(peer)
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
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")));
        match &self.instructions {
            Some(instructions) => info.with_instructions(instructions.clone()),
            None => info,
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Some(hub) = self.peer().await else {
            return Err(ErrorData::internal_error("the hub cannot be reached", None));
        };
        let mut listed = hub.list_tools(request).await.map_err(protocol_error)?;
        listed.result_type = Some(ResultType::COMPLETE);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let lang = self.settings.lang;
        let Some(hub) = self.peer().await else { return Ok(result(answer::no_hub(lang)).into()) };
        // What the client said of itself and of progress is between it and this process.
        let request = CallToolRequestParams::new(request.name).with_arguments(request.arguments.unwrap_or_default());
        tokio::select! {
            answer = hub.call_tool(request) => match answer {
                Ok(mut answered) => {
                    answered.result_type = Some(ResultType::COMPLETE);
                    Ok(answered.into())
                }
                Err(ServiceError::McpError(error)) => Err(error),
                Err(error) => {
                    // The command may have reached the device, so nothing is known.
                    tracing::error!(%error, "the hub did not answer a bridged call");
                    Ok(result(answer::internal(lang)).into())
                }
            },
            // A hub that was killed closes nothing that this end would notice: its limit is kept here as well.
            () = tokio::time::sleep(self.settings.answer_within) => {
                tracing::error!("the hub did not answer a bridged call in time");
                Ok(result(answer::internal(lang)).into())
            }
            // Dropping the hub's call tells the hub that nobody waits.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled by the client", None)),
        }
    }
}

fn protocol_error(error: ServiceError) -> ErrorData {
    if let ServiceError::McpError(error) = error {
        return error;
    }
    ErrorData::internal_error(format!("the hub does not answer: {error}"), None)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use std::sync::Mutex as Now;

    use rmcp::ClientHandler;
    use serde_json::{Value as Json, json};

    use super::*;

    /// A hub that answers every call with its own name.
    #[derive(Clone)]
    struct Named(&'static str);

    impl ServerHandler for Named {
        fn get_info(&self) -> ServerConfig {
            ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        }

        async fn call_tool(
            &self,
            _: CallToolRequestParams,
            _: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            Ok(rmcp::model::CallToolResult::structured(json!({"hub": self.0})).into())
        }
    }

    /// Serves a hub on a port of its own; cancelled, its sessions end and its port is free.
    async fn hub(name: &'static str) -> (String, CancellationToken, tokio::task::JoinHandle<()>) {
        use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let service = StreamableHttpService::new(
            move || Ok(Named(name)),
            Arc::new(LocalSessionManager::default()),
            rmcp::transport::StreamableHttpServerConfig::default().with_cancellation_token(stop.clone()),
        );
        let app = axum::Router::new().route_service("/mcp", service);
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                served = axum::serve(listener, app) => served.unwrap(),
                () = stopped.cancelled() => {}
            }
        });
        (url, stop, task)
    }

    struct Nobody;
    impl ClientHandler for Nobody {}

    #[tokio::test(flavor = "multi_thread")]
    async fn a_hub_on_another_port_is_found_again_and_one_that_is_gone_was_sent_nothing() {
        let (first, stop_first, first_task) = hub("first").await;
        let place = Arc::new(Now::new(Some(first)));
        let looked_up = place.clone();
        let bridge = Bridge::connected(BridgeSettings {
            token: None,
            hub: Arc::new(move || looked_up.lock().unwrap().clone()),
            lang: Lang::En,
            answer_within: Duration::from_secs(30),
        })
        .await
        .unwrap();
        let (here, there) = tokio::io::duplex(65_536);
        let serving = tokio::spawn(async move { bridge.serve(here).await.unwrap().waiting().await });
        let client = Nobody.serve(there).await.unwrap();
        let ask = || async {
            let answer = client.call_tool(CallToolRequestParams::new("switch_device")).await.unwrap();
            answer.structured_content.unwrap()
        };
        assert_eq!(ask().await["hub"], "first");
        stop_first.cancel();
        first_task.await.unwrap();
        let gone: Json = ask().await;
        assert_eq!((&gone["result"], &gone["reason"]), (&json!("failed"), &json!("hub_unreachable")));
        *place.lock().unwrap() = None;
        assert_eq!(ask().await["result"], "failed", "nobody knows of a hub");
        let (second, _stop_second, _task) = hub("second").await;
        *place.lock().unwrap() = Some(second);
        assert_eq!(ask().await["hub"], "second");
        client.cancel().await.unwrap();
        serving.await.unwrap().unwrap();
    }
}
