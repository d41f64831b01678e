//! A server on standard input and output that hands each call to a hub that runs already, over HTTP.
//!
//! For clients that start their servers themselves while a hub runs as a service: two hubs on one house would each be
//! wrong about it.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams, ResultType,
        ServerCapabilities, ServerConfig,
    },
    service::{Peer, RequestContext, ServerInitializeError},
};
use tokio_util::sync::CancellationToken;

use super::{Client, ClientError, result};
use crate::{answer, names::Lang};

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

/// Serves standard input and output with the tools of the hub at `url`, until the client closes standard input or
/// `stop` is cancelled. A call that the hub has not answered after `answer_within` is answered here, as not known. `lang` is the language of the one sentence that is the bridge's own: the hub does not answer.
///
/// # Errors
/// [`BridgeError`] if the hub cannot be reached at the start, or no session was opened.
pub async fn run(url: &str, lang: Lang, answer_within: Duration, stop: CancellationToken) -> Result<(), BridgeError> {
    let client = Client::connect(url).await?;
    tracing::info!(url, "standard input is bridged to the hub");
    let bridge = Bridge { hub: client.peer().clone(), lang, answer_within };
    let ended = match bridge.serve_with_ct(rmcp::transport::stdio(), stop.clone()).await {
        Ok(running) => {
            let _ended_either_way = running.waiting().await;
            Ok(())
        }
        Err(_) if stop.is_cancelled() => Ok(()),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(BridgeError::Handshake(error.to_string())),
    };
    client.close().await;
    ended
}

/// The hub is asked in the form of older clients, whose results say no type; a client of 2026-07-28 needs one (the SDK takes
/// it out again for older clients). So each result is given the type that it has.
struct Bridge {
    hub: Peer<RoleClient>,
    lang: Lang,
    answer_within: Duration,
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")));
        match self.hub.peer_info().and_then(|hub| hub.instructions.clone()) {
            Some(instructions) => info.with_instructions(instructions),
            None => info,
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.hub.list_tools(request).await.map_err(protocol_error)?;
        listed.result_type = Some(ResultType::COMPLETE);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // What the client said of itself and of progress is between it and this process.
        let request = CallToolRequestParams::new(request.name).with_arguments(request.arguments.unwrap_or_default());
        tokio::select! {
            answer = self.hub.call_tool(request) => match answer {
                Ok(mut answered) => {
                    answered.result_type = Some(ResultType::COMPLETE);
                    Ok(answered.into())
                }
                Err(ServiceError::McpError(error)) => Err(error),
                Err(error) => {
                    // The command may have reached the device, so nothing is known.
                    tracing::error!(%error, "the hub did not answer a bridged call");
                    Ok(result(answer::internal(self.lang)).into())
                }
            },
            // A hub that was killed closes nothing that this end would notice: its limit is kept here as well.
            () = tokio::time::sleep(self.answer_within) => {
                tracing::error!("the hub did not answer a bridged call in time");
                Ok(result(answer::internal(self.lang)).into())
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
