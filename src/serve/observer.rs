//! What the MCP server and the endpoints tell, counted and kept.

use std::sync::Arc;

use super::audited::Auditor;
use crate::{endpoint, mcp, metrics::Metrics, twin::words::RefusalWord};

/// Hands the MCP server's observations to the metrics and to the audit.
pub(super) struct Watching {
    pub(super) metrics: Metrics,
    pub(super) auditor: Arc<Auditor>,
}

impl mcp::Observer for Watching {
    fn call(&self, ended: &mcp::Ended<'_>) {
        let result = ended.answer.map_or("cancelled", |answer| answer.result.as_str());
        self.metrics.tool_called(ended.tool.as_str(), result, ended.elapsed);
        self.auditor.call(ended);
    }

    fn asks_first(&self, ended: &mcp::Ended<'_>) {
        self.auditor.asks_first(ended);
    }

    fn turned_away(&self, away: &mcp::TurnedAway<'_>) {
        self.auditor.turned_away(away);
    }

    fn refused(&self, refusal: RefusalWord) {
        self.metrics.call_refused(refusal);
    }

    fn panicked(&self) {
        self.metrics.tool_panicked();
    }

    fn session(&self, _: &'static str, _: &str, _: &str) {
        self.metrics.mcp_session_opened();
    }
}

/// Hands what happens to connections to access points to the metrics.
pub(super) struct Counted(pub(super) Metrics);

impl endpoint::Observer for Counted {
    fn are(&self, state: endpoint::State, count: usize) {
        self.0.endpoints_are(state.as_str(), count);
    }

    fn connected(&self) {
        self.0.endpoint_connected();
    }

    fn ended(&self, word: endpoint::EndWord) {
        self.0.endpoint_ended(word.as_str());
    }

    fn late(&self) {
        self.0.endpoint_call_late();
    }

    fn garbage(&self) {
        self.0.endpoint_garbage();
    }
}
