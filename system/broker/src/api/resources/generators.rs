//! Generators, and the registrations of agents with them.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{
    AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator, NewGenerator,
    UpdateGeneratorRequest,
};
use sindri_model::{AgentId, GeneratorId};

use super::keys::new_key;
use super::repeated_delete::succeed_without;
use super::validation::{check_description, check_name, check_optional};
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{KeyHolder, RecordKind, WriteContext};

pub(crate) async fn create(
    State(broker): State<Broker>,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<NewGenerator>,
) -> Result<Created<CreateGeneratorResponse>, ErrorResponse> {
    check_name("name", &request.name)?;
    check_description(request.description.as_deref())?;
    let generator = Generator {
        id: GeneratorId::generate(&broker.entropy),
        created_at: context.time,
        updated_at: context.time,
        deleted_at: None,
        name: request.name,
        description: request.description,
        is_active: true,
        is_system: false,
        last_active_at: None,
    };
    let (pak, key) = new_key(&broker, request.key_expires_at)?;
    broker.store.create_generator(context, generator.clone(), key).await?;
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<Generator>>, ErrorResponse> {
    let generators = broker.store.list_generators(params.page()).await?;
    let description_bytes = |generator: &Generator| generator.description.as_ref().map_or(0, String::len);
    permit.serialize(&broker, params.respond_sized(generators, |generator| generator.id, description_bytes)).await
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
) -> Result<Json<Generator>, ErrorResponse> {
    actor.check_admin_or_generator(generator, Denial::GeneratorNotOwned)?;
    Ok(Json(broker.store.get_generator(generator).await?))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
    JsonBody(mut changes): JsonBody<UpdateGeneratorRequest>,
) -> Result<Json<Generator>, ErrorResponse> {
    actor.check_admin_or_generator(generator, Denial::GeneratorNotOwned)?;
    check_optional(changes.name.as_deref(), |name| check_name("name", name))?;
    check_description(changes.description.as_deref())?;
    if !actor.is_admin() {
        // A generator that is inactive does not get here. One that is active sends `true` with its whole record, which changes
        // nothing: it may have been deactivated since its key was checked.
        if changes.is_active.take() == Some(false) {
            return Err(ErrorResponse::admin_required("only an administrator activates and deactivates generators"));
        }
    }
    Ok(Json(broker.store.update_generator(context, generator, changes).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    actor.check_admin_or_generator(generator, Denial::GeneratorNotOwned)?;
    broker.store.delete_generator(context, generator).await?;
    Ok(NoContent)
}

pub(crate) async fn register(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
    JsonBody(body): JsonBody<AgentRegistrationBody>,
) -> Result<Created<AgentGeneratorRegistration>, ErrorResponse> {
    let agent = agent_to_register(actor, &body)?;
    Ok(Created(broker.store.register_agent(context, generator, agent).await?))
}

pub(crate) async fn unregister(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
    JsonBody(body): JsonBody<AgentRegistrationBody>,
) -> Result<NoContent, ErrorResponse> {
    let agent = agent_to_register(actor, &body)?;
    succeed_without(RecordKind::Registration, broker.store.unregister_agent(context, generator, agent).await)?;
    Ok(NoContent)
}

/// Returns the agent to register. An agent registers itself and may omit its id; the administrator must give one.
fn agent_to_register(actor: Actor, body: &AgentRegistrationBody) -> Result<AgentId, ErrorResponse> {
    let agent = match (actor.holder, body.agent_id) {
        (KeyHolder::Agent(agent), None) => agent,
        (_, Some(agent)) => agent,
        (_, None) => {
            return Err(ErrorResponse::bad_request("missing_agent_id", "the body must name the agent in agent_id"));
        }
    };
    actor.check_admin_or_agent(agent)?;
    Ok(agent)
}

pub(crate) async fn list_registered_agents(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    params: ListParams,
) -> Result<ListResponse<Vec<AgentGeneratorRegistration>>, ErrorResponse> {
    actor.check_admin_or_generator(generator, Denial::NotAuthorized)?;
    let registrations = broker.store.list_registrations_of_generator(generator, params.page()).await?;
    Ok(params.respond(registrations, |registration| registration.id))
}
