//! Checks that a stack is assigned to an agent.

use sindri_model::{AgentId, RevisionId, Sequence, StackId};

use crate::store::records::{RecordKind, StoreError};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, fetch_one, has_rows};
use crate::store::sql::shared::values::values;

/// Returns true if a stack is, or once was, assigned to an agent.
pub(crate) async fn is_assigned(session: &mut dyn Session, agent: AgentId, stack: StackId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM assignments WHERE agent_id = ?1 AND stack_id = ?2";
    has_rows(session, sql, values![agent, stack]).await
}

/// Checks that a stack is assigned to an agent and that the revision belongs to both. Returns true if the agent has
/// removed the stack, or no longer has to carry out the removal that the revision is, and the sequence of the revision.
pub(crate) async fn check_revision(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
) -> Result<(bool, Sequence), StoreError> {
    let sql = "SELECT CASE WHEN is_deletion_marker = 1 AND (removal IS NULL OR removal <> sequence) THEN 1 ELSE confirmed END,
                 sequence FROM assignments
                 LEFT JOIN revisions ON revisions.id = ?3 AND revisions.stack_id = assignments.stack_id
                   AND (revisions.agent_id IS NULL OR revisions.agent_id = assignments.agent_id)
               WHERE assignments.agent_id = ?1 AND assignments.stack_id = ?2";
    let row = fetch_one(session, sql, values![agent, stack, revision], |row| Ok((row.take()?, row.take()?))).await?;
    let (is_removed, sequence): (bool, Option<Sequence>) = require(row, RecordKind::Stack, stack)?;
    let missing = || StoreError::MissingReference { kind: RecordKind::Revision, name: revision.to_string() };
    Ok((is_removed, sequence.ok_or_else(missing)?))
}
