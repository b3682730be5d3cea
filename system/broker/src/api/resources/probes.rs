//! Liveness, readiness and metrics, which need no key.

use axum::extract::State;
use http::header::CONTENT_TYPE;
use http::{HeaderName, StatusCode};

use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;

/// Responds while the process runs, without asking the store.
pub(crate) async fn liveness() -> &'static str {
    "ok"
}

/// Responds with 200 if the store accepts changes.
pub(crate) async fn readiness(State(broker): State<Broker>) -> Result<&'static str, ErrorResponse> {
    if broker.readiness.check(|| broker.store.check_writable()).await {
        return Ok("ok");
    }
    let message = "the store does not respond, or does not accept changes";
    Err(ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message))
}

/// Returns the metrics.
pub(crate) async fn metrics(State(broker): State<Broker>) -> ([(HeaderName, &'static str); 1], String) {
    broker.figures.refresh(broker.store.as_ref(), &broker.metrics).await;
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], broker.metrics.to_text())
}
