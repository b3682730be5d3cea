//! Generators, and which agents are registered with them.

use rusqlite::{Connection, Row, params};
use sindri_model::wire::{AgentGeneratorRegistration, Generator};
use sindri_model::{AgentId, GeneratorId};

use super::rows::{all, any, change, found, id, insert, one, time, time_or_none};
use super::{agents, keys};
use crate::store::{KeyHolder, KeyRecord, Noun, StoreError};

pub(super) fn create(connection: &Connection, generator: &Generator, key: &KeyRecord) -> Result<(), StoreError> {
    let sql = "INSERT INTO generators (id, created_at, updated_at, name, description, is_active, is_system)
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    let row = params![
        generator.id.to_string(),
        generator.created_at.as_microsecond(),
        generator.updated_at.as_microsecond(),
        generator.name,
        generator.description,
        generator.is_active,
        generator.is_system,
    ];
    insert(connection, sql, row, Noun::Generator, &generator.name)?;
    keys::create(connection, key, KeyHolder::Generator(generator.id), generator.created_at)
}

pub(super) fn list(connection: &Connection) -> Result<Vec<Generator>, StoreError> {
    all(connection, "SELECT * FROM generators WHERE deleted_at IS NULL ORDER BY name", [], read)
}

pub(super) fn get(connection: &Connection, generator: GeneratorId) -> Result<Generator, StoreError> {
    let sql = "SELECT * FROM generators WHERE id = ? AND deleted_at IS NULL";
    found(one(connection, sql, [generator.to_string()], read)?, Noun::Generator, generator)
}

pub(super) fn register(connection: &Connection, registration: &AgentGeneratorRegistration) -> Result<(), StoreError> {
    get(connection, registration.generator_id)?;
    agents::get(connection, registration.agent_id)?;
    let (agent, generator) = (registration.agent_id.to_string(), registration.generator_id.to_string());
    let name = in_words(registration.generator_id, registration.agent_id);
    let row = params![registration.id.to_string(), agent, generator, registration.registered_at.as_microsecond()];
    let sql = "INSERT INTO registrations (id, agent_id, generator_id, registered_at) VALUES (?, ?, ?, ?)";
    insert(connection, sql, row, Noun::Registration, name)
}

pub(super) fn unregister(connection: &Connection, generator: GeneratorId, agent: AgentId) -> Result<(), StoreError> {
    get(connection, generator)?;
    let sql = "DELETE FROM registrations WHERE generator_id = ? AND agent_id = ?";
    let gone = change(connection, sql, [generator.to_string(), agent.to_string()])? > 0;
    found(gone.then_some(()), Noun::Registration, in_words(generator, agent))
}

pub(super) fn is_registered(
    connection: &Connection,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM registrations WHERE generator_id = ? AND agent_id = ?";
    any(connection, sql, [generator.to_string(), agent.to_string()])
}

pub(super) fn registrations_of_agent(
    connection: &Connection,
    agent: AgentId,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    agents::get(connection, agent)?;
    let sql = "SELECT * FROM registrations WHERE agent_id = ? ORDER BY registered_at, id";
    all(connection, sql, [agent.to_string()], read_registration)
}

pub(super) fn registrations_with(
    connection: &Connection,
    generator: GeneratorId,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    get(connection, generator)?;
    let sql = "SELECT * FROM registrations WHERE generator_id = ? ORDER BY registered_at, id";
    all(connection, sql, [generator.to_string()], read_registration)
}

fn in_words(generator: GeneratorId, agent: AgentId) -> String {
    format!("of agent {agent} with generator {generator}")
}

fn read(row: &Row<'_>) -> rusqlite::Result<Generator> {
    Ok(Generator {
        id: id(row, "id")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        deleted_at: time_or_none(row, "deleted_at")?,
        name: row.get("name")?,
        description: row.get("description")?,
        is_active: row.get("is_active")?,
        is_system: row.get("is_system")?,
        last_active_at: time_or_none(row, "last_active_at")?,
    })
}

fn read_registration(row: &Row<'_>) -> rusqlite::Result<AgentGeneratorRegistration> {
    Ok(AgentGeneratorRegistration {
        id: id(row, "id")?,
        agent_id: id(row, "agent_id")?,
        generator_id: id(row, "generator_id")?,
        registered_at: time(row, "registered_at")?,
    })
}
