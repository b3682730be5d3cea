//! Whether the process lives, whether it can serve, and what it counts. No key is needed.

use std::time::Duration;

use axum::extract::State;
use http::header::CONTENT_TYPE;
use http::{HeaderName, StatusCode};
use tokio::time::timeout;

use crate::api::http::error_response::Refusal;
use crate::broker::Broker;

/// How long the store may take to answer.
const STORE_TIME_MAX: Duration = Duration::from_secs(1);

/// The process answers; nothing else is asked.
pub(crate) async fn alive() -> &'static str {
    "ok"
}

/// The store answers too, in time.
pub(crate) async fn ready(State(broker): State<Broker>) -> Result<&'static str, Refusal> {
    answers(broker.store.ping(), STORE_TIME_MAX).await
}

async fn answers<E>(ping: impl Future<Output = Result<(), E>>, time_max: Duration) -> Result<&'static str, Refusal> {
    match timeout(time_max, ping).await {
        Ok(Ok(())) => Ok("ok"),
        Ok(Err(_)) | Err(_) => {
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the store does not answer"))
        }
    }
}

/// What is counted.
pub(crate) async fn metrics(State(broker): State<Broker>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], broker.metrics.text())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[tokio::test]
    async fn a_store_that_fails_or_does_not_answer_is_not_ready() {
        let short = Duration::from_millis(1);
        assert_eq!(answers(async { Ok::<_, ()>(()) }, short).await.unwrap(), "ok");
        for refusal in [
            answers(async { Err(()) }, short).await.unwrap_err(),
            answers(std::future::pending::<Result<(), ()>>(), short).await.unwrap_err(),
        ] {
            assert_eq!(refusal.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
