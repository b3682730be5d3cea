//! How a request is refused: every error has a code, a message and the same shape.

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use sindri_model::Problem;

use crate::store::StoreError;

/// Every status of a refusal, and what it means wherever it is answered.
pub(crate) const STATUSES: [(u16, &str); 12] = [
    (400, "Something in the request is not what it must be."),
    (401, "The key is missing or not known."),
    (403, "This key may not do that."),
    (404, "It does not exist."),
    (408, "The body did not arrive in time."),
    (409, "It exists already, it was decided otherwise, or the Idempotency-Key was used for something else."),
    (413, "The body is too large."),
    (415, "The content type is not one that this takes."),
    (422, "Something that the body refers to does not exist."),
    (429, "Too many requests; Retry-After says when to try again."),
    (500, "The broker failed; try again."),
    (503, "The store does not answer, or a setting is missing; the code says which."),
];

/// A refusal.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: String,
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into() }
    }

    pub(crate) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "this key may not do that")
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound { kind, .. } => {
                Self::new(StatusCode::NOT_FOUND, &format!("{}_not_found", kind.code()), message)
            }
            StoreError::AlreadyExists { kind, .. } => {
                Self::new(StatusCode::CONFLICT, &format!("{}_exists", kind.code()), message)
            }
            StoreError::MissingReference { kind, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, &format!("{}_not_found", kind.code()), message)
            }
            StoreError::NotRegistered { .. } => Self::new(StatusCode::FORBIDDEN, "agent_not_registered", message),
            StoreError::AlreadyDecided { .. } => Self::new(StatusCode::CONFLICT, "approval_decided", message),
            StoreError::NotOwner => Self::forbidden(),
            StoreError::IdempotencyKeyReused(_) => Self::new(StatusCode::CONFLICT, "idempotency_key_reused", message),
            StoreError::Unavailable => Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message),
            StoreError::Failed(_) => {
                // What failed inside is for the operator of the broker, not for its clients.
                tracing::error!(error = %message, "store");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", "the store failed; try again")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(Problem { code: self.code, message: self.message, details: None })).into_response()
    }
}

/// No route has this path.
pub(crate) async fn no_route(request: Request) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "route_not_found", format!("there is nothing at {}", request.uri().path()))
}

/// The route has no such method.
pub(crate) async fn no_method(request: Request) -> Refusal {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
