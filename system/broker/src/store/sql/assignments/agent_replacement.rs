//! What a deleted agent left in its cluster is the business of the next one that has its name there.
//!
//! What it was told to remove, the successor is told to remove. What nobody has spoken about since is kept on record as
//! received: to target it again goes on with it, to delete the stack or to take it away removes it, and silence removes
//! nothing.

use sindri_model::wire::Agent;
use sindri_model::{AgentId, StackId};

use crate::store::records::{Stamp, StoreError};
use crate::store::sql::assignments::matching;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Session, all, any, change, one, only, values};

/// The agent that was last deleted under this name in this cluster and left something.
///
/// Taking over changes what is wanted of an agent, so the counter is taken if there is one.
pub(crate) async fn predecessor(
    session: &mut dyn Session,
    name: &str,
    cluster_name: &str,
) -> Result<Option<AgentId>, StoreError> {
    let sql = "SELECT id FROM agents WHERE name = ?1 AND cluster_name = ?2 AND deleted_at IS NOT NULL AND EXISTS (
                 SELECT 1 FROM assignments WHERE agent_id = agents.id AND received = 1 AND confirmed = 0)
               ORDER BY deleted_at DESC, id DESC LIMIT 1";
    let found = one(session, sql, values![name, cluster_name], only).await?;
    if found.is_some() {
        epoch::tick(session).await?;
    }
    Ok(found)
}

/// Makes what an agent left the business of its successor; tells of how many stacks.
pub(crate) async fn take_over(
    session: &mut dyn Session,
    stamp: &Stamp,
    from: AgentId,
    successor: &Agent,
) -> Result<u64, StoreError> {
    let sql = "UPDATE assignments SET agent_id = ?1, reported = NULL, succeeded = 0, reported_at = NULL
               WHERE agent_id = ?2 AND received = 1 AND confirmed = 0";
    let taken = change(session, sql, values![successor.id, from]).await?;
    // An instruction that was for the other alone is said anew; the marker of a stack is for everyone.
    let sql = "SELECT assignments.stack_id FROM assignments
                 JOIN revisions ON revisions.sequence = assignments.removal
               WHERE assignments.agent_id = ?1 AND revisions.agent_id IS NOT NULL ORDER BY assignments.stack_id";
    for stack in all(session, sql, values![successor.id], only).await? {
        matching::tell_to_remove(session, stamp, (successor.id, stack)).await?;
    }
    if taken > 0 {
        matching::desired_set_changed(session, successor.id).await?;
    }
    Ok(taken)
}

/// Whether a stack was taken over and nobody has said since what is to become of it.
pub(crate) async fn is_undecided(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM assignments
               WHERE agent_id = ?1 AND stack_id = ?2 AND received = 1 AND wanted = 0 AND removal IS NULL";
    any(session, sql, values![agent, stack]).await
}
