//! What comes with every change: who makes it, when, from where, and whether it is a request sent again.

use axum::extract::FromRequestParts;
use http::header::USER_AGENT;
use http::request::Parts;
use schemars::SchemaGenerator;
use serde_json::json;

use super::authentication::Actor;
use super::connection_info::PeerAddress;
use super::describe::{Operation, Part, parameter};
use super::error_response::Refusal;
use crate::broker::Broker;
use crate::store::WriteContext;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
const USER_AGENT_CHARS_MAX: usize = 200;

/// The stamp of a request.
pub(crate) struct By(pub WriteContext);

impl FromRequestParts<Broker> for By {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, Refusal> {
        let Actor(holder) = Actor::from_request_parts(parts, broker).await?;
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        Ok(Self(WriteContext {
            actor: Some(holder),
            peer: parts.extensions.get::<PeerAddress>().and_then(|peer| peer.0),
            user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
            idempotency_key: idempotency_key(parts)?,
            ..broker.stamp()
        }))
    }
}

impl Part for By {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX});
        let description = "The same key of the same sender means the same request, sent again: nothing is made twice.";
        operation.parameters.push(parameter("header", "Idempotency-Key", description, schema));
        operation.refusals.insert(400);
    }
}

fn idempotency_key(parts: &Parts) -> Result<Option<String>, Refusal> {
    let Some(value) = parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > IDEMPOTENCY_KEY_CHARS_MAX {
        let message = format!("an Idempotency-Key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible characters");
        return Err(Refusal::bad("invalid_idempotency_key", message));
    }
    Ok(Some(text.to_owned()))
}
