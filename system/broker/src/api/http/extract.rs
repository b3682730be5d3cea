//! Extractors of path parameters, query parameters and JSON bodies, which reject bad input with an [`ErrorResponse`].
//!
//! Unknown fields of a body are ignored, because clients send whole records back; a client that sends `Sindri-Strict: true`
//! gets an error instead.
//!
//! A NUL character is rejected everywhere: PostgreSQL cannot store it in a text.

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
use sindri_model::wire::STRICT_HEADER;

use super::describe::{DescribeRequest, Operation, parameter};
use super::error_response::ErrorResponse;
use crate::broker::Broker;

const JSON: &str = "application/json";
/// Size from which a body is parsed on another thread.
pub(crate) const LARGE_BYTES: usize = 16 * 1024;
/// NUL in a URI.
const NUL_IN_URI: &str = "%00";
/// NUL in JSON, where it must be escaped.
const NUL_IN_JSON: &[u8] = b"\\u0000";

/// Parameters in the path.
pub(crate) struct PathParams<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        if parts.uri.path().contains(NUL_IN_URI) {
            return Err(ErrorResponse::bad_request("invalid_id", "the path contains a NUL character"));
        }
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(ids)| Self(ids)).map_err(|error| {
            ErrorResponse::bad_request("invalid_id", format!("the path contains an invalid id: {}", error.body_text()))
        })
    }
}

impl<T: JsonSchema> DescribeRequest for PathParams<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = T::json_schema(schemas).to_value();
        operation.path_schemas = match schema.get("prefixItems").and_then(Value::as_array) {
            Some(tuple) => tuple.clone(),
            None => vec![schema],
        };
        operation.errors.extend([400, 404]);
    }
}

/// Parameters in the query.
pub(crate) struct QueryParams<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        if parts.uri.query().is_some_and(|query| query.contains(NUL_IN_URI)) {
            return Err(ErrorResponse::bad_request("invalid_query", "the query contains a NUL character"));
        }
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(query)| Self(query))
            .map_err(|error| ErrorResponse::bad_request("invalid_query", error.body_text()))
    }
}

impl<T: JsonSchema> DescribeRequest for QueryParams<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = T::json_schema(schemas).to_value();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|required| required == name);
            let description = schema["description"].as_str().unwrap_or_default();
            let mut described = parameter("query", name, description, schema.clone());
            described["required"] = is_required.into();
            operation.parameters.push(described);
        }
        operation.errors.insert(400);
    }
}

/// JSON body. An empty body is read as `{}`, for operations whose fields are all optional.
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Broker> for JsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, broker: &Broker) -> Result<Self, ErrorResponse> {
        let (media, parsing) = (media_type(request.headers()), Parsing::requested(request.headers())?);
        let bytes = read_body(request, broker).await?;
        if bytes.is_empty() {
            return parse_json(b"{}", parsing).map(Self);
        }
        if media == JSON || media.ends_with("+json") {
            return parse_body(broker, bytes, parsing).await.map(Self);
        }
        Err(unsupported_media_type(format!("the body must be {JSON}, not {media}")))
    }
}

impl<T: JsonSchema> DescribeRequest for JsonBody<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let schema = schemas.subschema_for::<T>();
        operation.body = Some(json!({"required": true, "content": {JSON: {"schema": schema}}}));
        let description = "True: unknown fields in the body are an error. They are ignored otherwise.";
        let strict = parameter("header", "Sindri-Strict", description, json!({"type": "boolean", "default": false}));
        operation.parameters.push(strict);
        operation.errors.extend([400, 408, 413, 415]);
    }
}

/// JSON body that may be omitted.
pub(crate) struct OptionalJsonBody<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Broker> for OptionalJsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, broker: &Broker) -> Result<Self, ErrorResponse> {
        JsonBody::from_request(request, broker).await.map(|JsonBody(body)| Self(body))
    }
}

impl<T: JsonSchema> DescribeRequest for OptionalJsonBody<T> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        JsonBody::<T>::describe(operation, schemas);
        if let Some(body) = &mut operation.body {
            body["required"] = false.into();
        }
    }
}

/// Returns the content type without its parameters, in lower case; JSON if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let Some(header) = headers.get(CONTENT_TYPE) else { return JSON.to_owned() };
    let text = header.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn unsupported_media_type(message: String) -> ErrorResponse {
    ErrorResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
}

/// Reads the whole body, up to the limit.
pub(crate) async fn read_body(request: Request, broker: &Broker) -> Result<Bytes, ErrorResponse> {
    Bytes::from_request(request, broker).await.map_err(|error| body_error(error, broker.bounds.body_bytes_max))
}

/// Treatment of unknown fields in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsing {
    /// They are ignored.
    Lenient,
    /// They are an error.
    Strict,
}

impl Parsing {
    /// Returns the treatment that the headers of a request ask for.
    pub(crate) fn requested(headers: &HeaderMap) -> Result<Self, ErrorResponse> {
        match headers.get(STRICT_HEADER).map(|value| value.as_bytes()) {
            None | Some(b"false") => Ok(Self::Lenient),
            Some(b"true") => Ok(Self::Strict),
            Some(_) => {
                Err(ErrorResponse::bad_request("invalid_header", format!("{STRICT_HEADER} must be true or false")))
            }
        }
    }
}

/// Limit on the unknown fields that an error names.
const UNKNOWN_FIELDS_MAX: usize = 10;

/// Deserializes a JSON body, a large one on another thread.
pub(crate) async fn parse_body<T: DeserializeOwned + Send + 'static>(
    broker: &Broker,
    bytes: Bytes,
    parsing: Parsing,
) -> Result<T, ErrorResponse> {
    if bytes.len() < LARGE_BYTES {
        return parse_json(&bytes, parsing);
    }
    let parsed = broker.offload.run(move || parse_json(&bytes, parsing)).await;
    parsed.unwrap_or_else(|| Err(ErrorResponse::bad_request("invalid_json", "the body cannot be parsed")))
}

/// Deserializes JSON.
fn parse_json<T: DeserializeOwned>(bytes: &[u8], parsing: Parsing) -> Result<T, ErrorResponse> {
    let to_response = |error: serde_json::Error| {
        ErrorResponse::bad_request("invalid_json", format!("the body is not valid JSON for this operation: {error}"))
    };
    // The escape is searched for first, which is fast. Its characters may also follow an escaped backslash, so the
    // parsed value decides.
    if bytes.windows(NUL_IN_JSON.len()).any(|part| part == NUL_IN_JSON) {
        let value: Value = serde_json::from_slice(bytes).map_err(to_response)?;
        if contains_nul(&value) {
            return Err(ErrorResponse::bad_request("invalid_json", "the body contains a NUL character"));
        }
    }
    match parsing {
        Parsing::Lenient => serde_json::from_slice(bytes).map_err(to_response),
        Parsing::Strict => parse_strictly(bytes, to_response),
    }
}

fn parse_strictly<T: DeserializeOwned>(
    bytes: &[u8],
    to_response: impl Fn(serde_json::Error) -> ErrorResponse,
) -> Result<T, ErrorResponse> {
    let (mut deserializer, mut unknown) = (serde_json::Deserializer::from_slice(bytes), Vec::new());
    let value = serde_ignored::deserialize(&mut deserializer, |path| {
        if unknown.len() < UNKNOWN_FIELDS_MAX {
            unknown.push(path.to_string());
        }
    })
    .map_err(&to_response)?;
    deserializer.end().map_err(&to_response)?;
    if unknown.is_empty() {
        return Ok(value);
    }
    let message = format!("the body has unknown fields: {}", unknown.join(", "));
    Err(ErrorResponse::bad_request("invalid_json", message))
}

/// Checks every key and string. The recursion is limited because the parser limits the depth.
fn contains_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(contains_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || contains_nul(value)),
    }
}

/// Returns the error for a body that could not be read.
fn body_error(error: BytesRejection, body_bytes_max: usize) -> ErrorResponse {
    let text = error.body_text();
    match error.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => ErrorResponse::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {body_bytes_max} bytes"),
        ),
        _ => ErrorResponse::bad_request("body_unreadable", text),
    }
}
