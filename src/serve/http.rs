//! The HTTP port: `/mcp`, `/metrics`, `/healthz`, `/readyz`.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio_util::sync::CancellationToken;

use super::{Parts, bounded::Bounded};
use crate::mcp;

/// The media type of Prometheus' text format, version 0.0.4.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All routes.
pub(super) fn router(parts: &Arc<Parts>, stop: &CancellationToken) -> Router {
    let http = mcp::Http { stop: stop.clone(), sessions_max: parts.config.http.sessions_max };
    let plain = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(parts.clone());
    plain.merge(mcp::router(parts.mcp_server(mcp::Transport::Http), http))
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
