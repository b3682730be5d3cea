//! Access keys: lists and rotates them. A key is returned only when it is created.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{CreateGeneratorResponse, PakSummary, RotateAgentPakResponse};
use sindri_model::{AgentId, GeneratorId, Pak};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::PathParams;
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::Created;
use crate::broker::Broker;
use crate::store::{KeyRecord, WriteContext};

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
) -> Result<ListResponse<Vec<PakSummary>>, ErrorResponse> {
    let paks = broker.store.list_keys(params.page()).await?;
    Ok(params.respond(paks, |pak| pak.id))
}

pub(crate) async fn rotate_agent_key(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
) -> Result<Json<RotateAgentPakResponse>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let pak = Pak::generate(&broker.entropy);
    let agent = broker.store.rotate_agent_key(context, agent, KeyRecord::from(&pak)).await?;
    Ok(Json(RotateAgentPakResponse { agent: broker.memory.heartbeats.apply_to(agent), pak: pak.reveal() }))
}

pub(crate) async fn rotate_generator_key(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
) -> Result<Created<CreateGeneratorResponse>, ErrorResponse> {
    actor.check_admin_or_generator(generator)?;
    let pak = Pak::generate(&broker.entropy);
    let generator = broker.store.rotate_generator_key(context, generator, KeyRecord::from(&pak)).await?;
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}
