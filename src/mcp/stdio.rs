//! The server on standard input and output: one client, one session. Logs must go to standard error.

use rmcp::{ServiceExt, service::QuitReason};
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::authz::Principal;

/// Why the server on standard input and output ended otherwise than by its client or by being told to.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first message was none that opens a session.
    #[error("no mcp session on standard input: {0}")]
    Handshake(String),
    /// The session's own task failed.
    #[error("the mcp session on standard input failed: {0}")]
    Session(String),
}

/// Serves until the client closes standard input or `stop` is cancelled.
///
/// # Errors
/// [`StdioError`] if no session could be opened, or its task failed.
pub async fn run(server: Server, stop: CancellationToken) -> Result<(), StdioError> {
    server.announce(Principal::Stdio);
    let serving = server.serve_with_ct(rmcp::transport::stdio(), stop.clone()).await;
    let running = match serving {
        Ok(running) => running,
        // Standard input closed, or the hub stopped, before anybody spoke: nothing is wrong.
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(error.to_string())),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Session(error.to_string())),
        Ok(reason) => {
            tracing::info!(?reason, "mcp session on standard input ended");
            Ok(())
        }
    }
}
