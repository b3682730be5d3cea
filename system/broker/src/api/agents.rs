//! Agents: made by the administrator, found and kept alive by themselves.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use sindri_model::wire::{
    Agent, AgentGeneratorRegistration, AgentStatus, AuthResponse, CreateAgentRequest, CreateAgentResponse,
    HeartbeatReport, Stack, UpdateAgentRequest,
};
use sindri_model::{AgentId, LinkId, Pak};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Asked, Body, Ids, check_name};
use crate::Broker;
use crate::store::{KeyHolder, KeyRecord};

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
    Body(request): Body<CreateAgentRequest>,
) -> Result<(StatusCode, Json<CreateAgentResponse>), Refusal> {
    actor.admin()?;
    check_name("name", &request.name)?;
    check_name("cluster_name", &request.cluster_name)?;
    let now = broker.clock.now();
    let agent = Agent {
        id: AgentId::mint(&broker.entropy),
        created_at: now,
        updated_at: now,
        deleted_at: None,
        name: request.name,
        cluster_name: request.cluster_name,
        status: AgentStatus::Inactive,
        last_heartbeat: None,
        k8s_reachable: None,
        k8s_api_latency_ms: None,
        k8s_reported_at: None,
    };
    let registrations = request.generator_ids.unwrap_or_default().into_iter().map(|generator_id| {
        let id = LinkId::mint(&broker.entropy);
        AgentGeneratorRegistration { id, agent_id: agent.id, generator_id, registered_at: now }
    });
    let registrations = registrations.collect();
    let pak = Pak::mint(&broker.entropy);
    broker.store.create_agent(agent.clone(), KeyRecord::from(&pak), registrations).await?;
    Ok((StatusCode::CREATED, Json(CreateAgentResponse { agent, initial_pak: pak.reveal() })))
}

pub(crate) async fn list(State(broker): State<Broker>, actor: Actor) -> Result<Json<Vec<Agent>>, Refusal> {
    actor.admin_or_generator()?;
    Ok(Json(broker.store.agents().await?))
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
    Ok(Json(agent))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.agent(agent).await?))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Body(changes): Body<UpdateAgentRequest>,
) -> Result<Json<Agent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    changes.name.as_deref().map_or(Ok(()), |name| check_name("name", name))?;
    changes.cluster_name.as_deref().map_or(Ok(()), |name| check_name("cluster_name", name))?;
    Ok(Json(broker.store.update_agent(agent, changes, broker.clock.now()).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<StatusCode, Refusal> {
    actor.admin()?;
    let deleted = broker.store.delete_agent(agent, broker.clock.now()).await;
    broker.etags.forget();
    deleted?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn heartbeat(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Body(report): Body<HeartbeatReport>,
) -> Result<StatusCode, Refusal> {
    actor.this_agent(agent)?;
    broker.store.record_heartbeat(agent, report, broker.clock.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn registrations(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<AgentGeneratorRegistration>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.registrations_of_agent(agent).await?))
}

pub(crate) async fn stacks(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<Stack>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.stacks_of_agent(agent).await?))
}
