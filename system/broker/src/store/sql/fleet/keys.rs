//! Replaces keys.

use serde_json::json;
use sindri_model::wire::{Admin, AdminRole, Agent, Generator};
use sindri_model::{AdminId, AgentId, GeneratorId};

use crate::store::records::{KeyHolder, KeyRotation, StoreError, WriteContext};
use crate::store::sql::shared::session::Session;
use crate::store::sql::shared::{audit, counter};
use crate::store::sql::tables::{admins, agents, generators, keys};

pub(crate) async fn rotate_for_admin(
    session: &mut dyn Session,
    context: WriteContext,
    admin: AdminId,
    rotation: KeyRotation,
) -> Result<Admin, StoreError> {
    let holder = KeyHolder::Admin(admin);
    lock_keys(session, holder, &rotation).await?;
    let record = admins::get(session, admin).await?;
    if record.role == AdminRole::Admin && rotation.key.expires_at.is_some() {
        admins::require_another(session, admin).await?;
    }
    replace(session, &context, holder, rotation, ("admin", admin.to_string())).await?;
    admins::get(session, admin).await
}

pub(crate) async fn rotate_for_agent(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    rotation: KeyRotation,
) -> Result<Agent, StoreError> {
    let holder = KeyHolder::Agent(agent);
    lock_keys(session, holder, &rotation).await?;
    let record = agents::get(session, agent).await?;
    replace(session, &context, holder, rotation, ("agent", agent.to_string())).await?;
    Ok(record)
}

pub(crate) async fn rotate_for_generator(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    rotation: KeyRotation,
) -> Result<Generator, StoreError> {
    let holder = KeyHolder::Generator(generator);
    lock_keys(session, holder, &rotation).await?;
    let record = generators::get(session, generator).await?;
    replace(session, &context, holder, rotation, ("generator", generator.to_string())).await?;
    Ok(record)
}

/// Locks the counter, as every operation that deletes a key does first, and then checks that no other operation has
/// replaced or deleted the keys since they were read.
async fn lock_keys(session: &mut dyn Session, holder: KeyHolder, rotation: &KeyRotation) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    let current = keys::list_of_holder(session, holder).await?;
    if current == rotation.expected { Ok(()) } else { Err(StoreError::KeyChanged) }
}

async fn replace(
    session: &mut dyn Session,
    context: &WriteContext,
    holder: KeyHolder,
    KeyRotation { key, previous_until, .. }: KeyRotation,
    (resource_type, id): (&str, String),
) -> Result<(), StoreError> {
    match previous_until {
        None => keys::delete(session, holder).await?,
        Some(until) => keys::supersede(session, holder, context.time, until).await?,
    }
    keys::create(session, context, &key, holder).await?;
    let times = [("expires_at", key.expires_at), ("previous_until", previous_until)];
    let times = times.into_iter().filter_map(|(name, time)| Some((name.to_owned(), json!(time?.to_string()))));
    let details: serde_json::Map<_, _> = times.collect();
    let details = (!details.is_empty()).then_some(details.into());
    audit::record(session, context, "pak.rotated", resource_type, Some(id), details).await
}
