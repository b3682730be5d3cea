//! Access keys: lists and rotates them. A key is returned only when it is created.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{CreateGeneratorResponse, PakSummary, RotateAdminPakResponse, RotateAgentPakResponse};
use sindri_model::{AgentId, GeneratorId, PakDigest};

use crate::api::http::authentication::{Actor, SenderKey};
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::PathParams;
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::Created;
use crate::broker::Broker;
use crate::store::{KeyHolder, KeyRecord, StoreError, WriteContext};

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
) -> Result<ListResponse<Vec<PakSummary>>, ErrorResponse> {
    let paks = broker.store.list_keys(params.page()).await?;
    Ok(params.respond(paks, |pak| pak.id))
}

pub(crate) async fn rotate_admin_key(
    State(broker): State<Broker>,
    actor: Actor,
    sent: SenderKey,
    context: WriteContext,
) -> Result<Json<RotateAdminPakResponse>, ErrorResponse> {
    let expected = list_replaced_keys(&broker, actor, &sent, KeyHolder::Admin).await?;
    let pak = broker.generate_pak();
    broker.store.rotate_admin_key(context, expected, KeyRecord::from(&pak)).await?;
    Ok(Json(RotateAdminPakResponse { pak: pak.reveal() }))
}

pub(crate) async fn rotate_agent_key(
    State(broker): State<Broker>,
    actor: Actor,
    sent: SenderKey,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
) -> Result<Json<RotateAgentPakResponse>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let expected = list_replaced_keys(&broker, actor, &sent, KeyHolder::Agent(agent)).await?;
    let pak = broker.generate_pak();
    let agent = broker.store.rotate_agent_key(context, agent, expected, KeyRecord::from(&pak)).await?;
    Ok(Json(RotateAgentPakResponse { agent: broker.memory.heartbeats.apply_to(agent), pak: pak.reveal() }))
}

pub(crate) async fn rotate_generator_key(
    State(broker): State<Broker>,
    actor: Actor,
    sent: SenderKey,
    PathParams(generator): PathParams<GeneratorId>,
    context: WriteContext,
) -> Result<Created<CreateGeneratorResponse>, ErrorResponse> {
    actor.check_admin_or_generator(generator, Denial::GeneratorNotOwned)?;
    let expected = list_replaced_keys(&broker, actor, &sent, KeyHolder::Generator(generator)).await?;
    let pak = broker.generate_pak();
    let generator = broker.store.rotate_generator_key(context, generator, expected, KeyRecord::from(&pak)).await?;
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}

/// Returns the keys that a rotation replaces. The store compares them again: of concurrent rotations one wins. A holder
/// that rotates its own key must have sent one of them; a key from the cache may have been replaced already.
async fn list_replaced_keys(
    broker: &Broker,
    actor: Actor,
    sent: &SenderKey,
    holder: KeyHolder,
) -> Result<Vec<PakDigest>, ErrorResponse> {
    let keys = broker.store.list_keys_of_holder(holder).await?;
    if actor.0 == holder && !keys.iter().any(|digest| sent.0.matches(digest)) {
        return Err(StoreError::KeyChanged.into());
    }
    Ok(keys)
}
