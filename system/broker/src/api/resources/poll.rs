//! Polls: responds to an agent with its target state, or with 304 if the agent has it already, at once or after a wait.
//!
//! A poll without a change is served from memory and reads no table.

use std::pin::pin;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderValue, StatusCode};
use sindri_model::wire::{
    AGENT_STATUS_HEADER, AgentStatus, EPOCH_HEADER, HeldRevisions, PROPOSALS_HEADER, REQUESTS_HEADER,
    SubmittingRequests, TARGET_VERSION_HEADER,
};
use sindri_model::{AgentId, Sequence};
use tokio::time::{Instant, timeout_at};

use super::target_state_body::{is_held, leave_out, serialize_revisions};
use crate::api::http::authentication::{Credentials, check_freshness};
use crate::api::http::compression::to_weak_etag;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::large_list::{HoldingBody, LARGE_BYTES};
use crate::api::http::target_version::to_header;
use crate::broker::Broker;
use crate::memory::{CachedTargetState, matches_if_none_match};
use crate::metrics::Metrics;
use crate::permits::Permit;
use crate::store::{KeyAccess, KeyHolder, TargetState};

/// A poll of an agent for its whole target state.
pub(crate) struct Poll {
    pub agent: AgentId,
    /// ETags of the target states that the agent has.
    pub if_none_match: Option<HeaderValue>,
    /// Revisions whose bundles the agent has, as the header of the request.
    pub held_revisions: Option<HeaderValue>,
    /// True if the agent asks for the names of stacks.
    pub with_stack_names: bool,
    /// Status that the agent has last seen, if it sends one.
    pub status: Option<AgentStatus>,
    /// Number of the newest proposal that the agent has seen, if it sends one.
    pub proposals: Option<Sequence>,
    /// The wait for a change, if the agent asks for one.
    pub wait: Option<Wait>,
}

/// The wait of a poll.
pub(crate) struct Wait {
    pub deadline: Instant,
    /// Checked again after the wait, because the key may have been revoked meanwhile.
    pub credentials: Credentials,
}

impl Poll {
    fn if_none_match(&self) -> &[u8] {
        self.if_none_match.as_ref().map(HeaderValue::as_bytes).unwrap_or_default()
    }

    /// Returns the revisions whose bundles the agent has. A header that is malformed is ignored.
    fn held_revisions(&self) -> Option<HeldRevisions> {
        HeldRevisions::parse(self.held_revisions.as_ref()?.to_str().ok()?)
    }

    /// Returns true if the agent has this target state.
    fn has_target_state(&self, state: &CachedTargetState) -> bool {
        matches_if_none_match(&state.etag, self.if_none_match())
    }

    /// Returns true if there is a newer proposal than the agent has seen. An agent that sends no number knows no proposals, and
    /// one that has seen this proposal is not woken for it again.
    fn has_new_proposal(&self, state: &CachedTargetState) -> bool {
        self.proposals.zip(state.proposals).is_some_and(|(seen, newest)| newest > seen)
    }
}

/// Responds to a poll.
pub(crate) async fn respond_to_poll(broker: &Broker, mut poll: Poll) -> Result<Response, ErrorResponse> {
    loop {
        let change = poll.wait.as_ref().and_then(|_| broker.memory.target_states.change_notification(poll.agent));
        let Some((wait, change)) = poll.wait.as_ref().zip(change) else {
            let state = get_target_state(broker, &poll).await?;
            return respond_now(broker, &poll, state).await;
        };
        // Subscribed before the cache is read, so that no change in between is missed.
        let mut changed = pin!(change.notified());
        changed.as_mut().enable();
        let state = get_target_state(broker, &poll).await?;
        // A change of the status and a new proposal end the wait, although the target state is the same.
        let has_status_changed = *poll.status.get_or_insert(state.status) != state.status;
        if has_status_changed || poll.has_new_proposal(&state) || !poll.has_target_state(&state) {
            return respond_now(broker, &poll, state).await;
        }
        let waiting = WaitingPoll::new(&broker.metrics);
        if timeout_at(wait.deadline, changed).await.is_err() {
            check_freshness(broker)?;
            return Ok(not_modified_response(&state));
        }
        drop(waiting);
        match Box::pin(wait.credentials.authenticate(broker)).await {
            Ok(key) if key.access == KeyAccess::Full => {}
            Ok(_) => return Err(Denial::AgentInactive.into()),
            Err(error) => return Ok(error.into_response()),
        }
    }
}

async fn respond_now(broker: &Broker, poll: &Poll, state: CachedTargetState) -> Result<Response, ErrorResponse> {
    if poll.has_target_state(&state) {
        return Ok(not_modified_response(&state));
    }
    // A body that was dropped from the cache is read again; if it has changed, so has its ETag.
    let state = if state.body.is_some() { state } else { Box::pin(load_target_state(broker, poll.agent, &[])).await? };
    let whole = state.body.clone().unwrap_or_default();
    let permit =
        if whole.len() < LARGE_BYTES { None } else { Some(Box::pin(acquire_permit(broker, poll.agent)).await?) };
    let held = poll.held_revisions();
    let shorter = leave_out(&whole, &state.ranges, held.as_ref(), poll.with_stack_names);
    // The state of the published API, with every bundle, has the strong ETag.
    let is_weak = poll.with_stack_names || state.ranges.iter().any(|revision| is_held(revision, held.as_ref()));
    let rest = shorter.unwrap_or(whole);
    let body = match permit {
        None => Body::from(rest),
        Some(permit) => Body::new(HoldingBody::new(rest, permit)),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut response = add_headers(response, &state);
    if let Some(requests) = &state.requests {
        response.headers_mut().insert(REQUESTS_HEADER, requests.clone());
    }
    if is_weak && let Some(etag) = to_weak_etag(&state.etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    Ok(response)
}

/// Waits for a permit to send a large target state, which is copied for each response.
async fn acquire_permit(broker: &Broker, agent: AgentId) -> Result<Permit, ErrorResponse> {
    let permit = broker.poll_permits.acquire(KeyHolder::Agent(agent), 1).await;
    permit.ok_or_else(|| {
        ErrorResponse::too_many("too_many_polls", "too many target states are sent to the agent at the same time")
    })
}

/// Returns the agent's target state, from the cache if it is there. On a store of several brokers only a state that the agent
/// has comes from the cache: another broker may have sent a newer one, and the agent must not go back.
async fn get_target_state(broker: &Broker, poll: &Poll) -> Result<CachedTargetState, ErrorResponse> {
    let is_usable = |state: &CachedTargetState| poll.has_target_state(state) || !broker.store.is_shared();
    match broker.memory.target_states.get(poll.agent).filter(is_usable) {
        Some(state) => Ok(state),
        // Boxed, because most polls do not need it, and thousands wait.
        None => Box::pin(load_target_state(broker, poll.agent, poll.if_none_match())).await,
    }
}

/// Reads the agent's target state from the store and caches it.
async fn load_target_state(
    broker: &Broker,
    agent: AgentId,
    if_none_match: &[u8],
) -> Result<CachedTargetState, ErrorResponse> {
    let generation = broker.memory.target_states.generation(agent);
    let mut target_state = broker.store.deliver_target_state(agent).await?;
    if broker.detect_restore(agent, &target_state, if_none_match).await? {
        target_state = broker.store.deliver_target_state(agent).await?;
    }
    let (body, ranges) = serialize_revisions(target_state.revisions.iter().map(|target| &target.revision));
    let state = CachedTargetState {
        etag: broker.etag_key.create_etag(agent, &target_state),
        epoch: HeaderValue::from(target_state.epoch.0),
        status: target_state.status,
        proposals: target_state.proposals,
        version: to_header(target_state.target_version()),
        requests: write_requests(&target_state),
        body: Some(body),
        ranges: ranges.into(),
    };
    broker.memory.target_states.insert(agent, state.clone(), generation);
    Ok(state)
}

/// Returns the header with the requests that submitted the revisions that the agent has not applied.
fn write_requests(target_state: &TargetState) -> Option<HeaderValue> {
    let unapplied = target_state.revisions.iter().filter(|target| !target.is_applied);
    let requests = unapplied.filter_map(|target| Some((target.revision.sequence_id, target.request.clone()?)));
    HeaderValue::try_from(SubmittingRequests(requests.collect()).to_header()?).ok()
}

fn not_modified_response(state: &CachedTargetState) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    add_headers(response, state)
}

fn add_headers(mut response: Response, state: &CachedTargetState) -> Response {
    let headers = response.headers_mut();
    headers.insert(ETAG, state.etag.clone());
    headers.insert(EPOCH_HEADER, state.epoch.clone());
    headers.insert(TARGET_VERSION_HEADER, state.version.clone());
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(state.status.as_str()));
    if let Some(newest) = state.proposals {
        headers.insert(PROPOSALS_HEADER, HeaderValue::from(newest.0));
    }
    response
}

/// A poll that is counted as waiting until it is dropped.
struct WaitingPoll<'a>(&'a Metrics);

impl<'a> WaitingPoll<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.poll_wait_started();
        Self(metrics)
    }
}

impl Drop for WaitingPoll<'_> {
    fn drop(&mut self) {
        self.0.poll_wait_ended();
    }
}
