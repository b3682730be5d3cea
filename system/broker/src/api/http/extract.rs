//! The parts of a request, each refused in the one shape of errors.
//!
//! A NUL character is refused wherever it stands: PostgreSQL has no text that holds one.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::describe::{Operation, Part};
use super::error_response::Refusal;
use crate::broker::Broker;

const JSON: &str = "application/json";
/// How a NUL character is written in an address.
const NUL_IN_ADDRESS: &str = "%00";
/// And in JSON, where it cannot stand as itself.
const NUL_IN_JSON: &[u8] = b"\\u0000";

/// The ids in the path.
pub(crate) struct Ids<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Ids<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        if parts.uri.path().contains(NUL_IN_ADDRESS) {
            return Err(Refusal::bad("invalid_id", "the path holds a NUL character"));
        }
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(ids)| Self(ids))
            .map_err(|error| Refusal::bad("invalid_id", format!("the path holds no valid id: {}", error.body_text())))
    }
}

impl<T: JsonSchema> Part for Ids<T> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = T::json_schema(schemas).to_value();
        operation.in_path = match schema.get("prefixItems").and_then(Value::as_array) {
            Some(several) => several.clone(),
            None => vec![schema],
        };
        operation.refusals.extend([400, 404]);
    }
}

/// The query.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        if parts.uri.query().is_some_and(|query| query.contains(NUL_IN_ADDRESS)) {
            return Err(Refusal::bad("invalid_query", "the query holds a NUL character"));
        }
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|error| Refusal::bad("invalid_query", error.body_text()))
    }
}

impl<T: JsonSchema> Part for Asked<T> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = T::json_schema(schemas).to_value();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|required| required == name);
            operation.parameters.push(json!({"name": name, "in": "query", "required": is_required, "schema": schema}));
        }
        operation.refusals.insert(400);
    }
}

/// A JSON body. An empty one counts as `{}`, for operations whose every field is optional.
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Broker> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, broker: &Broker) -> Result<Self, Refusal> {
        let media = media_type(request.headers());
        let bytes = whole_body(request, broker).await?;
        if bytes.is_empty() {
            return json(b"{}").map(Self);
        }
        if media == JSON || media.ends_with("+json") {
            return json(&bytes).map(Self);
        }
        Err(unsupported(format!("this is sent as {JSON}, not as {media}")))
    }
}

impl<T: JsonSchema> Part for Body<T> {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = schemas.subschema_for::<T>();
        operation.body = Some(json!({"required": true, "content": {JSON: {"schema": schema}}}));
        operation.refusals.extend([400, 408, 413, 415]);
    }
}

/// The content type without its parameters, in small letters; JSON if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let Some(header) = headers.get(CONTENT_TYPE) else { return JSON.to_owned() };
    let text = header.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn unsupported(message: String) -> Refusal {
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
}

/// The body, as long as it may be.
pub(crate) async fn whole_body(request: Request, broker: &Broker) -> Result<Bytes, Refusal> {
    Bytes::from_request(request, broker).await.map_err(|error| unreadable(error, broker.bounds.body_bytes_max))
}

/// Reads JSON.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let invalid = |error: serde_json::Error| Refusal::bad("invalid_json", format!("the body is not valid: {error}"));
    // Looked at closely only when it may be there: the same letters may follow an escaped backslash.
    if bytes.windows(NUL_IN_JSON.len()).any(|part| part == NUL_IN_JSON) {
        let value: Value = serde_json::from_slice(bytes).map_err(invalid)?;
        if holds_nul(&value) {
            return Err(Refusal::bad("invalid_json", "the body holds a NUL character"));
        }
    }
    serde_json::from_slice(bytes).map_err(invalid)
}

/// JSON is never deeper than its parser allows.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
    }
}

/// The body did not arrive whole.
fn unreadable(error: BytesRejection, body_bytes_max: usize) -> Refusal {
    let text = error.body_text();
    match error.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {body_bytes_max} bytes"),
        ),
        _ => Refusal::bad("body_unreadable", text),
    }
}
