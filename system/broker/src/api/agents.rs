//! Agents: made by the administrator, found and kept alive by themselves.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use sindri_model::wire::{
    Agent, AgentGeneratorRegistration, AgentStatus, AuthResponse, CreateAgentRequest, CreateAgentResponse,
    HeartbeatReport, Stack, UpdateAgentRequest,
};
use sindri_model::{AgentId, Pak};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Asked, Body, Ids, Paged, check_name};
use super::stamp::By;
use crate::Broker;
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
    actor: Actor,
    By(stamp): By,
    Body(request): Body<CreateAgentRequest>,
) -> Result<(StatusCode, Json<CreateAgentResponse>), Refusal> {
    actor.admin()?;
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
    Ok((StatusCode::CREATED, Json(CreateAgentResponse { agent, initial_pak: pak.reveal() })))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Paged(page): Paged,
) -> Result<Json<Vec<Agent>>, Refusal> {
    actor.admin_or_generator()?;
    let agents = broker.store.agents(page).await?;
    Ok(Json(agents.into_iter().map(|agent| broker.memory.heartbeats.applied_to(agent)).collect()))
}

/// Both parts of an agent's name.
#[derive(Deserialize)]
pub(crate) struct WhichAgent {
    name: String,
    cluster_name: String,
}

pub(crate) async fn find(
    State(broker): State<Broker>,
    actor: Actor,
    Asked(which): Asked<WhichAgent>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_agent()?;
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
    Ok(Json(broker.memory.heartbeats.applied_to(broker.store.agent(agent).await?)))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(changes): Body<UpdateAgentRequest>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    changes.name.as_deref().map_or(Ok(()), |name| check_name("name", name))?;
    changes.cluster_name.as_deref().map_or(Ok(()), |name| check_name("cluster_name", name))?;
    Ok(Json(broker.store.update_agent(stamp, agent, changes).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
) -> Result<StatusCode, Refusal> {
    actor.admin()?;
    broker.store.delete_agent(stamp, agent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Noted in memory, and written later: a store that stalls must not make agents look dead.
pub(crate) async fn heartbeat(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Body(report): Body<HeartbeatReport>,
) -> Result<StatusCode, Refusal> {
    actor.this_agent(agent)?;
    broker.memory.heartbeats.received(agent, Heartbeat { at: broker.clock.now(), report });
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn registrations(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Paged(page): Paged,
) -> Result<Json<Vec<AgentGeneratorRegistration>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.registrations_of_agent(agent, page).await?))
}

pub(crate) async fn stacks(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Paged(page): Paged,
) -> Result<Json<Vec<Stack>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.stacks_of_agent(agent, page).await?))
}
