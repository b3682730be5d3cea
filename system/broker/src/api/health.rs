//! Whether the process lives, and whether it can serve. No key is needed.

use axum::extract::State;
use http::StatusCode;

use super::answer::Refusal;
use crate::Broker;

/// The process answers; nothing else is asked.
pub(crate) async fn alive() -> &'static str {
    "ok"
}

/// The store answers too.
pub(crate) async fn ready(State(broker): State<Broker>) -> Result<&'static str, Refusal> {
    let refusal = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the store does not answer");
    broker.store.ping().await.map(|()| "ok").map_err(refusal)
}
