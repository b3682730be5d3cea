//! The target state of an agent, which it polls. A poll without a change reads no table.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::AgentId;
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus, DeploymentObject, EPOCH_HEADER};
use tokio::time::{Instant, timeout_at};

use crate::api::http::authentication::Actor;
use crate::api::http::describe::{
    DescribeRequest, DescribeResponse, Operation, agent_status_schema, json_content, parameter,
};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{PathParams, QueryParams};
use crate::broker::Broker;
use crate::memory::{CachedTargetState, matches_if_none_match};
use crate::store::{KeyHolder, TargetState};

/// Estimated size of a deployment object without its bundle.
const ENVELOPE_BYTES: usize = 512;

/// Query parameters of a poll.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PollParams {
    /// `full` or `incremental`.
    #[serde(default)]
    mode: Mode,
    /// Number of seconds to wait for a change before responding with 304.
    #[serde(default)]
    wait: u64,
}

/// Part of the target state to return.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    /// The whole target state.
    #[default]
    Full,
    /// Without the revisions that this agent has confirmed.
    Incremental,
}

/// The target state and status that the agent already has, by its request headers.
pub(crate) struct AgentHeaders {
    if_none_match: Vec<u8>,
    status: Option<AgentStatus>,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentHeaders {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        let etag = parts.headers.get(IF_NONE_MATCH).map(|value| value.as_bytes().to_vec());
        Ok(Self { if_none_match: etag.unwrap_or_default(), status: reported_status(&parts.headers) })
    }
}

impl DescribeRequest for AgentHeaders {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let description = "ETag of the last response.";
        operation.parameters.push(parameter("header", "If-None-Match", description, json!({"type": "string"})));
        let description =
            "Status that the agent assumes to have; if its status is another one, the broker responds without waiting.";
        operation.parameters.push(parameter("header", AGENT_STATUS_HEADER, description, agent_status_schema()));
    }
}

/// Returns the status that an agent assumes to have.
pub(crate) fn reported_status(headers: &HeaderMap) -> Option<AgentStatus> {
    AgentStatus::named(headers.get(AGENT_STATUS_HEADER)?.to_str().ok()?)
}

/// The response to a poll.
pub(crate) struct PollResponse(Response);

impl IntoResponse for PollResponse {
    fn into_response(self) -> Response {
        self.0
    }
}

impl DescribeResponse for PollResponse {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let tag = json!({"description": "Identifies this target state.", "schema": {"type": "string"}});
        let epoch =
            json!({"description": "1 + number of restores of the broker's database.", "schema": {"type": "integer"}});
        let status = json!({"description": "Status of the agent.", "schema": agent_status_schema()});
        let headers = json!({"ETag": tag, EPOCH_HEADER: epoch, AGENT_STATUS_HEADER: status});
        let mut response = json_content::<Vec<DeploymentObject>>("The target state of the agent.", schemas);
        response["headers"] = headers.clone();
        operation.responses.insert(200, response);
        operation
            .responses
            .insert(304, json!({"description": "The target state has not changed.", "headers": headers}));
    }
}

/// Returns the target state. If the agent requests it, the store records before the response that the agent has received
/// its revisions; a request of the administrator records nothing.
pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    QueryParams(params): QueryParams<PollParams>,
    headers: AgentHeaders,
) -> Result<PollResponse, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    if actor.0 == KeyHolder::Admin || params.mode == Mode::Incremental {
        return uncached_response(&broker, actor, agent, params.mode).await.map(PollResponse);
    }
    let until = Instant::now() + Duration::from_secs(params.wait).min(broker.bounds.wait_max);
    let AgentHeaders { if_none_match, status: mut status_before } = headers;
    loop {
        // Subscribed before the cache is read, so that no change in between is missed.
        let change = (params.wait > 0).then(|| broker.memory.target_states.change_notification(agent)).flatten();
        let mut changed = change.as_ref().map(|change| Box::pin(change.notified()));
        if let Some(changed) = &mut changed {
            changed.as_mut().enable();
        }
        let answer = current(&broker, agent, &if_none_match).await?;
        if !matches_if_none_match(&answer.etag, &if_none_match) {
            return full_response(&broker, agent, answer).await.map(PollResponse);
        }
        // A change of the status ends the wait, although the target state is the same.
        if *status_before.get_or_insert(answer.status) != answer.status {
            return Ok(PollResponse(not_modified(&answer)));
        }
        let Some(changed) = changed else { return Ok(PollResponse(not_modified(&answer))) };
        if timeout_at(until, changed).await.is_err() {
            return Ok(PollResponse(not_modified(&answer)));
        }
    }
}

/// Returns the agent's target state, from the cache if it is there.
async fn current(broker: &Broker, agent: AgentId, if_none_match: &[u8]) -> Result<CachedTargetState, ErrorResponse> {
    match broker.memory.target_states.get(agent) {
        Some(answer) => Ok(answer),
        None => load(broker, agent, if_none_match).await,
    }
}

/// Reads the agent's target state from the store and caches it.
async fn load(broker: &Broker, agent: AgentId, if_none_match: &[u8]) -> Result<CachedTargetState, ErrorResponse> {
    let generation = broker.memory.target_states.generation(agent);
    let mut target_state = broker.store.deliver_target_state(agent).await?;
    if broker.detect_restore(agent, &target_state, if_none_match).await? {
        target_state = broker.store.deliver_target_state(agent).await?;
    }
    let state = CachedTargetState {
        etag: broker.etag_key.etag(agent, &target_state),
        epoch: HeaderValue::from(target_state.epoch.0),
        status: target_state.status,
        body: Some(to_json(&target_state, Mode::Full)),
    };
    broker.memory.target_states.insert(agent, state.clone(), generation);
    Ok(state)
}

fn to_json(state: &TargetState, mode: Mode) -> Bytes {
    let targets = state.revisions.iter().filter(|target| mode == Mode::Full || !target.is_applied);
    let objects: Vec<_> = targets.map(|target| &target.revision).collect();
    // Reserved at once, because a growing buffer is copied repeatedly. Line ends become two characters in JSON.
    let capacity = objects.iter().map(|object| ENVELOPE_BYTES + object.yaml_content.len() * 9 / 8).sum();
    let mut text = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut text, &objects).expect("deployment objects have text keys and no failing parts");
    text.into()
}

pub(crate) fn not_modified(state: &CachedTargetState) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    add_headers(response, state)
}

async fn full_response(broker: &Broker, agent: AgentId, state: CachedTargetState) -> Result<Response, ErrorResponse> {
    // A body that was dropped from the cache is read again; if it has changed, so has its ETag.
    let state = if state.body.is_some() { state } else { load(broker, agent, &[]).await? };
    Ok(ok(&state, state.body.clone().unwrap_or_default()))
}

/// Returns the response to a poll if the cache has all of it.
pub(crate) fn cached_response(state: &CachedTargetState, if_none_match: &[u8]) -> Option<Response> {
    if matches_if_none_match(&state.etag, if_none_match) {
        return Some(not_modified(state));
    }
    state.body.clone().map(|body| ok(state, body))
}

fn ok(state: &CachedTargetState, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    add_headers(response, state)
}

fn add_headers(mut response: Response, state: &CachedTargetState) -> Response {
    let headers = response.headers_mut();
    headers.insert(ETAG, state.etag.clone());
    headers.insert(EPOCH_HEADER, state.epoch.clone());
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(state.status.as_str()));
    response
}

/// Returns a response that is not cached: to the administrator, or an incremental one.
async fn uncached_response(
    broker: &Broker,
    actor: Actor,
    agent: AgentId,
    mode: Mode,
) -> Result<Response, ErrorResponse> {
    let target_state = match actor.0 {
        KeyHolder::Agent(_) => broker.store.deliver_target_state(agent).await?,
        KeyHolder::Admin | KeyHolder::Generator(_) => broker.store.get_target_state(agent).await?,
    };
    let mut response = Response::new(Body::from(to_json(&target_state, mode)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(EPOCH_HEADER, HeaderValue::from(target_state.epoch.0));
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(target_state.status.as_str()));
    if mode == Mode::Full {
        headers.insert(ETAG, broker.etag_key.etag(agent, &target_state));
    }
    Ok(response)
}
