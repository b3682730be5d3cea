//! Which stacks an agent gets, what it has received, and what it must remove.
//!
//! The rule that everything here keeps: of a stack that is wanted (it lives, is targeted, and its newest
//! revision is no marker) no removal is outstanding; of a stack that the agent has received and that is not
//! wanted, exactly one removal is, or was confirmed. So a desired set holds a stack at most once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::{Connection, Row, params, params_from_iter};
use sindri_model::wire::{AgentTarget, DeploymentObject};
use sindri_model::{AgentId, Epoch, RevisionId, Sequence, StackId};

use super::rows::{all, any, change, found, id, insert};
use super::stacks::{self, append_row, read_object};
use super::{agents, generators};
use crate::store::{DesiredSet, NewRevision, Noun, StoreError};

pub(super) fn add(connection: &Connection, target: &AgentTarget) -> Result<(), StoreError> {
    agents::get(connection, target.agent_id)?;
    let stack = stacks::get(connection, target.stack_id)?;
    if !generators::is_registered(connection, stack.generator_id, target.agent_id)? {
        return Err(StoreError::NotRegistered { agent: target.agent_id, generator: stack.generator_id });
    }
    let (agent, stack) = (target.agent_id.to_string(), target.stack_id.to_string());
    let sql = "INSERT INTO targets (id, agent_id, stack_id) VALUES (?, ?, ?)";
    let name = in_words(target.agent_id, target.stack_id);
    insert(connection, sql, params![target.id.to_string(), agent, stack], Noun::Target, name)?;
    // Wanted again: an instruction to remove it is void, unless the stack's own newest revision is one.
    let sql = "UPDATE receipts SET removal = NULL, confirmed = 0
               WHERE agent_id = ?1 AND stack_id = ?2 AND NOT EXISTS (
                 SELECT 1 FROM revisions WHERE is_deletion_marker AND sequence = (
                   SELECT max(sequence) FROM revisions WHERE stack_id = ?2 AND agent_id IS NULL))";
    change(connection, sql, [agent, stack])?;
    Ok(())
}

pub(super) fn remove(
    connection: &Connection,
    agent: AgentId,
    stack: StackId,
    removal: RevisionId,
    at: Timestamp,
) -> Result<(), StoreError> {
    agents::get(connection, agent)?;
    let pair = [agent.to_string(), stack.to_string()];
    let gone =
        change(connection, "DELETE FROM targets WHERE agent_id = ? AND stack_id = ?", params_from_iter(&pair))? > 0;
    found(gone.then_some(()), Noun::Target, in_words(agent, stack))?;
    // A removal that is there already (the stack's own marker) says the same; one is enough.
    if any(
        connection,
        "SELECT 1 FROM receipts WHERE agent_id = ? AND stack_id = ? AND removal IS NULL",
        params_from_iter(&pair),
    )? {
        let instruction = NewRevision { id: removal, stack, yaml_content: String::new(), is_deletion_marker: true, at };
        let sequence = append_row(connection, &instruction, Some(agent))?;
        let sql = "UPDATE receipts SET removal = ?, confirmed = 0 WHERE agent_id = ? AND stack_id = ?";
        change(connection, sql, params![sequence.0, pair[0], pair[1]])?;
    }
    Ok(())
}

pub(super) fn list(connection: &Connection, agent: AgentId) -> Result<Vec<AgentTarget>, StoreError> {
    agents::get(connection, agent)?;
    all(connection, "SELECT * FROM targets WHERE agent_id = ? ORDER BY stack_id", [agent.to_string()], read)
}

/// A new revision is wanted wherever the stack is targeted; a marker is to be confirmed there.
pub(super) fn revision_was_appended(
    connection: &Connection,
    revision: &NewRevision,
    sequence: Sequence,
) -> Result<(), StoreError> {
    let removal = revision.is_deletion_marker.then_some(sequence.0);
    let sql = "UPDATE receipts SET removal = ?1, confirmed = 0 WHERE stack_id = ?2
               AND agent_id IN (SELECT agent_id FROM targets WHERE stack_id = ?2)";
    change(connection, sql, params![removal, revision.stack.to_string()])?;
    Ok(())
}

/// Every agent that ever received the stack has to confirm the marker, targeted or not.
pub(super) fn stack_was_deleted(connection: &Connection, stack: StackId, marker: Sequence) -> Result<(), StoreError> {
    let sql = "UPDATE receipts SET removal = ?, confirmed = 0 WHERE stack_id = ?";
    change(connection, sql, params![marker.0, stack.to_string()])?;
    change(connection, "DELETE FROM targets WHERE stack_id = ?", [stack.to_string()])?;
    Ok(())
}

/// Only the instruction that is outstanding can be confirmed: a late word about an older one says nothing
/// about what the agent has received since.
pub(super) fn removal_was_carried_out(
    connection: &Connection,
    agent: AgentId,
    object: &DeploymentObject,
) -> Result<(), StoreError> {
    let sql = "UPDATE receipts SET confirmed = 1 WHERE agent_id = ? AND stack_id = ? AND removal = ?";
    change(connection, sql, params![agent.to_string(), object.stack_id.to_string(), object.sequence_id.0])?;
    Ok(())
}

pub(super) fn desired_set(connection: &Connection, agent: AgentId) -> Result<DesiredSet, StoreError> {
    agents::get(connection, agent)?;
    let agent = agent.to_string();
    let epoch = connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'epoch'")?
        .query_row([], |row| row.get(0).map(Epoch))?;
    let sql = "SELECT revisions.* FROM targets
                 JOIN revisions ON sequence = (
                   SELECT max(sequence) FROM revisions WHERE stack_id = targets.stack_id AND agent_id IS NULL)
               WHERE targets.agent_id = ?1 AND NOT is_deletion_marker
               UNION ALL
               SELECT revisions.* FROM receipts JOIN revisions ON sequence = removal
               WHERE receipts.agent_id = ?1 AND removal IS NOT NULL AND confirmed = 0
               ORDER BY sequence";
    let objects = all(connection, sql, [&agent], read_object)?;
    assert_consistent(&objects);
    Ok(DesiredSet { epoch, objects })
}

/// The desired set, with a receipt for each stack in it. The agent's own polls come here, nobody else's.
pub(super) fn hand_out(connection: &Connection, agent: AgentId) -> Result<DesiredSet, StoreError> {
    let desired = desired_set(connection, agent)?;
    let agent = agent.to_string();
    // Removals are only ever sent for what has a receipt; an idle poll writes nothing.
    for object in desired.objects.iter().filter(|object| !object.is_deletion_marker) {
        let pair = [&agent, &object.stack_id.to_string()];
        if !any(connection, "SELECT 1 FROM receipts WHERE agent_id = ? AND stack_id = ?", pair)? {
            change(connection, "INSERT INTO receipts (agent_id, stack_id) VALUES (?, ?)", pair)?;
        }
    }
    Ok(desired)
}

fn assert_consistent(objects: &[DeploymentObject]) {
    let stacks: BTreeSet<_> = objects.iter().map(|object| object.stack_id).collect();
    assert_eq!(stacks.len(), objects.len(), "a stack is wanted and to be removed at once");
}

pub(super) fn concerns(connection: &Connection, agent: AgentId, stack: StackId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM targets WHERE agent_id = ?1 AND stack_id = ?2
               UNION ALL SELECT 1 FROM receipts WHERE agent_id = ?1 AND stack_id = ?2";
    any(connection, sql, [agent.to_string(), stack.to_string()])
}

fn in_words(agent: AgentId, stack: StackId) -> String {
    format!("of stack {stack} at agent {agent}")
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentTarget> {
    Ok(AgentTarget { id: id(row, "id")?, agent_id: id(row, "agent_id")?, stack_id: id(row, "stack_id")? })
}
