//! Liveness, readiness and metrics, which need no key.

use std::time::Duration;

use axum::extract::State;
use http::header::CONTENT_TYPE;
use http::{HeaderName, StatusCode};
use sindri_model::wire::Agent;
use tokio::time::timeout;

use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::published_metrics::{AGENTS_MAX, HeartbeatAge};
use crate::store::Page;

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

/// Time limit for counting records in the store; the metrics then have the counts of the last time.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);

/// Returns the metrics.
pub(crate) async fn metrics(State(broker): State<Broker>) -> ([(HeaderName, &'static str); 1], String) {
    if broker.figures.refresh(broker.store.as_ref(), &broker.metrics).await {
        // The other metrics do not depend on the store.
        let _timed_out = timeout(COUNT_TIME_MAX, count_records(&broker)).await;
    }
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], broker.metrics.to_text())
}

/// Sets the metrics that are counted in the store; they stay as they are if it fails.
async fn count_records(broker: &Broker) {
    let page = Page { after: None, limit: AGENTS_MAX };
    let (Ok(counts), Ok(agents)) = (broker.store.count_records().await, broker.store.list_agents(page).await) else {
        return;
    };
    let now = broker.clock.now();
    let to_age = |agent: Agent| {
        let agent = broker.memory.heartbeats.apply_to(agent);
        let seconds = now.duration_since(agent.last_heartbeat?).as_secs().max(0);
        Some(HeartbeatAge { id: agent.id.to_string(), name: agent.name, seconds })
    };
    broker.metrics.published.set_counts(counts, agents.into_iter().filter_map(to_age).collect());
}
