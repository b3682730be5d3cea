//! Polls that are answered from memory, before any routing: the same answers that the router would give, at a
//! fraction of its cost. A fleet does little else than poll.
//!
//! Whatever is not plainly such a poll goes to the router: another key, a wait, a changed answer.

use axum::response::Response;
use http::header::{AUTHORIZATION, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, Method};
use sindri_model::AgentId;
use tokio::time::Instant;

use super::actor::{ActorLabel, key_in};
use super::log;
use super::target_state::answered;
use crate::Broker;
use crate::request_id::REQUEST_ID;
use crate::store::KeyHolder;

const BEFORE_ID: &str = "/api/v1/agents/";
const AFTER_ID: &str = "/target-state";
const ROUTE: &str = "/api/v1/agents/{id}/target-state";

/// The answer to an agent's own poll, if it is remembered.
pub(crate) fn from_memory(broker: &Broker, head: &Parts) -> Option<Response> {
    let began = Instant::now();
    if head.method != Method::GET || head.uri.query().is_some() {
        return None;
    }
    let id = head.uri.path().strip_prefix(BEFORE_ID)?.strip_suffix(AFTER_ID)?;
    let agent: AgentId = id.parse().ok()?;
    let pak = key_in(head.headers.get(AUTHORIZATION)?)?;
    if broker.memory.keys.holder(&pak)? != KeyHolder::Agent(agent) {
        return None;
    }
    let answer = broker.memory.answers.of(agent)?;
    let known = head.headers.get(IF_NONE_MATCH).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut response = answered(&answer, known)?;
    response.headers_mut().insert(REQUEST_ID, broker.request_ids.of(&head.headers));
    response.extensions_mut().insert(ActorLabel(pak.short().to_owned()));
    broker.metrics.request(&head.method, Some(ROUTE), response.status(), began.elapsed());
    log::write(&head.method, ROUTE, &response);
    Some(response)
}
