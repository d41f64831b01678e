//! The SDK's requests, handed on to [`Server::call`]: who asks is known from the session, never from the arguments.

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{NotificationContext, RequestContext},
};

use super::{
    CLIENT_CHARS_MAX, Person, Server, Transport,
    call::{Call, NoAnswer, TurnedAway},
    instructions,
    session::Guest,
};
use crate::{answer::Rendered, authz::Principal};

/// How much of a session id identifies a caller, characters. The whole id would let a reader of a log take the session
/// over; eight hexadecimal digits tell sessions apart.
const SESSION_CHARS: usize = 8;

impl Server {
    /// Who asks.
    ///
    /// # Errors
    /// What a caller hears whose token was revoked.
    fn asking(&self, context: &RequestContext<RoleServer>) -> Result<Guest, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let client = context.client_info().map_or_else(|| "unknown".to_owned(), |c| client_name(&c));
        let (principal, session) = match self.transport {
            Transport::Stdio => (Principal::Stdio, String::new()),
            Transport::Http => (http_principal(parts), http_session(parts, &client)),
        };
        self.guest(principal.clone(), &session).ok_or_else(|| {
            self.shared.observer.turned_away(&TurnedAway {
                principal: &principal,
                guest: None,
                tool: "",
                why: "no_access",
            });
            ErrorData::invalid_request("access was withdrawn", None)
        })
    }
}

/// Whose request it is: that of its token, which the door has checked.
pub(super) fn http_principal(parts: Option<&Parts>) -> Principal {
    parts.and_then(|parts| parts.extensions.get::<Principal>()).cloned().unwrap_or(Principal::Http)
}

/// What tells the sessions of one principal apart. A client that has no session is one of any number that go by one name.
fn http_session(parts: Option<&Parts>, client: &str) -> String {
    let session = parts.and_then(|parts| parts.headers.get("mcp-session-id")).and_then(|id| id.to_str().ok());
    let session = session.map(|id| id.chars().take(SESSION_CHARS).collect::<String>());
    format!("{client}:{}", session.as_deref().unwrap_or("stateless"))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let principal = match self.transport {
            Transport::Stdio => Principal::Stdio,
            Transport::Http => Principal::Http,
        };
        let lang = self.shared.access.policy(&principal).map(|policy| policy.lang).unwrap_or_default();
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(lang))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(peer) = context.peer.peer_info() else { return };
        let (protocol, client) = (peer.protocol_version.as_str(), client_name(&peer.client_info));
        let version: String = peer.client_info.version.chars().take(CLIENT_CHARS_MAX).collect();
        tracing::info!(transport = self.transport.as_str(), protocol, client, version, "mcp session began");
        self.shared.observer.session(self.transport.as_str(), protocol, &client);
        let principal = match self.transport {
            Transport::Stdio => Principal::Stdio,
            Transport::Http => http_principal(context.extensions.get::<Parts>()),
        };
        let (server, peer) = (self.clone(), context.peer);
        tokio::spawn(async move {
            server.clone().tell_changes(principal, peer.clone()).await;
            server.tell_end(&peer, &client).await;
        });
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools(&self.asking(&context)?)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let guest = self.asking(&context)?;
        let person = Person::behind(&context, &request, self.shared.confirmer.form());
        let (tool, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let call = Call { tool, arguments, person };
        match self.call(&guest, &call, &context.ct).await {
            Ok(rendered) => Ok(result(rendered).into()),
            Err(NoAnswer::AskFirst(form)) => Ok(form.result().into()),
            Err(error @ NoAnswer::NoSuchTool { .. }) => Err(ErrorData::invalid_params(error.to_string(), None)),
            Err(error @ NoAnswer::Cancelled) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}

/// An answer in the form of the protocol.
pub(super) fn result(rendered: Rendered) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(rendered.text())]);
    result.is_error = Some(rendered.is_error);
    result.structured_content = Some(rendered.structured);
    result
}

/// A client's name, bounded and without characters that could forge a log line or a caller.
pub(super) fn client_name(client: &Implementation) -> String {
    let clean: String = client.name.chars().filter(|c| !c.is_control() && *c != ':').take(CLIENT_CHARS_MAX).collect();
    if clean.trim().is_empty() { "unknown".to_owned() } else { clean }
}
