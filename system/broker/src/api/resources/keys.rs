//! Keys: which there are, and new ones in place of old ones. A key is shown when it is made, and never again.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{CreateGeneratorResponse, PakSummary, RotateAgentPakResponse};
use sindri_model::{AgentId, GeneratorId, Pak};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::Ids;
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::Created;
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::KeyRecord;

pub(crate) async fn list(State(broker): State<Broker>, paged: Paged) -> Result<Listed<Vec<PakSummary>>, Refusal> {
    let paks = broker.store.list_keys(paged.page()).await?;
    Ok(paged.listed(paks, |pak| pak.id))
}

pub(crate) async fn rotate_of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
) -> Result<Json<RotateAgentPakResponse>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let pak = Pak::mint(&broker.entropy);
    let agent = broker.store.rotate_agent_key(stamp, agent, KeyRecord::from(&pak)).await?;
    Ok(Json(RotateAgentPakResponse { agent: broker.memory.heartbeats.applied_to(agent), pak: pak.reveal() }))
}

pub(crate) async fn rotate_of_generator(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(generator): Ids<GeneratorId>,
    By(stamp): By,
) -> Result<Created<CreateGeneratorResponse>, Refusal> {
    actor.admin_or_this_generator(generator)?;
    let pak = Pak::mint(&broker.entropy);
    let generator = broker.store.rotate_generator_key(stamp, generator, KeyRecord::from(&pak)).await?;
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}
