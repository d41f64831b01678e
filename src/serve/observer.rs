//! What the MCP server tells, counted.

use crate::{mcp, metrics::Metrics, twin::words::RefusalWord};

/// Hands the MCP server's observations to the metrics.
pub(super) struct Counted(pub(super) Metrics);

impl mcp::Observer for Counted {
    fn call(&self, ended: &mcp::Ended<'_>) {
        let result = ended.answer.map_or("cancelled", |answer| answer.result.as_str());
        self.0.tool_called(ended.tool.as_str(), result, ended.elapsed);
    }

    fn refused(&self, refusal: RefusalWord) {
        self.0.call_refused(refusal);
    }

    fn panicked(&self) {
        self.0.tool_panicked();
    }

    fn session(&self, _: &'static str, _: &str, _: &str) {
        self.0.mcp_session_opened();
    }
}
