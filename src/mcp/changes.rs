//! Sessions are told when their tools have changed.

use std::{sync::Arc, time::Duration};

use rmcp::{RoleServer, service::Peer};

use super::Server;
use crate::authz::Principal;

/// How often a session looks whether its tools have changed.
const CHANGES_EVERY: Duration = Duration::from_secs(1);

/// How long telling a client may take; one that does not read is not told again.
const TELLING_WITHIN: Duration = Duration::from_secs(5);

impl Server {
    /// Tells one session whenever its tools have changed, until it ends or its principal loses access. Devices that greet
    /// one after the other are one change a second at most.
    pub(super) async fn tell_changes(self, principal: Principal, peer: Peer<RoleServer>) {
        let now = || self.guest(principal.clone(), "").map(|guest| self.house(&guest));
        let Some(mut told) = now() else { return };
        while !peer.is_transport_closed() {
            tokio::time::sleep(CHANGES_EVERY).await;
            let Some(now) = now() else { return };
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

    /// Says in the log when a session has ended, beside the line of its beginning.
    pub(super) async fn tell_end(&self, peer: &Peer<RoleServer>, client: &str) {
        while !peer.is_transport_closed() {
            tokio::time::sleep(CHANGES_EVERY).await;
        }
        tracing::info!(transport = self.transport.as_str(), client, "mcp session ended");
        self.shared.observer.session_ended(self.transport.as_str(), client);
    }
}
