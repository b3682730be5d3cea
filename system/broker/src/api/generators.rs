//! Generators, and the agents that are registered with them.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::wire::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
};
use sindri_model::{AgentId, GeneratorId, Pak};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids, Paged, check_name};
use super::stamp::By;
use crate::Broker;
use crate::store::{KeyHolder, KeyRecord};

pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    By(stamp): By,
    Body(request): Body<NewGenerator>,
) -> Result<(StatusCode, Json<CreateGeneratorResponse>), Refusal> {
    actor.admin()?;
    check_name("name", &request.name)?;
    let generator = Generator {
        id: GeneratorId::mint(&broker.entropy),
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        name: request.name,
        description: request.description,
        is_active: true,
        is_system: false,
        last_active_at: None,
    };
    let pak = Pak::mint(&broker.entropy);
    broker.store.create_generator(stamp, generator.clone(), KeyRecord::from(&pak)).await?;
    Ok((StatusCode::CREATED, Json(CreateGeneratorResponse { generator, pak: pak.reveal() })))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Paged(page): Paged,
) -> Result<Json<Vec<Generator>>, Refusal> {
    actor.admin()?;
    Ok(Json(broker.store.generators(page).await?))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
) -> Result<Json<Generator>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    Ok(Json(broker.store.generator(generator).await?))
}

pub(crate) async fn register(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
    Body(body): Body<AgentRegistrationBody>,
) -> Result<(StatusCode, Json<AgentGeneratorRegistration>), Refusal> {
    let agent = which_agent(actor, &body)?;
    let registration = broker.store.register(stamp, generator, agent).await?;
    Ok((StatusCode::CREATED, Json(registration)))
}

pub(crate) async fn unregister(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
    Body(body): Body<AgentRegistrationBody>,
) -> Result<StatusCode, Refusal> {
    let agent = which_agent(actor, &body)?;
    broker.store.unregister(stamp, generator, agent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An agent speaks for itself and may leave its id out; the administrator has to say whom it means.
fn which_agent(actor: Actor, body: &AgentRegistrationBody) -> Result<AgentId, Refusal> {
    actor.admin_or_agent()?;
    let agent = match (actor.0, body.agent_id) {
        (KeyHolder::Agent(agent), None) => agent,
        (_, Some(agent)) => agent,
        (_, None) => return Err(Refusal::bad("agent_id_required", "the body must name the agent in agent_id")),
    };
    actor.admin_or_this_agent(agent)?;
    Ok(agent)
}

pub(crate) async fn registered_agents(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    Paged(page): Paged,
) -> Result<Json<Vec<AgentGeneratorRegistration>>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    Ok(Json(broker.store.registrations_with(generator, page).await?))
}
