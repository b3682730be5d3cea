//! Errors of requests that a webhook denied.

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::object::fields::string_at;

/// Smallest HTTP status of a denial; a lower one is replaced by it.
const STATUS_MIN: u64 = 400;

/// Returns the error of a denied request.
pub(super) fn denied(webhook: &str, status: Option<&Value>) -> ApiError {
    let mut status = status.cloned().unwrap_or_else(|| json!({}));
    let by = format!("admission webhook {} denied the request", json!(webhook));
    let (message, reason) = (string_at(&status, "/message"), string_at(&status, "/reason"));
    let message = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status.get("code").and_then(Value::as_u64).unwrap_or_default().max(STATUS_MIN);
    status["message"] = json!(message);
    status["code"] = json!(code);
    ApiError::from_status(&status)
}
