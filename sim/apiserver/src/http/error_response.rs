//! Responses of failed requests.

use serde_json::json;

use super::error::ApiError;
use super::response::Response;

impl ApiError {
    /// Returns the response that reports this error.
    pub(crate) fn into_response(self) -> Response {
        match &self {
            Self::NoSuchPath => Response::text(404, "404 page not found\n"),
            Self::Lost => Response::Cut,
            // The server takes the calls out of the error before it becomes a response.
            Self::AwaitsWebhooks(_) => {
                Self::new(500, "InternalError", "Internal error occurred: webhooks were not called", None)
                    .into_response()
            }
            Self::Status(status) => {
                let mut response = Response::json(status.code, &self.to_value());
                for warning in &status.warnings {
                    response = response.with_warning(warning);
                }
                match status.details.as_ref().and_then(|details| details.get("retryAfterSeconds")) {
                    Some(seconds) => response.with_header("retry-after", seconds.to_string()),
                    None => response,
                }
            }
        }
    }
}

/// Returns the response of a request that a fault rejects with this status.
pub(crate) fn fault_response(status: u16, retry_after_secs: Option<u64>) -> Response {
    let response = match status {
        429 => Response::text(429, "Too many requests, please try again later."),
        500 => ApiError::new(500, "InternalError", "Internal error occurred: simulated failure", None).into_response(),
        503 => ApiError::new(503, "ServiceUnavailable", "the server is currently unable to handle the request", None)
            .into_response(),
        504 => ApiError::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout", None)
            .into_response(),
        401 => ApiError::new(401, "Unauthorized", "Unauthorized", None).into_response(),
        403 => ApiError::new(403, "Forbidden", "forbidden: simulated denial", None).into_response(),
        other => ApiError::new(other, "", "simulated refusal", None).into_response(),
    };
    match retry_after_secs {
        Some(seconds) => response.with_header("retry-after", seconds.to_string()),
        None => response,
    }
}

/// Returns the response of a request that waited too long for webhooks.
pub(crate) fn timeout_response() -> Response {
    let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    ApiError::new(504, "Timeout", message, Some(json!({}))).into_response()
}
