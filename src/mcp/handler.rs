//! The SDK's requests, handed on to [`Server::call`]: who asks is known from the session, never from the arguments.

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo,
        ContentBlock, DiscoverResult, Implementation, InitializeRequestParams, InitializeResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, ResourceContents,
        ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::json;

use super::{
    CLIENT_CHARS_MAX, Person, Server, Transport,
    call::{Call, NoAnswer, TurnedAway},
    instructions,
    paging::{BadCursor, only_page},
    resources::{JSON, TEMPLATE_VARIABLE, is_template},
    session::Guest,
    subscriptions::{Line, NotSubscribed, accepted},
};
use crate::{answer::Rendered, authz::Principal};

/// How much of a session id identifies a caller, characters. The whole id would let a reader of a log take the session
/// over; eight hexadecimal digits tell sessions apart.
const SESSION_CHARS: usize = 8;

/// Longest URI that an error repeats, characters; ours are shorter.
const URI_CHARS_MAX: usize = 128;

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

impl Server {
    /// What the server says of itself to a principal.
    fn info_for(&self, principal: &Principal) -> ServerConfig {
        let lang = self.shared.access.policy(principal).map(|policy| policy.lang).unwrap_or_default();
        ServerConfig::new(capabilities())
            .with_server_info(Implementation::new("truetwin", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(lang))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.info_for(match self.transport {
            Transport::Stdio => &Principal::Stdio,
            Transport::Http => &Principal::Http,
        })
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let guest = self.asking(&context)?;
        context.peer.set_peer_info(request.clone());
        let negotiated = self.negotiate_initialize(&request)?;
        Ok(negotiated.with_instructions(instructions(guest.policy.lang)))
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let guest = self.asking(&context)?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.info_for(&guest.principal)))
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
            server.clone().tell_changes(principal, Line::Session(peer.clone())).await;
            server.tell_end(&peer, &client).await;
        });
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let guest = self.asking(&context)?;
        only_page(cursor(request.as_ref())).map_err(bad_cursor)?;
        Ok(ListToolsResult::with_all_items(self.tools(&guest)))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let guest = self.asking(&context)?;
        let (page, next_cursor) = self.resources(&guest, cursor(request.as_ref())).map_err(bad_cursor)?;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(page) })
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let guest = self.asking(&context)?;
        only_page(cursor(request.as_ref())).map_err(bad_cursor)?;
        Ok(ListResourceTemplatesResult::with_all_items(self.resource_templates(&guest)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let guest = self.asking(&context)?;
        let twin = self.resource(&guest, &request.uri).await.ok_or_else(|| no_such_resource(&request.uri))?;
        let contents = ResourceContents::text(twin.to_string(), request.uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    #[allow(deprecated, reason = "the way of sessions; from 2026-07-28 on it is a stream")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let guest = self.asking(&context)?;
        let subscribed = Server::subscribe(self, &guest.principal, &request.uri, context.peer).await;
        subscribed.map_err(|error| match error {
            NotSubscribed::NoSuchResource => no_such_resource(&request.uri),
            NotSubscribed::TooMany => ErrorData::invalid_request(error.to_string(), None),
        })
    }

    #[allow(deprecated, reason = "as above")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Server::unsubscribe(self, &request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let guest = self.asking(context.request_context())?;
        tokio::select! {
            () = self.tell_stream(&guest.principal, context.sink().clone()) => {}
            () = context.cancelled() => {}
            // The hub stops: the stream ends in good order instead of being cut.
            () = self.closing.cancelled() => {}
        }
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let guest = self.asking(&context)?;
        let of_ours = matches!(&request.r#ref, Reference::Resource(template) if is_template(&template.uri));
        if !of_ours || request.argument.name != TEMPLATE_VARIABLE {
            return Err(ErrorData::invalid_params(
                "there is nothing to complete but the id of twin://devices/{id}",
                None,
            ));
        }
        let (ids, total) = self.completed(&guest, &request.argument.value);
        let (shown, total) = (ids.len(), u32::try_from(total).unwrap_or(u32::MAX));
        let completed = CompletionInfo::with_pagination(ids, Some(total), total as usize > shown);
        Ok(CompleteResult::new(completed.map_err(|error| ErrorData::internal_error(error, None))?))
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
        match self.call_telling(&guest, &call, &context).await {
            Ok(rendered) => Ok(result(rendered).into()),
            Err(NoAnswer::AskFirst(form)) => Ok(form.result().into()),
            Err(error @ NoAnswer::NoSuchTool { .. }) => Err(ErrorData::invalid_params(error.to_string(), None)),
            Err(error @ NoAnswer::NoAccess) => Err(ErrorData::invalid_request(error.to_string(), None)),
            Err(error @ NoAnswer::Cancelled) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}

/// What is offered. Not prompts, and no logging to clients: both are answered as unknown methods.
pub(super) fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_completions()
        .build()
}

/// The cursor of a request for a list.
fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request.and_then(|request| request.cursor.as_deref())
}

fn bad_cursor(error: BadCursor) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

/// What is answered for a resource that is not there, and for one that this caller may not read.
fn no_such_resource(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(URI_CHARS_MAX).collect();
    ErrorData::resource_not_found("resource not found", Some(json!({"uri": uri})))
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
