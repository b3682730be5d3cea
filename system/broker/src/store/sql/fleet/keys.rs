//! Creates the key of the administrator, and replaces keys.

use sindri_model::wire::{Agent, Generator};
use sindri_model::{AgentId, GeneratorId, PakDigest};

use crate::store::records::{KeyHolder, KeyRecord, StoreError, WriteContext};
use crate::store::sql::shared::session::Session;
use crate::store::sql::shared::{audit, counter};
use crate::store::sql::tables::{agents, generators, keys};

pub(crate) async fn create_admin(
    session: &mut dyn Session,
    context: WriteContext,
    key: KeyRecord,
) -> Result<bool, StoreError> {
    // Two brokers may start at once on an empty database: the second waits here, and then finds the key.
    counter::next_number(session).await?;
    if keys::has_admin(session).await? {
        return Ok(false);
    }
    keys::create(session, &context, &key, KeyHolder::Admin).await?;
    audit::record(session, &context, "pak.created", "pak", None, None).await?;
    Ok(true)
}

pub(crate) async fn rotate_for_admin(
    session: &mut dyn Session,
    context: WriteContext,
    expected: Vec<PakDigest>,
    key: KeyRecord,
) -> Result<(), StoreError> {
    lock_keys(session, KeyHolder::Admin, &expected).await?;
    keys::delete(session, KeyHolder::Admin).await?;
    keys::create(session, &context, &key, KeyHolder::Admin).await?;
    audit::record(session, &context, "pak.rotated", "pak", None, None).await
}

pub(crate) async fn rotate_for_agent(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    expected: Vec<PakDigest>,
    key: KeyRecord,
) -> Result<Agent, StoreError> {
    let holder = KeyHolder::Agent(agent);
    lock_keys(session, holder, &expected).await?;
    let record = agents::get(session, agent).await?;
    replace(session, &context, holder, key, ("agent", agent.to_string())).await?;
    Ok(record)
}

pub(crate) async fn rotate_for_generator(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    expected: Vec<PakDigest>,
    key: KeyRecord,
) -> Result<Generator, StoreError> {
    let holder = KeyHolder::Generator(generator);
    lock_keys(session, holder, &expected).await?;
    let record = generators::get(session, generator).await?;
    replace(session, &context, holder, key, ("generator", generator.to_string())).await?;
    Ok(record)
}

/// Locks the counter, as every operation that deletes a key does first, and then checks that no other operation has
/// replaced or deleted the keys since they were read.
async fn lock_keys(session: &mut dyn Session, holder: KeyHolder, expected: &[PakDigest]) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    if keys::list_of_holder(session, holder).await? == expected { Ok(()) } else { Err(StoreError::KeyChanged) }
}

async fn replace(
    session: &mut dyn Session,
    context: &WriteContext,
    holder: KeyHolder,
    key: KeyRecord,
    (resource_type, id): (&str, String),
) -> Result<(), StoreError> {
    keys::delete(session, holder).await?;
    keys::create(session, context, &key, holder).await?;
    audit::record(session, context, "pak.rotated", resource_type, Some(id), None).await
}
