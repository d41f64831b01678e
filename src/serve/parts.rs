//! What the edges of a running hub share.

use std::{path::PathBuf, sync::Arc};

use super::{Error, audited, quiet::Quiet};
use crate::{
    audit::Audit,
    authz::Access,
    broker::Broker,
    config::Config,
    data::{Accounts, Credentials, Endpoints, Secret, Tokens},
    endpoint,
    fleet::Fleet,
    journal::Journal,
    mcp,
    metrics::Metrics,
    property::DeviceId,
    twin::words::Presence,
};

/// What the edges of a running hub work with; cheap to share.
pub struct Parts {
    /// The devices.
    pub fleet: Fleet,
    /// The door and the bus.
    pub broker: Broker,
    /// Who may come in.
    pub credentials: Credentials,
    /// Service accounts.
    pub accounts: Accounts,
    /// Access points that were added by command.
    pub endpoints: Endpoints,
    /// The bearer tokens of HTTP clients.
    pub tokens: Tokens,
    /// What is known again after a crash.
    pub journal: Option<Journal>,
    /// Who may what.
    pub access: Arc<dyn Access>,
    /// The data folder.
    pub folder: PathBuf,
    /// What is counted.
    pub metrics: Metrics,
    /// What each call was.
    pub audit: Audit,
    /// The settings.
    pub config: Arc<Config>,
    /// Connections to access points.
    pub lines: endpoint::Endpoints,
    /// Who makes records for the audit.
    pub(super) auditor: Arc<audited::Auditor>,
    /// The MCP server behind every transport.
    pub(super) server: mcp::Server,
    /// How much of what callers do wrong is written to the log.
    pub(super) quiet: Arc<Quiet>,
}

impl Parts {
    /// Adds a device, or fails if it is there; it may connect at once.
    ///
    /// # Errors
    /// [`Error`] of the data folder or a stopping hub.
    pub async fn add_device(&self, device: &DeviceId) -> Result<Secret, Error> {
        let secret = self.credentials.add(device)?;
        self.fleet.add(self.config.name(device)).await?;
        Ok(secret)
    }

    /// An MCP server on this hub, for one transport.
    pub fn mcp_server(&self, transport: mcp::Transport) -> mcp::Server {
        self.server.over(transport)
    }

    /// The text for Prometheus, with the figures that are only known when somebody asks.
    pub(super) fn metrics_text(&self) -> String {
        let cards = self.fleet.cards();
        for presence in Presence::ALL {
            self.metrics.devices_are(*presence, cards.iter().filter(|card| card.presence == *presence).count());
        }
        self.metrics.quarantined_are(self.fleet.quarantined());
        let audited = self.audit.counts();
        self.metrics.audit_is(audited.written, audited.lost);
        if let Some(journal) = self.journal.as_ref().map(Journal::counters) {
            let (written_bytes, commits) = (journal.written_bytes(), journal.commits());
            self.metrics.journal_is(written_bytes, commits, journal.entries(), journal.not_kept());
        }
        for (name, value) in self.broker.counters().all() {
            self.metrics.observe_door(name, value);
        }
        self.metrics.render()
    }
}
