//! Creates the key of the administrator, and replaces those of agents and generators.

use sindri_model::wire::{Agent, Generator};
use sindri_model::{AgentId, GeneratorId};

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

pub(crate) async fn rotate_for_agent(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    key: KeyRecord,
) -> Result<Agent, StoreError> {
    let record = agents::get(session, agent).await?;
    rotate(session, &context, KeyHolder::Agent(agent), key, ("agent", agent.to_string())).await?;
    Ok(record)
}

pub(crate) async fn rotate_for_generator(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    key: KeyRecord,
) -> Result<Generator, StoreError> {
    let record = generators::get(session, generator).await?;
    rotate(session, &context, KeyHolder::Generator(generator), key, ("generator", generator.to_string())).await?;
    Ok(record)
}

async fn rotate(
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
