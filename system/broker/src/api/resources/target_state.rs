//! The target state that agents poll. A poll that finds nothing new asks the store nothing.

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
use crate::api::http::describe::agent_status_schema;
use crate::api::http::describe::{self, Operation, Part, json_content, parameter};
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Ids};
use crate::broker::Broker;
use crate::memory::{Answer, is_named};
use crate::store::{KeyHolder, TargetState};

/// What a deployment object is beside its bundle.
const ENVELOPE_BYTES: usize = 512;

/// How to answer.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct How {
    /// How much to answer.
    #[serde(default)]
    mode: Mode,
    /// Hold the answer back until there is a new one, for so many seconds.
    #[serde(default)]
    wait: u64,
}

/// How much to answer.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    /// Everything that is wanted.
    #[default]
    Full,
    /// Without what this agent has confirmed as done.
    Incremental,
}

/// What the agent already has, as it says.
pub(crate) struct Known {
    etag: Vec<u8>,
    status: Option<AgentStatus>,
}

impl<S: Send + Sync> FromRequestParts<S> for Known {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let etag = parts.headers.get(IF_NONE_MATCH).map(|value| value.as_bytes().to_vec());
        Ok(Self { etag: etag.unwrap_or_default(), status: believed(&parts.headers) })
    }
}

impl Part for Known {
    fn tell(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let description = "The ETag of the answer that the agent has.";
        operation.parameters.push(parameter("header", "If-None-Match", description, json!({"type": "string"})));
        let description = "The status that the agent believes to have: no answer is held back while it has another.";
        operation.parameters.push(parameter("header", AGENT_STATUS_HEADER, description, agent_status_schema()));
    }
}

/// The status that an agent believes to have.
pub(crate) fn believed(headers: &HeaderMap) -> Option<AgentStatus> {
    AgentStatus::named(headers.get(AGENT_STATUS_HEADER)?.to_str().ok()?)
}

/// The answer to a poll.
pub(crate) struct Polled(Response);

impl IntoResponse for Polled {
    fn into_response(self) -> Response {
        self.0
    }
}

impl describe::Answer for Polled {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        let tag = json!({"description": "Names this answer.", "schema": {"type": "string"}});
        let epoch = json!({"description": "The life of the broker's database.", "schema": {"type": "integer"}});
        let status = json!({"description": "The agent's own status.", "schema": agent_status_schema()});
        let headers = json!({"ETag": tag, EPOCH_HEADER: epoch, AGENT_STATUS_HEADER: status});
        let mut answer = json_content::<Vec<DeploymentObject>>("Everything that is wanted of the agent.", schemas);
        answer["headers"] = headers.clone();
        operation.answers.insert(200, answer);
        operation.answers.insert(304, json!({"description": "The agent has the newest answer.", "headers": headers}));
    }
}

/// What the agent receives with it is durable before the answer leaves; when the administrator looks, the agent
/// receives nothing.
pub(crate) async fn target_state(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Asked(how): Asked<How>,
    known: Known,
) -> Result<Polled, Refusal> {
    actor.admin_or_this_agent(agent)?;
    if actor.0 == KeyHolder::Admin || how.mode == Mode::Incremental {
        return uncached(&broker, actor, agent, how.mode).await.map(Polled);
    }
    let until = Instant::now() + Duration::from_secs(how.wait).min(broker.bounds.wait_max);
    let Known { etag: known, status: mut before } = known;
    loop {
        // Before the answer is looked at: a change after that is heard.
        let change = (how.wait > 0).then(|| broker.memory.answers.change_of(agent)).flatten();
        let mut changed = change.as_ref().map(|change| Box::pin(change.notified()));
        if let Some(changed) = &mut changed {
            changed.as_mut().enable();
        }
        let answer = current(&broker, agent, &known).await?;
        if !is_named(&answer.etag, &known) {
            return full(&broker, agent, answer).await.map(Polled);
        }
        // Another status ends a wait, although what is wanted is the same.
        if *before.get_or_insert(answer.status) != answer.status {
            return Ok(Polled(unchanged(&answer)));
        }
        let Some(changed) = changed else { return Ok(Polled(unchanged(&answer))) };
        if timeout_at(until, changed).await.is_err() {
            return Ok(Polled(unchanged(&answer)));
        }
    }
}

/// The answer, from memory if it is there.
async fn current(broker: &Broker, agent: AgentId, known: &[u8]) -> Result<Answer, Refusal> {
    match broker.memory.answers.of(agent) {
        Some(answer) => Ok(answer),
        None => ask(broker, agent, known).await,
    }
}

async fn ask(broker: &Broker, agent: AgentId, known: &[u8]) -> Result<Answer, Refusal> {
    let asked = broker.memory.answers.asked(agent);
    let mut desired = broker.store.deliver_target_state(agent).await?;
    if broker.is_behind(agent, &desired, known).await? {
        desired = broker.store.deliver_target_state(agent).await?;
    }
    let answer = Answer {
        etag: broker.etag_key.etag(agent, &desired),
        epoch: HeaderValue::from(desired.epoch.0),
        status: desired.status,
        body: Some(json(&desired, Mode::Full)),
    };
    broker.memory.answers.remember(agent, answer.clone(), asked);
    Ok(answer)
}

fn json(desired: &TargetState, mode: Mode) -> Bytes {
    let wanted = desired.revisions.iter().filter(|desired| mode == Mode::Full || !desired.is_applied);
    let objects: Vec<_> = wanted.map(|desired| &desired.revision).collect();
    // Ends of lines become two characters. Bundles are long, and one that grows while it is written is copied again and again.
    let room = objects.iter().map(|object| ENVELOPE_BYTES + object.yaml_content.len() * 9 / 8).sum();
    let mut text = Vec::with_capacity(room);
    serde_json::to_writer(&mut text, &objects).expect("deployment objects have text keys and no failing parts");
    text.into()
}

pub(crate) fn unchanged(answer: &Answer) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    identify(response, answer)
}

async fn full(broker: &Broker, agent: AgentId, answer: Answer) -> Result<Response, Refusal> {
    // A body that was too much to keep is read again; if it changed meanwhile, so did its identity.
    let answer = if answer.body.is_some() { answer } else { ask(broker, agent, &[]).await? };
    Ok(whole(&answer, answer.body.clone().unwrap_or_default()))
}

/// The answer to an agent that has this one, if what is remembered is enough for it.
pub(crate) fn answered(answer: &Answer, known: &[u8]) -> Option<Response> {
    if is_named(&answer.etag, known) {
        return Some(unchanged(answer));
    }
    answer.body.clone().map(|body| whole(answer, body))
}

fn whole(answer: &Answer, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    identify(response, answer)
}

fn identify(mut response: Response, answer: &Answer) -> Response {
    let headers = response.headers_mut();
    headers.insert(ETAG, answer.etag.clone());
    headers.insert(EPOCH_HEADER, answer.epoch.clone());
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(answer.status.as_str()));
    response
}

async fn uncached(broker: &Broker, actor: Actor, agent: AgentId, mode: Mode) -> Result<Response, Refusal> {
    let desired = match actor.0 {
        KeyHolder::Agent(_) => broker.store.deliver_target_state(agent).await?,
        KeyHolder::Admin | KeyHolder::Generator(_) => broker.store.get_target_state(agent).await?,
    };
    let mut response = Response::new(Body::from(json(&desired, mode)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(EPOCH_HEADER, HeaderValue::from(desired.epoch.0));
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(desired.status.as_str()));
    if mode == Mode::Full {
        headers.insert(ETAG, broker.etag_key.etag(agent, &desired));
    }
    Ok(response)
}
