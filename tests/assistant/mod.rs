//! An MCP client that remembers all that it is told, in both lifecycles of the protocol: with a session, as clients have had
//! since 2025, and without one, as of 2026-07-28.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams, ResourceContents, ResourceUpdatedNotificationParam, ServerNotification,
        ServerResult, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions, RequestHandle,
        RunningService, Subscription,
    },
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::Value as Json;

/// Far above what anything here takes; only a hang meets it.
const HANG: Duration = Duration::from_secs(30);

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// With a session.
    Session,
    /// Each request for itself.
    Stateless,
}

/// Something that a client was told unasked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Tools,
    Resources,
    Updated(String),
    Progress { done: f64, of: Option<f64>, message: String },
}

/// A client of the hub.
pub(crate) struct Assistant {
    running: RunningService<RoleClient, Ear>,
    pub(crate) told: Arc<Mutex<Vec<Told>>>,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Told>>>);

impl Ear {
    fn hear(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }
}

impl ClientHandler for Ear {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = params.message.unwrap_or_default();
        self.hear(Told::Progress { done: params.progress, of: params.total, message });
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(Told::Updated(params.uri));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Told::Resources);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Told::Tools);
    }
}

impl Assistant {
    pub(crate) async fn connect(hub: SocketAddr, life: Life) -> Self {
        Self::connect_as(hub, life, None).await
    }

    /// As the caller whose token this is.
    pub(crate) async fn connect_as(hub: SocketAddr, life: Life, token: Option<&str>) -> Self {
        let lifecycle = match life {
            Life::Session => ClientLifecycleMode::Initialize,
            Life::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let ear = Ear::default();
        let told = ear.0.clone();
        let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{hub}/mcp"));
        if let Some(token) = token {
            config = config.auth_header(token);
        }
        let transport = StreamableHttpClientTransport::from_config(config);
        let running = ear.serve_with_lifecycle(transport, lifecycle).await.unwrap();
        Self { running, told }
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    /// The URIs and titles of all resources, page by page, and how many pages there were.
    pub(crate) async fn resources(&self) -> (Vec<(String, String)>, usize) {
        let (mut all, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let page = rmcp::model::PaginatedRequestParams::default().with_cursor(cursor);
            let listed = self.peer().list_resources(Some(page)).await.unwrap();
            all.extend(listed.resources.into_iter().map(|r| (r.uri, r.title.unwrap_or_default())));
            pages += 1;
            cursor = listed.next_cursor;
            if cursor.is_none() {
                return (all, pages);
            }
        }
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<Json, ErrorData> {
        match self.peer().read_resource(ReadResourceRequestParams::new(uri)).await {
            Ok(read) => match &read.contents[..] {
                [ResourceContents::TextResourceContents { text, mime_type, uri: of, .. }] => {
                    assert_eq!((mime_type.as_deref(), of.as_str()), (Some("application/json"), uri));
                    Ok(serde_json::from_str(text).unwrap())
                }
                other => panic!("{other:?}"),
            },
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    #[expect(deprecated, reason = "the way of sessions")]
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        match self.peer().subscribe(SubscribeRequestParams::new(uri)).await {
            Ok(()) => Ok(()),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    #[expect(deprecated, reason = "the way of sessions")]
    pub(crate) async fn unsubscribe(&self, uri: &str) {
        self.peer().unsubscribe(UnsubscribeRequestParams::new(uri)).await.unwrap();
    }

    /// Begins a call that can be cancelled.
    pub(crate) async fn begin(&self, tool: &str, arguments: Json) -> RequestHandle<RoleClient> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(object(arguments));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
    }

    /// Calls a tool: the whole answer.
    pub(crate) async fn call(&self, tool: &str, arguments: Json) -> Json {
        let answer = self.begin(tool, arguments).await.await_response().await.unwrap();
        let ServerResult::CallToolResult(result) = answer else { panic!("{answer:?}") };
        result.structured_content.unwrap()
    }

    /// What was told so far.
    pub(crate) fn so_far(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until this was told, so often.
    pub(crate) async fn hears(&self, wanted: &Told, times: usize) {
        let so = || self.so_far().iter().filter(|told| *told == wanted).count() >= times;
        let waiting = async {
            while !so() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let heard = tokio::time::timeout(HANG, waiting).await;
        heard.unwrap_or_else(|_| panic!("never told {times} times: {wanted:?}; told: {:?}", self.so_far()));
    }

    pub(crate) async fn listen(&self, filter: SubscriptionFilter) -> Subscription {
        tokio::time::timeout(HANG, self.peer().listen(filter)).await.unwrap().unwrap()
    }

    pub(crate) async fn close(self) {
        self.running.cancel().await.unwrap();
    }
}

/// Waits for the next thing that a stream tells; `None` once it has ended.
pub(crate) async fn next(stream: &mut Subscription) -> Option<Told> {
    let told = tokio::time::timeout(HANG, stream.next()).await.expect("the stream says something").unwrap()?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "anything else is a failure")]
    Some(match told {
        ServerNotification::ToolListChangedNotification(_) => Told::Tools,
        ServerNotification::ResourceListChangedNotification(_) => Told::Resources,
        ServerNotification::ResourceUpdatedNotification(update) => Told::Updated(update.params.uri),
        other => panic!("{other:?}"),
    })
}

fn object(arguments: Json) -> JsonObject {
    let Json::Object(map) = arguments else { panic!("{arguments}") };
    map
}
