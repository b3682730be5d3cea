//! Replacement of a deleted agent: a new agent with its name in its cluster takes over the stacks that it left there.
//!
//! Removals that the deleted agent had not confirmed become removals of its successor. Its other stacks stay on record
//! as received: targeting such a stack again continues with it, deleting the stack or its target removes it, and
//! without either nothing is removed.

use sindri_model::wire::Agent;
use sindri_model::{AgentId, StackId};

use super::matching;
use crate::store::records::{StoreError, WriteContext};
use crate::store::sql::shared::session::{Session, execute, fetch_all, fetch_one, has_rows, single_column};
use crate::store::sql::shared::values::values;
use crate::store::sql::shared::{changes, counter};

/// Returns the last deleted agent with this name in this cluster that left a stack there.
///
/// Takes a number of the counter if there is one, because taking over changes the target state of its successor.
pub(crate) async fn find_predecessor(
    session: &mut dyn Session,
    name: &str,
    cluster_name: &str,
) -> Result<Option<AgentId>, StoreError> {
    let sql = "SELECT id FROM agents WHERE name = ?1 AND cluster_name = ?2 AND deleted_at IS NOT NULL AND EXISTS (
                 SELECT 1 FROM assignments WHERE agent_id = agents.id AND received = 1 AND confirmed = 0)
               ORDER BY deleted_at DESC, id DESC LIMIT 1";
    let predecessor = fetch_one(session, sql, values![name, cluster_name], single_column).await?;
    if predecessor.is_some() {
        counter::next_number(session).await?;
    }
    Ok(predecessor)
}

/// Moves the stacks that an agent left to its successor, and returns their number.
pub(crate) async fn take_over(
    session: &mut dyn Session,
    context: &WriteContext,
    from: AgentId,
    successor: &Agent,
) -> Result<u64, StoreError> {
    // A report may have arrived while the agent was deleted.
    execute(session, "DELETE FROM stack_status WHERE agent_id = ?1", values![from]).await?;
    let sql = "UPDATE assignments SET agent_id = ?1, reported = NULL, succeeded = 0, reported_at = NULL,
                 status_sequence = NULL, status_summary = NULL
               WHERE agent_id = ?2 AND received = 1 AND confirmed = 0";
    let taken = execute(session, sql, values![successor.id, from]).await?;
    // A removal for the predecessor alone is issued again; the deletion marker of a stack is valid for every agent.
    let sql = "SELECT assignments.stack_id FROM assignments
                 JOIN revisions ON revisions.sequence = assignments.removal
               WHERE assignments.agent_id = ?1 AND revisions.agent_id IS NOT NULL ORDER BY assignments.stack_id";
    let stacks: Vec<StackId> = fetch_all(session, sql, values![successor.id], single_column).await?;
    let pairs = stacks.into_iter().map(|stack| (successor.id, stack)).collect();
    matching::issue_removals(session, context, &pairs).await?;
    if taken > 0 {
        changes::record_target_change(session, successor.id).await?;
    }
    Ok(taken)
}

/// Returns true if a stack was taken over and is neither targeted nor to be removed since.
pub(crate) async fn is_left_over(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM assignments
               WHERE agent_id = ?1 AND stack_id = ?2 AND received = 1 AND wanted = 0 AND removal IS NULL";
    has_rows(session, sql, values![agent, stack]).await
}
