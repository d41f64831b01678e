//! What an access point's callers are answered by: the MCP server of the hub.

use futures_util::future::BoxFuture;
use rmcp::model::Tool;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Rendered,
    authz::Principal,
    mcp::{Call, Guest, NoAnswer, Server},
};

/// Answers the calls of access points.
pub trait Host: Send + Sync + 'static {
    /// One session of an endpoint; `None` if it may nothing.
    fn guest(&self, endpoint: &str, session: &str) -> Option<Guest>;
    /// Its tools, from memory.
    fn tools(&self, guest: &Guest) -> Vec<Tool>;
    /// Changes whenever the tools of anybody may have changed.
    fn revision(&self) -> (u64, u64);
    /// Carries out one call within the guest's limit. `gone` says that nobody waits any more.
    fn call<'a>(
        &'a self,
        guest: &'a Guest,
        call: &'a Call,
        gone: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rendered, NoAnswer>>;
}

impl Host for Server {
    fn guest(&self, endpoint: &str, session: &str) -> Option<Guest> {
        Self::guest(self, Principal::Endpoint(endpoint.into()), session)
    }

    fn tools(&self, guest: &Guest) -> Vec<Tool> {
        Self::tools(self, guest)
    }

    fn revision(&self) -> (u64, u64) {
        Self::revision(self)
    }

    fn call<'a>(
        &'a self,
        guest: &'a Guest,
        call: &'a Call,
        gone: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rendered, NoAnswer>> {
        Box::pin(Self::call(self, guest, call, gone))
    }
}

/// What is counted of access points. Implemented by the metrics; all labels are closed sets.
pub trait Observer: Send + Sync + 'static {
    /// So many endpoints are in this state now.
    fn are(&self, state: super::State, count: usize);
    /// A connection was made.
    fn connected(&self);
    /// A connection ended, or could not be made.
    fn ended(&self, word: super::EndWord);
    /// A call was not answered by its limit, and its caller was told so: a fault of the hub.
    fn late(&self);
    /// A frame came that was for nobody.
    fn garbage(&self);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted;

impl Observer for Uncounted {
    fn are(&self, _: super::State, _: usize) {}
    fn connected(&self) {}
    fn ended(&self, _: super::EndWord) {}
    fn late(&self) {}
    fn garbage(&self) {}
}
