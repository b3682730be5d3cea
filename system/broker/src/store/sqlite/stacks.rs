//! Stacks and their revisions.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use sindri_model::wire::{DeploymentObject, Stack};
use sindri_model::{AgentId, Checksum, GeneratorId, RevisionId, Sequence, StackId};

use super::rows::{all, as_reference, change, found, id, id_or_none, insert, one, time, time_or_none};
use super::{agents, generators, rows, targets};
use crate::store::{NewRevision, Noun, RevisionRecord, StoreError};

pub(super) fn create(connection: &Connection, stack: &Stack) -> Result<(), StoreError> {
    generators::get(connection, stack.generator_id).map_err(as_reference)?;
    let sql = "INSERT INTO stacks (id, created_at, updated_at, name, description, generator_id)
               VALUES (?, ?, ?, ?, ?, ?)";
    let row = params![
        stack.id.to_string(),
        stack.created_at.as_microsecond(),
        stack.updated_at.as_microsecond(),
        stack.name,
        stack.description,
        stack.generator_id.to_string(),
    ];
    insert(connection, sql, row, Noun::Stack, &stack.name)
}

pub(super) fn list(connection: &Connection, owner: Option<GeneratorId>) -> Result<Vec<Stack>, StoreError> {
    match owner {
        Some(owner) => {
            let sql = "SELECT * FROM stacks WHERE deleted_at IS NULL AND generator_id = ? ORDER BY name";
            all(connection, sql, [owner.to_string()], read)
        }
        None => all(connection, "SELECT * FROM stacks WHERE deleted_at IS NULL ORDER BY name, id", [], read),
    }
}

pub(super) fn get(connection: &Connection, stack: StackId) -> Result<Stack, StoreError> {
    let sql = "SELECT * FROM stacks WHERE id = ? AND deleted_at IS NULL";
    found(one(connection, sql, [stack.to_string()], read)?, Noun::Stack, stack)
}

pub(super) fn of_agent(connection: &Connection, agent: AgentId) -> Result<Vec<Stack>, StoreError> {
    agents::get(connection, agent)?;
    let sql = "SELECT stacks.* FROM targets JOIN stacks ON stacks.id = targets.stack_id
               WHERE targets.agent_id = ? AND stacks.deleted_at IS NULL ORDER BY stacks.name, stacks.id";
    all(connection, sql, [agent.to_string()], read)
}

pub(super) fn delete(
    connection: &Connection,
    stack: StackId,
    marker: RevisionId,
    at: Timestamp,
) -> Result<(), StoreError> {
    get(connection, stack)?;
    let marker = NewRevision { id: marker, stack, yaml_content: String::new(), is_deletion_marker: true, at };
    let sequence = append_row(connection, &marker, None)?;
    targets::stack_was_deleted(connection, stack, sequence)?;
    let sql = "UPDATE stacks SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    change(connection, sql, params![at.as_microsecond(), stack.to_string()])?;
    Ok(())
}

pub(super) fn append(connection: &Connection, revision: &NewRevision) -> Result<DeploymentObject, StoreError> {
    get(connection, revision.stack)?;
    let sequence = append_row(connection, revision, None)?;
    targets::revision_was_appended(connection, revision, sequence)?;
    Ok(self::revision(connection, revision.id)?.object)
}

/// Gives a revision its sequence. Nothing else does.
pub(super) fn append_row(
    connection: &Connection,
    revision: &NewRevision,
    only_for: Option<AgentId>,
) -> Result<Sequence, StoreError> {
    let sql = "INSERT INTO revisions
                 (id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_deletion_marker)
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    let checksum = Checksum::of(&revision.yaml_content);
    let row = params![
        revision.id.to_string(),
        revision.stack.to_string(),
        only_for.map(|agent| agent.to_string()),
        revision.yaml_content,
        checksum.as_str(),
        revision.at.as_microsecond(),
        revision.is_deletion_marker,
    ];
    insert(connection, sql, row, Noun::Revision, revision.id)?;
    Ok(Sequence(connection.last_insert_rowid()))
}

pub(super) fn revisions(connection: &Connection, stack: StackId) -> Result<Vec<DeploymentObject>, StoreError> {
    get(connection, stack)?;
    let sql = "SELECT * FROM revisions WHERE stack_id = ? AND agent_id IS NULL ORDER BY sequence";
    all(connection, sql, [stack.to_string()], read_object)
}

pub(super) fn revision(connection: &Connection, revision: RevisionId) -> Result<RevisionRecord, StoreError> {
    let sql = "SELECT revisions.*, stacks.generator_id FROM revisions JOIN stacks ON stacks.id = revisions.stack_id
               WHERE revisions.id = ?";
    found(one(connection, sql, [revision.to_string()], read_record)?, Noun::Revision, revision)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Stack> {
    Ok(Stack {
        id: id(row, "id")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        deleted_at: time_or_none(row, "deleted_at")?,
        name: row.get("name")?,
        description: row.get("description")?,
        generator_id: id(row, "generator_id")?,
    })
}

pub(super) fn read_object(row: &Row<'_>) -> rusqlite::Result<DeploymentObject> {
    let submitted_at = time(row, "submitted_at")?;
    Ok(DeploymentObject {
        id: id(row, "id")?,
        created_at: submitted_at,
        updated_at: submitted_at,
        deleted_at: None,
        sequence_id: Sequence(row.get("sequence")?),
        stack_id: id(row, "stack_id")?,
        yaml_content: row.get("yaml_content")?,
        yaml_checksum: rows::checksum(row, "yaml_checksum")?,
        submitted_at,
        is_deletion_marker: row.get("is_deletion_marker")?,
    })
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<RevisionRecord> {
    Ok(RevisionRecord {
        object: read_object(row)?,
        only_for: id_or_none(row, "agent_id")?,
        generator: id(row, "generator_id")?,
    })
}
