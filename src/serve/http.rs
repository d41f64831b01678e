//! The HTTP port: `/mcp`, `/metrics`, `/healthz`, `/readyz`.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
    serve::Listener as _,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Parts,
    bearer::{self, Bearer},
    bounded::Bounded,
};
use crate::mcp;

/// The media type of Prometheus' text format, version 0.0.4.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long a connection may take to say what it wants, at its beginning and after each answer. One that says nothing is closed: it
/// holds a place that another may need.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// All routes.
pub(super) fn router(parts: &Arc<Parts>, stop: &CancellationToken) -> Router {
    let settings = &parts.config.http;
    // On loopback the MCP endpoint takes only the names of this machine; beyond it any address of this hub is its own.
    let hosts = settings.listen.ip().is_loopback().then(|| settings.hosts.clone());
    let http = mcp::Http { stop: stop.clone(), sessions_max: settings.sessions_max, hosts };
    let bearer = middleware::from_fn_with_state(Bearer::new(parts.tokens.clone(), settings.tokens), bearer::identify);
    let open = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready));
    let known = Router::new()
        .route("/metrics", get(metrics))
        .with_state(parts.clone())
        .merge(mcp::router(parts.mcp_server(mcp::Transport::Http), http))
        .layer(bearer);
    let hosts: Arc<[String]> = settings.hosts.clone().into();
    open.with_state(parts.clone()).merge(known).layer(middleware::from_fn_with_state(hosts, from_this_house))
}

/// Refuses a request for a name that is not this machine's: a page in a browser could have its own name lead here (DNS
/// rebinding). It cannot for an address.
async fn from_this_house(State(hosts): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_ours = || hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name));
    if host.is_empty() || name.eq_ignore_ascii_case("localhost") || address.is_ok() || is_ours() {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "ask for localhost, for an address, or for a name of http.hosts\n").into_response()
}

/// Serves until `stop`; then each connection ends behind the answer that it is giving. When this is dropped, all end at once.
pub(super) async fn serve(mut listener: Bounded, router: Router, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WITHIN);
    let mut connections = JoinSet::new();
    loop {
        let socket = tokio::select! {
            () = stop.cancelled() => break,
            Some(_ended) = connections.join_next() => continue,
            (socket, _) = listener.accept() => socket,
        };
        let connection = http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router.clone()));
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an http connection was cut");
            }
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn metrics(State(parts): State<Arc<Parts>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], parts.metrics_text())
}

/// Ready when the bus carries: what a load balancer or a person may ask before sending calls.
async fn ready(State(parts): State<Arc<Parts>>) -> (StatusCode, &'static str) {
    if parts.broker.up() { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "the bus is down\n") }
}
