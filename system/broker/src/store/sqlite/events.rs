//! What agents reported.

use rusqlite::{Connection, Row, params};
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, EventId};

use super::rows::{all, as_reference, found, id, insert, one, time};
use super::{agents, stacks, targets};
use crate::store::{Noun, StoreError};

pub(super) fn record(
    connection: &Connection,
    event: &AgentEvent,
    idempotency_key: Option<&str>,
) -> Result<AgentEvent, StoreError> {
    agents::get(connection, event.agent_id)?;
    let agent = event.agent_id.to_string();
    if let Some(key) = idempotency_key {
        let sql = "SELECT * FROM events WHERE agent_id = ? AND idempotency_key = ?";
        if let Some(first) = one(connection, sql, [agent.as_str(), key], read)? {
            return Ok(first);
        }
    }
    let record = stacks::revision(connection, event.deployment_object_id).map_err(as_reference)?;
    if record.only_for.is_some_and(|only| only != event.agent_id) {
        return Err(StoreError::MissingReference {
            noun: Noun::Revision,
            name: event.deployment_object_id.to_string(),
        });
    }
    let sql = "INSERT INTO events
                 (id, created_at, agent_id, revision_id, event_type, success, message, idempotency_key)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let row = params![
        event.id.to_string(),
        event.created_at.as_microsecond(),
        agent,
        event.deployment_object_id.to_string(),
        event.event_type,
        event.status == EventStatus::Success,
        event.message,
        idempotency_key,
    ];
    insert(connection, sql, row, Noun::Event, event.id)?;
    if event.status == EventStatus::Success && record.object.is_deletion_marker {
        targets::removal_was_carried_out(connection, event.agent_id, &record.object)?;
    }
    Ok(event.clone())
}

pub(super) fn of_agent(connection: &Connection, agent: AgentId) -> Result<Vec<AgentEvent>, StoreError> {
    agents::get(connection, agent)?;
    all(connection, "SELECT * FROM events WHERE agent_id = ? ORDER BY position", [agent.to_string()], read)
}

pub(super) fn list(connection: &Connection) -> Result<Vec<AgentEvent>, StoreError> {
    all(connection, "SELECT * FROM events ORDER BY position", [], read)
}

pub(super) fn get(connection: &Connection, event: EventId) -> Result<AgentEvent, StoreError> {
    let row = one(connection, "SELECT * FROM events WHERE id = ?", [event.to_string()], read)?;
    found(row, Noun::Event, event)
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentEvent> {
    let created_at = time(row, "created_at")?;
    let status = if row.get("success")? { EventStatus::Success } else { EventStatus::Failure };
    Ok(AgentEvent {
        id: id(row, "id")?,
        created_at,
        updated_at: created_at,
        deleted_at: None,
        agent_id: id(row, "agent_id")?,
        deployment_object_id: id(row, "revision_id")?,
        event_type: row.get("event_type")?,
        status,
        message: row.get("message")?,
    })
}
