//! Liveness, readiness and metrics, which need no key.

use std::time::Duration;

use axum::extract::State;
use http::header::CONTENT_TYPE;
use http::{HeaderName, StatusCode};
use tokio::time::timeout;

use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;

/// Time limit for the store to respond.
const STORE_TIME_MAX: Duration = Duration::from_secs(1);

/// Responds while the process runs, without asking the store.
pub(crate) async fn liveness() -> &'static str {
    "ok"
}

/// Responds with 200 if the store responds in time.
pub(crate) async fn readiness(State(broker): State<Broker>) -> Result<&'static str, ErrorResponse> {
    check_store(broker.store.ping(), STORE_TIME_MAX).await
}

async fn check_store<E>(
    ping: impl Future<Output = Result<(), E>>,
    time_max: Duration,
) -> Result<&'static str, ErrorResponse> {
    match timeout(time_max, ping).await {
        Ok(Ok(())) => Ok("ok"),
        Ok(Err(_)) | Err(_) => {
            Err(ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the store does not respond"))
        }
    }
}

/// Returns the metrics.
pub(crate) async fn metrics(State(broker): State<Broker>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], broker.metrics.to_text())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[tokio::test]
    async fn a_store_that_fails_or_does_not_respond_is_not_ready() {
        let short = Duration::from_millis(1);
        assert_eq!(check_store(async { Ok::<_, ()>(()) }, short).await.unwrap(), "ok");
        for error in [
            check_store(async { Err(()) }, short).await.unwrap_err(),
            check_store(std::future::pending::<Result<(), ()>>(), short).await.unwrap_err(),
        ] {
            assert_eq!(error.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
