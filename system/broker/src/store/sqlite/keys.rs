//! Keys: only digests, found by short token.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use sindri_model::{AgentId, GeneratorId, PakDigest};

use super::rows::{all, any, change, id_or_none};
use crate::store::{KeyHolder, KeyRecord, StoreError};

pub(super) fn has_admin(connection: &Connection) -> Result<bool, StoreError> {
    any(connection, "SELECT 1 FROM keys WHERE agent_id IS NULL AND generator_id IS NULL", [])
}

pub(super) fn create_admin(connection: &Connection, key: &KeyRecord, at: Timestamp) -> Result<bool, StoreError> {
    if has_admin(connection)? {
        return Ok(false);
    }
    create(connection, key, KeyHolder::Admin, at)?;
    Ok(true)
}

pub(super) fn create(
    connection: &Connection,
    key: &KeyRecord,
    holder: KeyHolder,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (agent, generator) = match holder {
        KeyHolder::Admin => (None, None),
        KeyHolder::Agent(agent) => (Some(agent.to_string()), None),
        KeyHolder::Generator(generator) => (None, Some(generator.to_string())),
    };
    let sql = "INSERT INTO keys (short, digest, agent_id, generator_id, created_at) VALUES (?, ?, ?, ?, ?)";
    change(connection, sql, params![key.short, key.digest.0, agent, generator, at.as_microsecond()])?;
    Ok(())
}

pub(super) fn delete_of_agent(connection: &Connection, agent: AgentId) -> Result<(), StoreError> {
    change(connection, "DELETE FROM keys WHERE agent_id = ?", [agent.to_string()])?;
    Ok(())
}

pub(super) fn by_short(connection: &Connection, short: &str) -> Result<Vec<(PakDigest, KeyHolder)>, StoreError> {
    all(connection, "SELECT digest, agent_id, generator_id FROM keys WHERE short = ?", [short], read)
}

fn read(row: &Row<'_>) -> rusqlite::Result<(PakDigest, KeyHolder)> {
    let agent: Option<AgentId> = id_or_none(row, "agent_id")?;
    let generator: Option<GeneratorId> = id_or_none(row, "generator_id")?;
    let holder = match (agent, generator) {
        (Some(agent), _) => KeyHolder::Agent(agent),
        (None, Some(generator)) => KeyHolder::Generator(generator),
        (None, None) => KeyHolder::Admin,
    };
    Ok((PakDigest(row.get("digest")?), holder))
}
