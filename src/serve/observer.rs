//! What the MCP server and the endpoints tell, counted.

use crate::{endpoint, mcp, metrics::Metrics, twin::words::RefusalWord};

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
