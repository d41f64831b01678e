use std::sync::Mutex as Now;

use rmcp::{ClientHandler, model::ServerCapabilities};
use serde_json::{Value as Json, json};

use super::*;

/// A hub that answers every call with its own name.
#[derive(Clone)]
struct Named(&'static str);

impl ServerHandler for Named {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(rmcp::model::CallToolResult::structured(json!({"hub": self.0})).into())
    }
}

/// Serves a hub on a port of its own; cancelled, its sessions end and its port is free.
async fn hub(name: &'static str) -> (String, CancellationToken, tokio::task::JoinHandle<()>) {
    use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let service = StreamableHttpService::new(
        move || Ok(Named(name)),
        Arc::new(LocalSessionManager::default()),
        rmcp::transport::StreamableHttpServerConfig::default().with_cancellation_token(stop.clone()),
    );
    let app = axum::Router::new().route_service("/mcp", service);
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        tokio::select! {
            served = axum::serve(listener, app) => served.unwrap(),
            () = stopped.cancelled() => {}
        }
    });
    (url, stop, task)
}

struct Nobody;
impl ClientHandler for Nobody {}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_on_another_port_is_found_again_and_one_that_is_gone_was_sent_nothing() {
    let (first, stop_first, first_task) = hub("first").await;
    let place = Arc::new(Now::new(Some(first)));
    let looked_up = place.clone();
    let bridge = Bridge::connected(BridgeSettings {
        token: None,
        hub: Arc::new(move || looked_up.lock().unwrap().clone()),
        lang: Lang::En,
        answer_within: Duration::from_secs(30),
    })
    .await
    .unwrap();
    let (here, there) = tokio::io::duplex(65_536);
    let serving = tokio::spawn(async move { bridge.serve(here).await.unwrap().waiting().await });
    let client = Nobody.serve(there).await.unwrap();
    let ask = || async {
        let answer = client.call_tool(CallToolRequestParams::new("switch_device")).await.unwrap();
        answer.structured_content.unwrap()
    };
    assert_eq!(ask().await["hub"], "first");
    stop_first.cancel();
    first_task.await.unwrap();
    let gone: Json = ask().await;
    assert_eq!((&gone["result"], &gone["reason"]), (&json!("failed"), &json!("hub_unreachable")));
    *place.lock().unwrap() = None;
    assert_eq!(ask().await["result"], "failed", "nobody knows of a hub");
    let (second, _stop_second, _task) = hub("second").await;
    *place.lock().unwrap() = Some(second);
    assert_eq!(ask().await["hub"], "second");
    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
}
