//! Extractors of the context of a write: who makes it, when, from where, and, if it creates a record, with which idempotency key.
//!
//! An operation that creates a record with an id remembers the key. Of the others most have the same effect when they are repeated, and ignore
//! it: clients send it with every request. A few would be carried out twice, and refuse it: to ignore it would promise that they are not.

use axum::extract::FromRequestParts;
use http::header::USER_AGENT;
use http::request::Parts;
use schemars::SchemaGenerator;
use serde_json::json;
use sindri_model::wire::PROCESS_HEADER;

use super::authentication::Actor;
use super::connection_info::PeerAddress;
use super::describe::{DescribeRequest, Operation, parameter};
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::{KeyHolder, WriteContext};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
const USER_AGENT_CHARS_MAX: usize = 200;

impl FromRequestParts<Broker> for WriteContext {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, ErrorResponse> {
        let Actor { holder, .. } = Actor::from_request_parts(parts, broker).await?;
        Ok(read_context(parts, broker, holder, None))
    }
}

/// Context of a write that a repetition carries out once more, and that remembers no idempotency keys.
pub(crate) struct UnrepeatableContext(pub WriteContext);

impl FromRequestParts<Broker> for UnrepeatableContext {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, ErrorResponse> {
        let context = WriteContext::from_request_parts(parts, broker).await?;
        if parts.headers.contains_key(IDEMPOTENCY_KEY) {
            let message = "this operation remembers no Idempotency-Key: a repeated request would be carried out again";
            return Err(ErrorResponse::bad_request("idempotency_key_unsupported", message));
        }
        Ok(Self(context))
    }
}

/// Context of a write that creates a record. A retry with the same idempotency key creates no second one.
pub(crate) struct CreateContext(pub WriteContext);

impl FromRequestParts<Broker> for CreateContext {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, ErrorResponse> {
        let Actor { holder, .. } = Actor::from_request_parts(parts, broker).await?;
        let idempotency_key = read_idempotency_key(parts)?;
        Ok(Self(read_context(parts, broker, holder, idempotency_key)))
    }
}

fn read_context(parts: &Parts, broker: &Broker, holder: KeyHolder, idempotency_key: Option<String>) -> WriteContext {
    let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    WriteContext {
        actor: Some(holder),
        peer: parts.extensions.get::<PeerAddress>().and_then(|peer| peer.0),
        user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
        request: sindri_traces::current_origin(),
        idempotency_key,
        process: parts.headers.get(PROCESS_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned),
        ..broker.write_context()
    }
}

impl DescribeRequest for WriteContext {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl DescribeRequest for UnrepeatableContext {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        operation.errors.insert(400);
    }
}

impl DescribeRequest for CreateContext {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX});
        let description =
            "A request with an Idempotency-Key that the same sender has used before is a retry and changes nothing.";
        operation.parameters.push(parameter("header", "Idempotency-Key", description, schema));
        operation.errors.insert(400);
    }
}

fn read_idempotency_key(parts: &Parts) -> Result<Option<String>, ErrorResponse> {
    let Some(value) = parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > IDEMPOTENCY_KEY_CHARS_MAX {
        let message = format!("an Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible characters");
        return Err(ErrorResponse::bad_request("invalid_idempotency_key", message));
    }
    Ok(Some(text.to_owned()))
}
