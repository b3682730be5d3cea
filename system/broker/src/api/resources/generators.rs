//! Generators, and the agents that are registered with them.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
    UpdateGeneratorRequest,
};
use sindri_model::{AgentId, GeneratorId, Pak};

use super::validation::{check_name, check_new_name};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::{KeyHolder, KeyRecord};

pub(crate) async fn create(
    State(broker): State<Broker>,
    By(stamp): By,
    Body(request): Body<NewGenerator>,
) -> Result<Created<CreateGeneratorResponse>, Refusal> {
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
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}

pub(crate) async fn list(State(broker): State<Broker>, paged: Paged) -> Result<Listed<Vec<Generator>>, Refusal> {
    let generators = broker.store.list_generators(paged.page()).await?;
    Ok(paged.listed(generators, |generator| generator.id))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
) -> Result<Json<Generator>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    Ok(Json(broker.store.get_generator(generator).await?))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
    Body(changes): Body<UpdateGeneratorRequest>,
) -> Result<Json<Generator>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    check_new_name("name", changes.name.as_deref())?;
    Ok(Json(broker.store.update_generator(stamp, generator, changes).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    actor.admin_or_this_generator(generator)?;
    broker.store.delete_generator(stamp, generator).await?;
    Ok(NoContent)
}

pub(crate) async fn register(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
    Body(body): Body<AgentRegistrationBody>,
) -> Result<Created<AgentGeneratorRegistration>, Refusal> {
    let agent = which_agent(actor, &body)?;
    Ok(Created(broker.store.register_agent(stamp, generator, agent).await?))
}

pub(crate) async fn unregister(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
    Body(body): Body<AgentRegistrationBody>,
) -> Result<NoContent, Refusal> {
    let agent = which_agent(actor, &body)?;
    broker.store.unregister_agent(stamp, generator, agent).await?;
    Ok(NoContent)
}

/// An agent speaks for itself and may leave its id out; the administrator has to say whom it means.
fn which_agent(actor: Actor, body: &AgentRegistrationBody) -> Result<AgentId, Refusal> {
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
    paged: Paged,
) -> Result<Listed<Vec<AgentGeneratorRegistration>>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    let registrations = broker.store.list_registrations_of_generator(generator, paged.page()).await?;
    Ok(paged.listed(registrations, |registration| registration.id))
}
