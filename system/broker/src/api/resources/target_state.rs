//! The target state of an agent: the parameters, headers and description of the operation that agents poll.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::wire::{
    AGENT_STATUS_HEADER, AgentStatus, DeploymentObject, EPOCH_HEADER, HELD_REVISIONS_HEADER, PROPOSALS_HEADER,
    REQUESTS_HEADER, STACK_NAMES_HEADER, TARGET_VERSION_HEADER,
};
use sindri_model::{AgentId, Sequence};
use tokio::time::Instant;

use super::bundle_text::stored_bytes_max;
use super::poll::{Poll, Wait, respond_to_poll};
use crate::api::http::authentication::{Actor, Credentials, client_address};
use crate::api::http::describe::{
    DescribeRequest, DescribeResponse, Operation, agent_status_schema, json_content, parameter,
};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListRequest};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::target_version::{describe_target_version, to_header};
use crate::broker::Broker;
use crate::store::{KeyHolder, TargetRevision};

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
    /// Pages of the revisions that this agent has not confirmed.
    Incremental,
}

/// Request headers of a poll: the target state, the bundles, the status and the proposals that the agent has, and its key.
pub(crate) struct AgentHeaders {
    if_none_match: Option<HeaderValue>,
    held_revisions: Option<HeaderValue>,
    with_stack_names: bool,
    status: Option<AgentStatus>,
    proposals: Option<Sequence>,
    authorization: Option<HeaderValue>,
    client: Option<IpAddr>,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentHeaders {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        Ok(Self::read(&parts.headers, client_address(&parts.extensions)))
    }
}

impl AgentHeaders {
    /// Reads the headers of a poll.
    pub(crate) fn read(headers: &HeaderMap, client: Option<IpAddr>) -> Self {
        let status = headers.get(AGENT_STATUS_HEADER).and_then(|value| AgentStatus::from_name(value.to_str().ok()?));
        let get = |name: &HeaderName| headers.get(name).cloned();
        let (if_none_match, authorization) = (get(&IF_NONE_MATCH), get(&AUTHORIZATION));
        let held_revisions = headers.get(HELD_REVISIONS_HEADER).cloned();
        let with_stack_names = headers.contains_key(STACK_NAMES_HEADER);
        let proposals = headers.get(PROPOSALS_HEADER).and_then(|value| value.to_str().ok()?.parse().ok().map(Sequence));
        Self { if_none_match, held_revisions, with_stack_names, status, proposals, authorization, client }
    }

    /// Returns the poll. One that waits gets copies of the headers, because a header keeps the whole buffer of its
    /// connection alive.
    pub(crate) fn into_poll(self, agent: AgentId, wait: Duration) -> Poll {
        let credentials = if wait.is_zero() { None } else { self.credentials() };
        let Self { if_none_match, held_revisions, with_stack_names, status, proposals, .. } = self;
        let Some(credentials) = credentials else {
            return Poll { agent, if_none_match, held_revisions, with_stack_names, status, proposals, wait: None };
        };
        let copy = |value: Option<HeaderValue>| value.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok());
        let wait = Some(Wait { deadline: Instant::now() + wait, credentials });
        let (if_none_match, held_revisions) = (copy(if_none_match), copy(held_revisions));
        Poll { agent, if_none_match, held_revisions, with_stack_names, status, proposals, wait }
    }

    fn credentials(&self) -> Option<Credentials> {
        Credentials::parse(self.authorization.as_ref()?, self.client)
    }
}

impl DescribeRequest for AgentHeaders {
    fn describe(operation: &mut Operation, _schemas: &mut SchemaGenerator) {
        let description = "ETag of the last response.";
        operation.parameters.push(parameter("header", "If-None-Match", description, json!({"type": "string"})));
        let description =
            "Status that the agent has last seen; if its status is another one, the broker responds without waiting.";
        operation.parameters.push(parameter("header", AGENT_STATUS_HEADER, description, agent_status_schema()));
        let description = "Sequences of revisions whose bundles the client has: the first one, and then the difference to each \
                           next one. The response has an empty yaml_content for these, with their checksum, and a weak ETag.";
        operation.parameters.push(parameter("header", HELD_REVISIONS_HEADER, description, json!({"type": "string"})));
        let description =
            "Any value: each item has the name of its stack in the additional field stack_name, and the ETag is weak.";
        operation.parameters.push(parameter("header", STACK_NAMES_HEADER, description, json!({"type": "string"})));
        let description = "Number of the newest proposal that the agent has seen, or 0; if there is a newer one, the broker \
                           responds without waiting.";
        operation.parameters.push(parameter("header", PROPOSALS_HEADER, description, json!({"type": "integer"})));
    }
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
        let etag = json!({"description": "Identifies this target state.", "schema": {"type": "string"}});
        let epoch =
            json!({"description": "1 + number of restores of the broker's database.", "schema": {"type": "integer"}});
        let status = json!({"description": "Status of the agent.", "schema": agent_status_schema()});
        let version = describe_target_version();
        let description = "Number of the newest proposal that the agent has not answered; absent if there is none.";
        let proposals = json!({"description": description, "schema": {"type": "integer"}});
        let headers = json!({
            "ETag": etag, EPOCH_HEADER: epoch, AGENT_STATUS_HEADER: status, TARGET_VERSION_HEADER: version,
            PROPOSALS_HEADER: proposals,
        });
        let mut response = json_content::<Vec<DeploymentObject>>("The target state of the agent.", schemas);
        response["headers"] = headers.clone();
        let description = "JSON object: by sequence, the request ids and trace contexts with which the newest revisions were \
                           submitted that the agent has not applied, at most 16.";
        let link = "With mode=incremental, the link to the next page (rel=\"next\"), relative to the request.";
        response["headers"]["Link"] = json!({"description": link, "schema": {"type": "string"}});
        response["headers"][REQUESTS_HEADER] = json!({"description": description, "schema": {"type": "string"}});
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
    PathParams(agent): PathParams<AgentId>,
    QueryParams(params): QueryParams<PollParams>,
    page: ListParams,
    list: LargeListRequest,
    headers: AgentHeaders,
) -> Result<PollResponse, ErrorResponse> {
    let actor = list.actor;
    actor.check_admin_or_agent(agent)?;
    if actor.is_admin() || params.mode == Mode::Incremental {
        let permit = list.acquire(&broker).await?;
        return uncached_response(&broker, permit, actor, agent, (params.mode, page)).await.map(PollResponse);
    }
    let poll = headers.into_poll(agent, Duration::from_secs(params.wait).min(broker.bounds.wait_max));
    respond_to_poll(&broker, poll).await.map(PollResponse)
}

/// Returns a response that is not cached: to the administrator, or an incremental one.
async fn uncached_response(
    broker: &Broker,
    permit: LargeList,
    actor: Actor,
    agent: AgentId,
    (mode, page): (Mode, ListParams),
) -> Result<Response, ErrorResponse> {
    let mut target_state = match (actor.holder, mode) {
        (KeyHolder::Agent(_), Mode::Full) => broker.store.deliver_target_state(agent).await?,
        (KeyHolder::Agent(_), Mode::Incremental) => broker.store.deliver_unapplied(agent, page.page()).await?,
        (KeyHolder::Admin(_) | KeyHolder::Generator(_), Mode::Full) => broker.store.get_target_state(agent).await?,
        (KeyHolder::Admin(_) | KeyHolder::Generator(_), Mode::Incremental) => {
            broker.store.get_unapplied(agent, page.page()).await?
        }
    };
    let etag = (mode == Mode::Full).then(|| broker.etag_key.create_etag(agent, &target_state));
    // Only agents ask for the names, and for the full state.
    let nameless = |target: TargetRevision| DeploymentObject { stack_name: None, ..target.revision };
    let revisions = std::mem::take(&mut target_state.revisions).into_iter().map(nameless).collect();
    let mut list: ListResponse<Vec<DeploymentObject>> =
        page.respond_sized(revisions, |revision| revision.id, stored_bytes_max);
    if mode == Mode::Full {
        // It is never cut.
        list.next_link = None;
    }
    let mut response = permit.serialize(broker, list).await?.into_response();
    let headers = response.headers_mut();
    headers.insert(EPOCH_HEADER, HeaderValue::from(target_state.epoch.0));
    headers.insert(TARGET_VERSION_HEADER, to_header(target_state.target_version()));
    headers.insert(AGENT_STATUS_HEADER, HeaderValue::from_static(target_state.status.as_str()));
    headers.extend(etag.map(|etag| (ETAG, etag)));
    Ok(response)
}
