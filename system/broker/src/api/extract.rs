//! The parts of a request, each refused in the one shape of errors.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::response::IntoResponse;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::BODY_BYTES_MAX;
use super::answer::Refusal;
use crate::store::Page;

/// The longest name of anything.
const NAME_CHARS_MAX: usize = 255;

/// The ids in the path.
pub(crate) struct Ids<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Ids<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(ids)| Self(ids))
            .map_err(|error| Refusal::bad("invalid_id", format!("the path holds no valid id: {}", error.body_text())))
    }
}

/// The query.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|error| Refusal::bad("invalid_query", error.body_text()))
    }
}

#[derive(Deserialize)]
struct Part {
    limit: Option<i64>,
    after: Option<Uuid>,
}

/// Which part of a list was asked for.
pub(crate) struct Paged(pub Page);

impl<S: Send + Sync> FromRequestParts<S> for Paged {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Asked(part) = Asked::<Part>::from_request_parts(parts, state).await?;
        let limit = part.limit.unwrap_or(Page::LIMIT_MAX);
        if limit < 1 {
            return Err(Refusal::bad("invalid_query", "limit must be at least 1"));
        }
        let after = part.after.map(|after| after.to_string());
        Ok(Self(Page { after, limit: limit.min(Page::LIMIT_MAX) }))
    }
}

/// A JSON body. An empty one counts as `{}`, for operations whose every field is optional.
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await.map_err(unreadable)?;
        json(if bytes.is_empty() { b"{}" } else { &bytes }).map(Self)
    }
}

/// Reads JSON.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad("invalid_json", format!("the body is not valid: {error}")))
}

/// The body did not arrive whole.
pub(crate) fn unreadable(error: BytesRejection) -> Refusal {
    let text = error.body_text();
    match error.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {BODY_BYTES_MAX} bytes"),
        ),
        _ => Refusal::bad("body_unreadable", text),
    }
}

/// Refuses a name that nobody could type or read.
pub(crate) fn check_name(field: &str, name: &str) -> Result<(), Refusal> {
    let fits = name.chars().count() <= NAME_CHARS_MAX;
    if fits && !name.trim().is_empty() && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("{field} must have 1 to {NAME_CHARS_MAX} characters and no control characters");
    Err(Refusal::bad("invalid_name", message))
}
