//! Agents: created by the administrator; agents find their own record and send heartbeats.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::AgentId;
use sindri_model::wire::{
    Agent, AgentGeneratorRegistration, AgentStatus, AuthResponse, CreateAgentRequest, CreateAgentResponse,
    HeartbeatReport, LeaderAnnouncement, Stack, UpdateAgentRequest,
};
use tokio::time::timeout;

use super::keys::new_key;
use super::repeated_delete::succeed_without;
use super::stacks::description_bytes;
use super::validation::{check_agent_name, check_optional};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::{Created, HeartbeatAccepted, NoContent};
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{Heartbeat, KeyAccess, KeyHolder, RecordKind, StoreError, WriteContext};

/// Returns the holder of the key.
pub(crate) async fn read_identity(actor: Actor) -> Json<AuthResponse> {
    let is_read_only = actor.access == KeyAccess::ReadOnly;
    let (admin, agent, generator) = match actor.holder {
        KeyHolder::Admin(_) => (!is_read_only, None, None),
        KeyHolder::Agent(agent) => (false, Some(agent), None),
        KeyHolder::Generator(generator) => (false, None, Some(generator)),
    };
    Json(AuthResponse { admin, agent, generator, readonly: is_read_only })
}

pub(crate) async fn create(
    State(broker): State<Broker>,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<CreateAgentRequest>,
) -> Result<Created<CreateAgentResponse>, ErrorResponse> {
    check_agent_name("name", &request.name)?;
    check_agent_name("cluster_name", &request.cluster_name)?;
    let agent = Agent {
        id: AgentId::generate(&broker.entropy),
        created_at: context.time,
        updated_at: context.time,
        deleted_at: None,
        name: request.name,
        cluster_name: request.cluster_name,
        status: AgentStatus::Inactive,
        last_heartbeat: None,
        k8s_reachable: None,
        k8s_api_latency_ms: None,
        k8s_reported_at: None,
    };
    let generators = request.generator_ids.unwrap_or_default();
    let (pak, key) = new_key(&broker, request.key_expires_at)?;
    let created = broker.store.create_agent(context, agent.clone(), key, generators).await;
    created.map_err(|error| match error {
        StoreError::MissingReference { kind: RecordKind::Generator, .. } => {
            ErrorResponse::bad_request("invalid_generator_id", error.to_string())
        }
        other => other.into(),
    })?;
    Ok(Created(CreateAgentResponse { agent, initial_pak: pak.reveal() }))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
) -> Result<ListResponse<Vec<Agent>>, ErrorResponse> {
    let agents = broker.store.list_agents(params.page()).await?;
    let agents = agents.into_iter().map(|agent| broker.memory.heartbeats.apply_to(agent)).collect();
    Ok(params.respond(agents, |agent: &Agent| agent.id))
}

/// Name and cluster name, which together identify an agent.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AgentName {
    /// Name of the agent.
    #[schemars(required)]
    name: Option<String>,
    /// Name of the agent's cluster.
    #[schemars(required)]
    cluster_name: Option<String>,
}

pub(crate) async fn find(
    State(broker): State<Broker>,
    actor: Actor,
    QueryParams(AgentName { name, cluster_name }): QueryParams<AgentName>,
) -> Result<Json<Agent>, ErrorResponse> {
    let (Some(name), Some(cluster_name)) = (name, cluster_name) else {
        let message = "the query must have name and cluster_name";
        return Err(ErrorResponse::bad_request("name_and_cluster_required", message));
    };
    let agent = broker.store.find_agent(name, cluster_name).await?;
    actor.check_admin_or_agent(agent.id)?;
    Ok(Json(broker.memory.heartbeats.apply_to(agent)))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
) -> Result<Json<Agent>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    Ok(Json(broker.memory.heartbeats.apply_to(broker.store.get_agent(agent).await?)))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(changes): JsonBody<UpdateAgentRequest>,
) -> Result<Json<Agent>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    check_optional(changes.name.as_deref(), |name| check_agent_name("name", name))?;
    check_optional(changes.cluster_name.as_deref(), |name| check_agent_name("cluster_name", name))?;
    if !actor.is_admin() {
        let current = broker.store.get_agent(agent).await?;
        if has_changes(&current, &changes) {
            let message = "only an administrator changes the name, the cluster or the status of an agent";
            return Err(ErrorResponse::admin_required(message));
        }
        // Nothing is written back: an administrator may change the record at the same time.
        return Ok(Json(broker.memory.heartbeats.apply_to(current)));
    }
    Ok(Json(broker.memory.heartbeats.apply_to(broker.store.update_agent(context, agent, changes).await?)))
}

/// Returns true if a request would change an agent. Clients may send the record back as it is.
fn has_changes(agent: &Agent, changes: &UpdateAgentRequest) -> bool {
    changes.name.as_ref().is_some_and(|name| *name != agent.name)
        || changes.cluster_name.as_ref().is_some_and(|cluster_name| *cluster_name != agent.cluster_name)
        || changes.status.is_some_and(|status| status != agent.status)
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    succeed_without(RecordKind::Agent, broker.store.delete_agent(context, agent).await)?;
    Ok(NoContent)
}

/// Time limit for reading the agent's status from the store. The heartbeat is recorded already.
const STATUS_TIME_MAX: Duration = Duration::from_secs(1);

/// Records a heartbeat in memory; it is written to the store later, so that a stalled store does not make agents look
/// offline.
pub(crate) async fn heartbeat(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    JsonBody(report): JsonBody<HeartbeatReport>,
) -> Result<HeartbeatAccepted, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    broker.memory.heartbeats.insert(agent, Heartbeat { received_at: broker.clock.now(), report });
    Ok(HeartbeatAccepted { status: get_status(&broker, agent).await })
}

/// Records the leader among the processes of an agent, before it reads what was reported last.
pub(crate) async fn announce_leader(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    JsonBody(LeaderAnnouncement { process }): JsonBody<LeaderAnnouncement>,
) -> Result<NoContent, ErrorResponse> {
    actor.check_agent(agent)?;
    check_agent_name("process", &process)?;
    broker.store.set_leader(agent, process).await?;
    Ok(NoContent)
}

/// Returns the agent's status, usually from the cache; `None` while the store does not respond.
async fn get_status(broker: &Broker, agent: AgentId) -> Option<AgentStatus> {
    let cache = &broker.memory.target_states;
    if let Some(status) = cache.agent_status(agent) {
        return Some(status);
    }
    let generation = cache.generation(agent);
    let status = timeout(STATUS_TIME_MAX, broker.store.get_agent(agent)).await.ok()?.ok()?.status;
    cache.insert_status(agent, status, generation);
    Some(status)
}

pub(crate) async fn list_registrations(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
) -> Result<ListResponse<Vec<AgentGeneratorRegistration>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let registrations = broker.store.list_registrations_of_agent(agent, params.page()).await?;
    Ok(params.respond(registrations, |registration| registration.id))
}

pub(crate) async fn list_stacks(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<Stack>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let stacks = broker.store.list_stacks_of_agent(agent, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(stacks, |stack| stack.id, description_bytes)).await
}
