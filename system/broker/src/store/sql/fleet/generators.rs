//! Generators, and which agents are registered with them.

use serde_json::json;
use sindri_model::wire::{AgentGeneratorRegistration, Generator, UpdateGeneratorRequest};
use sindri_model::{AgentId, GeneratorId, LinkId, StackId};

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, KeyRecord, Noun, Page, Stamp, StoreError};
use crate::store::sql::assignments::matching;
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::{found, made};
use crate::store::sql::shared::outbox::{Happening, announce};
use crate::store::sql::shared::session::{Row, Session, all, any, change, one, only, values};
use crate::store::sql::stacks::lifecycle as stacks;
use crate::store::sql::tables::keys;

const WHAT: &str = "generator";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, created_at, updated_at, deleted_at, name, description, is_active, is_system, last_active_at ",
            $rest
        )
    };
}

pub(crate) async fn create(
    session: &mut dyn Session,
    stamp: Stamp,
    generator: Generator,
    key: KeyRecord,
) -> Result<(), StoreError> {
    once::refuse_again(session, &stamp, WHAT).await?;
    let sql = "INSERT INTO generators (id, created_at, updated_at, name, description, is_active, is_system)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let row = values![
        generator.id,
        stamp.at,
        &generator.name,
        generator.description.as_deref(),
        generator.is_active,
        generator.is_system
    ];
    made(change(session, sql, row).await?, Noun::Generator, &generator.name)?;
    keys::create(session, &stamp, &key, KeyHolder::Generator(generator.id)).await?;
    once::remember(session, &stamp, WHAT, generator.id).await?;
    let details = json!({"name": generator.name});
    audit::record(session, &stamp, "generator.created", WHAT, Some(generator.id.to_string()), Some(details)).await
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<Generator>, StoreError> {
    let sql = columns!(
        "FROM generators WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
          OR (name, id) > (SELECT name, id FROM generators WHERE id = ?1)) ORDER BY name, id LIMIT ?2"
    );
    all(session, sql, values![page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, generator: GeneratorId) -> Result<Generator, StoreError> {
    let sql = columns!("FROM generators WHERE id = ?1 AND deleted_at IS NULL");
    found(one(session, sql, values![generator], read).await?, Noun::Generator, generator)
}

pub(crate) async fn update(
    session: &mut dyn Session,
    stamp: Stamp,
    generator: GeneratorId,
    changes: UpdateGeneratorRequest,
) -> Result<Generator, StoreError> {
    let now = get(session, generator).await?;
    let name = changes.name.as_ref().unwrap_or(&now.name);
    let sql = "SELECT 1 FROM generators WHERE name = ?1 AND id <> ?2 AND deleted_at IS NULL";
    if any(session, sql, values![name, generator]).await? {
        return Err(StoreError::Duplicate { noun: Noun::Generator, name: name.clone() });
    }
    let sql = "UPDATE generators SET name = ?1, description = ?2, is_active = ?3, updated_at = ?4 WHERE id = ?5";
    let description = changes.description.as_ref().or(now.description.as_ref());
    let row = values![name, description, changes.is_active.unwrap_or(now.is_active), stamp.at, generator];
    change(session, sql, row).await?;
    let details = json!(changes);
    audit::record(session, &stamp, "generator.updated", WHAT, Some(generator.to_string()), Some(details)).await?;
    get(session, generator).await
}

/// Its stacks go first, each with its marker: an agent must be told what to remove.
pub(crate) async fn delete(session: &mut dyn Session, stamp: Stamp, generator: GeneratorId) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    let gone = get(session, generator).await?;
    let sql = "SELECT id FROM stacks WHERE generator_id = ?1 AND deleted_at IS NULL ORDER BY name";
    let theirs: Vec<StackId> = all(session, sql, values![generator], only).await?;
    for stack in theirs {
        stacks::delete(session, stamp.clone(), stack).await?;
    }
    keys::delete_of(session, KeyHolder::Generator(generator)).await?;
    change(session, "DELETE FROM registrations WHERE generator_id = ?1", values![generator]).await?;
    let sql = "UPDATE generators SET deleted_at = ?1, updated_at = ?1, is_active = 0 WHERE id = ?2";
    change(session, sql, values![stamp.at, generator]).await?;
    let details = json!({"name": gone.name});
    audit::record(session, &stamp, "generator.deleted", WHAT, Some(generator.to_string()), Some(details)).await
}

pub(crate) async fn register(
    session: &mut dyn Session,
    stamp: Stamp,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<AgentGeneratorRegistration, StoreError> {
    epoch::tick(session).await?;
    agents::require(session, agent).await?;
    let registration = register_row(session, &stamp, generator, agent).await?;
    matching::of_agent_changed(session, &stamp, agent).await?;
    Ok(registration)
}

/// The registration alone: a new agent has no labels that could match yet.
pub(crate) async fn register_row(
    session: &mut dyn Session,
    stamp: &Stamp,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<AgentGeneratorRegistration, StoreError> {
    get(session, generator).await?;
    let id = LinkId::mint(&stamp.entropy);
    let sql = "INSERT INTO registrations (id, agent_id, generator_id, registered_at) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = change(session, sql, values![id, agent, generator, stamp.at]).await?;
    made(rows, Noun::Registration, in_words(generator, agent))?;
    let data = json!({"agent_id": agent, "generator_id": generator});
    let resource = Some(agent.to_string());
    audit::record(session, stamp, "agent.registered", "agent", resource, Some(data.clone())).await?;
    let happening = Happening { event: EventType::AgentRegistered, agent: Some(agent), stack: None, data };
    announce(session, stamp, happening).await?;
    Ok(AgentGeneratorRegistration { id, agent_id: agent, generator_id: generator, registered_at: stamp.at })
}

pub(crate) async fn unregister(
    session: &mut dyn Session,
    stamp: Stamp,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    get(session, generator).await?;
    let sql = "DELETE FROM registrations WHERE generator_id = ?1 AND agent_id = ?2";
    let gone = change(session, sql, values![generator, agent]).await? > 0;
    found(gone.then_some(()), Noun::Registration, in_words(generator, agent))?;
    matching::of_agent_changed(session, &stamp, agent).await?;
    let data = json!({"agent_id": agent, "generator_id": generator});
    let resource = Some(agent.to_string());
    audit::record(session, &stamp, "agent.deregistered", "agent", resource, Some(data.clone())).await?;
    let happening = Happening { event: EventType::AgentDeregistered, agent: Some(agent), stack: None, data };
    announce(session, &stamp, happening).await
}

pub(crate) async fn is_registered(
    session: &mut dyn Session,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM registrations WHERE generator_id = ?1 AND agent_id = ?2";
    any(session, sql, values![generator, agent]).await
}

pub(crate) async fn registrations_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT id, agent_id, generator_id, registered_at FROM registrations
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![agent, page.after, page.limit], read_registration).await
}

pub(crate) async fn registrations_with(
    session: &mut dyn Session,
    generator: GeneratorId,
    page: Page,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    get(session, generator).await?;
    let sql = "SELECT id, agent_id, generator_id, registered_at FROM registrations
               WHERE generator_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![generator, page.after, page.limit], read_registration).await
}

fn in_words(generator: GeneratorId, agent: AgentId) -> String {
    format!("of agent {agent} with generator {generator}")
}

fn read(row: &mut Row) -> Result<Generator, StoreError> {
    Ok(Generator {
        id: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        deleted_at: row.take()?,
        name: row.take()?,
        description: row.take()?,
        is_active: row.take()?,
        is_system: row.take()?,
        last_active_at: row.take()?,
    })
}

fn read_registration(row: &mut Row) -> Result<AgentGeneratorRegistration, StoreError> {
    Ok(AgentGeneratorRegistration {
        id: row.take()?,
        agent_id: row.take()?,
        generator_id: row.take()?,
        registered_at: row.take()?,
    })
}
