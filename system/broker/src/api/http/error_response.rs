//! Errors: every error response has a status, a code and a message in one JSON shape.

use std::fmt::{Display, Formatter, Result as Formatted};
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::RETRY_AFTER;
use sindri_model::Problem;
use sindri_model::wire::OTHER_LEADER_CODE;

use super::connection::closing_connection;
use super::denial::Denial;
use crate::store::{RecordKind, StoreError};

/// Every status of an error response, and its meaning in all operations.
pub(crate) const STATUSES: [(u16, &str); 12] = [
    (400, "The request is invalid."),
    (401, "The key is missing or unknown."),
    (403, "The key does not allow this operation."),
    (404, "The object does not exist."),
    (408, "The body did not arrive in time."),
    (
        409,
        "The object exists already, the approval was decided differently, another request has replaced the key, no administrator would be left, or the Idempotency-Key was used and its response cannot be repeated.",
    ),
    (413, "The body is too large."),
    (415, "The operation does not accept this content type."),
    (422, "An object that the body refers to does not exist, or the Idempotency-Key was used for another request."),
    (429, "Too many requests; retry after the time in Retry-After."),
    (500, "The broker failed; retry."),
    (503, "The store does not respond, or a setting is missing; the code says which."),
];

/// An error response; its body is a [`Problem`].
#[derive(Clone, Debug)]
pub struct ErrorResponse {
    status: StatusCode,
    code: String,
    message: String,
    retry_after: Option<Duration>,
}

impl Display for ErrorResponse {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Formatted {
        formatter.write_str(&self.message)
    }
}

impl ErrorResponse {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), retry_after: None }
    }

    /// Returns true if the request was rejected, and nothing was changed.
    pub fn is_rejection(&self) -> bool {
        self.status.is_client_error()
    }

    pub(crate) fn bad_request(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Returns the same error with another code.
    pub(crate) fn with_code(self, code: &str) -> Self {
        Self { code: code.to_owned(), ..self }
    }

    /// Returns the same error with the time after which a retry may succeed.
    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Returns the error of a request that got no permit in time.
    pub(crate) fn too_many(code: &str, message: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).with_retry_after(Duration::ZERO)
    }

    pub(crate) fn rate_limited(message: String, wait: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message).with_retry_after(wait)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn admin_required(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "admin_required", message)
    }
}

impl From<Denial> for ErrorResponse {
    fn from(denial: Denial) -> Self {
        let (code, message) = denial.code_and_message();
        Self::new(StatusCode::FORBIDDEN, code, message)
    }
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound { kind, .. } => {
                Self::new(StatusCode::NOT_FOUND, &format!("{}_not_found", kind.code()), message)
            }
            StoreError::AlreadyExists { kind: RecordKind::Registration, .. } => {
                Self::new(StatusCode::CONFLICT, "already_registered", message)
            }
            StoreError::AlreadyExists { .. } => Self::new(StatusCode::CONFLICT, "unique_violation", message),
            StoreError::MissingReference { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "foreign_key_violation", message)
            }
            StoreError::NotRegistered { .. } => Self::new(StatusCode::FORBIDDEN, "agent_not_registered", message),
            StoreError::AlreadyDecided { .. } => Self::new(StatusCode::CONFLICT, "approval_decided", message),
            StoreError::KeyChanged => Self::new(StatusCode::CONFLICT, "key_changed", message),
            StoreError::OtherLeader(_) => Self::new(StatusCode::CONFLICT, OTHER_LEADER_CODE, message),
            StoreError::LastAdmin => Self::new(StatusCode::CONFLICT, "last_admin", message),
            StoreError::DependencyCycle(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "dependency_cycle", message),
            StoreError::InvalidPolicy(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_policy", message),
            StoreError::StackSuspended(_) => Self::new(StatusCode::CONFLICT, "stack_suspended", message),
            StoreError::NotOwner => Denial::StackNotOwned.into(),
            StoreError::GeneratorInactive => Self::new(StatusCode::FORBIDDEN, "generator_inactive", message),
            StoreError::TooManyProposals { wait, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_proposals", message).with_retry_after(wait)
            }
            StoreError::IdempotencyKeyReused(_) => Self::new(StatusCode::CONFLICT, "idempotency_key_reused", message),
            StoreError::IdempotencyKeyMismatch => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_mismatch", message)
            }
            StoreError::Unavailable => Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message),
            StoreError::Failed(_) => {
                // Internal details go to the log of the broker, not to its clients.
                tracing::error!(error = %message, "store");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", "the store failed; retry")
            }
        }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let is_unavailable = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let response = self.into_open_response();
        if is_unavailable { closing_connection(response) } else { response }
    }
}

impl ErrorResponse {
    fn into_open_response(self) -> Response {
        let body = Json(Problem { code: self.code, message: self.message, details: None });
        match self.retry_after {
            None => (self.status, body).into_response(),
            // Rounded up: a retry after the time in the header succeeds.
            Some(wait) => (self.status, [(RETRY_AFTER, wait.as_secs().saturating_add(1))], body).into_response(),
        }
    }
}

/// Responds to a path that no route has.
pub(crate) async fn route_not_found(request: Request) -> ErrorResponse {
    ErrorResponse::new(StatusCode::NOT_FOUND, "route_not_found", format!("there is no route {}", request.uri().path()))
}

/// Responds to a method that the route does not have.
pub(crate) async fn method_not_allowed(request: Request) -> ErrorResponse {
    let message = format!("{} does not accept {}", request.uri().path(), request.method());
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
