//! Agents: made by the administrator, found and kept alive by themselves.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{
    Agent, AgentGeneratorRegistration, AgentStatus, AuthResponse, CreateAgentRequest, CreateAgentResponse,
    HeartbeatReport, Stack, UpdateAgentRequest,
};
use sindri_model::{AgentId, Pak};
use tokio::time::timeout;

use super::validation::{check_name, check_new_name};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent, Noted};
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::{Heartbeat, KeyHolder, KeyRecord};

pub(crate) async fn whoami(Actor(holder): Actor) -> Json<AuthResponse> {
    let (admin, agent, generator) = match holder {
        KeyHolder::Admin => (true, None, None),
        KeyHolder::Agent(agent) => (false, Some(agent), None),
        KeyHolder::Generator(generator) => (false, None, Some(generator)),
    };
    Json(AuthResponse { admin, agent, generator, readonly: false })
}

pub(crate) async fn create(
    State(broker): State<Broker>,
    By(stamp): By,
    Body(request): Body<CreateAgentRequest>,
) -> Result<Created<CreateAgentResponse>, Refusal> {
    check_name("name", &request.name)?;
    check_name("cluster_name", &request.cluster_name)?;
    let agent = Agent {
        id: AgentId::mint(&broker.entropy),
        created_at: stamp.at,
        updated_at: stamp.at,
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
    let pak = Pak::mint(&broker.entropy);
    broker.store.create_agent(stamp, agent.clone(), KeyRecord::from(&pak), generators).await?;
    Ok(Created(CreateAgentResponse { agent, initial_pak: pak.reveal() }))
}

pub(crate) async fn list(State(broker): State<Broker>, paged: Paged) -> Result<Listed<Vec<Agent>>, Refusal> {
    let agents = broker.store.list_agents(paged.page()).await?;
    let agents = agents.into_iter().map(|agent| broker.memory.heartbeats.applied_to(agent)).collect();
    Ok(paged.listed(agents, |agent: &Agent| agent.id))
}

/// Both parts of an agent's name.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WhichAgent {
    name: String,
    cluster_name: String,
}

pub(crate) async fn find(
    State(broker): State<Broker>,
    actor: Actor,
    Asked(which): Asked<WhichAgent>,
) -> Result<Json<Agent>, Refusal> {
    let agent = broker.store.find_agent(which.name, which.cluster_name).await?;
    actor.admin_or_this_agent(agent.id)?;
    Ok(Json(broker.memory.heartbeats.applied_to(agent)))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.memory.heartbeats.applied_to(broker.store.get_agent(agent).await?)))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(changes): Body<UpdateAgentRequest>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    check_new_name("name", changes.name.as_deref())?;
    check_new_name("cluster_name", changes.cluster_name.as_deref())?;
    Ok(Json(broker.memory.heartbeats.applied_to(broker.store.update_agent(stamp, agent, changes).await?)))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    broker.store.delete_agent(stamp, agent).await?;
    Ok(NoContent)
}

/// How long an agent's own status may take to be found: its heartbeat is noted already.
const STATUS_TIME_MAX: Duration = Duration::from_secs(1);

/// Noted in memory, and written later: a store that stalls must not make agents look dead.
pub(crate) async fn heartbeat(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Body(report): Body<HeartbeatReport>,
) -> Result<Noted, Refusal> {
    actor.this_agent(agent)?;
    broker.memory.heartbeats.received(agent, Heartbeat { at: broker.clock.now(), report });
    Ok(Noted { status: status(&broker, agent).await })
}

/// From memory, as a rule. While the store does not answer nothing is said.
async fn status(broker: &Broker, agent: AgentId) -> Option<AgentStatus> {
    let answers = &broker.memory.answers;
    if let Some(status) = answers.status_of(agent) {
        return Some(status);
    }
    let asked = answers.asked(agent);
    let status = timeout(STATUS_TIME_MAX, broker.store.get_agent(agent)).await.ok()?.ok()?.status;
    answers.remember_status(agent, status, asked);
    Some(status)
}

pub(crate) async fn registrations(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<AgentGeneratorRegistration>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let registrations = broker.store.list_registrations_of_agent(agent, paged.page()).await?;
    Ok(paged.listed(registrations, |registration| registration.id))
}

pub(crate) async fn stacks(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<Stack>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let stacks = broker.store.list_stacks_of_agent(agent, paged.page()).await?;
    Ok(paged.listed(stacks, |stack| stack.id))
}
