//! The HTTP port: `/mcp`, `/metrics`, `/healthz`, `/readyz`.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio_util::sync::CancellationToken;

use super::{
    Parts,
    bearer::{self, Bearer},
    bounded::Bounded,
};
use crate::mcp;

/// The media type of Prometheus' text format, version 0.0.4.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

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

/// Serves until `stop`.
pub(super) async fn serve(listener: Bounded, router: Router, stop: CancellationToken) {
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "http ended");
    }
}

async fn metrics(State(parts): State<Arc<Parts>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], parts.metrics_text())
}

/// Ready when the bus carries: what a load balancer or a person may ask before sending calls.
async fn ready(State(parts): State<Arc<Parts>>) -> (StatusCode, &'static str) {
    if parts.broker.up() { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "the bus is down\n") }
}
