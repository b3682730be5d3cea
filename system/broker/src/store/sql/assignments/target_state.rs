//! What is wanted of one agent, and what it has received.

use std::collections::BTreeSet;

use sindri_model::{AgentId, Sequence, StackId};

use crate::store::records::{DesiredObject, DesiredSet, StoreError};
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Row, Session, all, any, change, one, values};
use crate::store::sql::tables::revisions::{columns, read as read_revision};

pub(crate) async fn desired_set(session: &mut dyn Session, agent: AgentId) -> Result<DesiredSet, StoreError> {
    // The version first: what is committed in between comes with a higher one, and is asked for again.
    let (version, nudged) = versions_of(session, agent).await?;
    let status = agents::status_of(session, agent).await?;
    let epoch = epoch::current(session).await?;
    let objects = desired_objects(session, agent, false).await?;
    Ok(DesiredSet { epoch, version, nudged, status, objects })
}

/// The desired set, with a receipt for each stack in it. The agent's own polls come here, nobody else's.
pub(crate) async fn hand_out(session: &mut dyn Session, agent: AgentId) -> Result<DesiredSet, StoreError> {
    let (version, nudged) = versions_of(session, agent).await?;
    let status = agents::status_of(session, agent).await?;
    let epoch = epoch::current(session).await?;
    // A stack without a revision is not in the set, and so not received. An idle poll writes nothing.
    let fresh = "SELECT 1 FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                 WHERE agent_id = ?1 AND wanted = 1 AND received = 0 AND newest IS NOT NULL AND newest_is_marker = 0";
    if any(session, fresh, values![agent]).await? {
        let sql = "UPDATE assignments SET received = 1
                   WHERE agent_id = ?1 AND wanted = 1 AND received = 0 AND stack_id IN (
                     SELECT id FROM stacks WHERE newest IS NOT NULL AND newest_is_marker = 0)";
        change(session, sql, values![agent]).await?;
    }
    // Only what has its receipt: a stack that was taken away meanwhile is not handed out.
    let objects = desired_objects(session, agent, true).await?;
    Ok(DesiredSet { epoch, version, nudged, status, objects })
}

/// With a second value that is true only what was received, else everything.
const DESIRED: &str = concat!(
    columns!(
        ", CASE WHEN reported = revisions.sequence THEN succeeded ELSE 0 END
          FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
            JOIN revisions ON revisions.sequence = stacks.newest
          WHERE assignments.agent_id = ?1 AND wanted = 1 AND received >= ?2 AND newest_is_marker = 0
          UNION ALL "
    ),
    columns!(
        ", 0 FROM assignments JOIN revisions ON revisions.sequence = assignments.removal
          WHERE assignments.agent_id = ?1 AND removal IS NOT NULL AND confirmed = 0"
    )
);

/// In the order of their sequence. A database would carry whole bundles through its sorting.
async fn desired_objects(
    session: &mut dyn Session,
    agent: AgentId,
    is_received: bool,
) -> Result<Vec<DesiredObject>, StoreError> {
    let mut objects = all(session, DESIRED, values![agent, is_received], read).await?;
    objects.sort_unstable_by_key(|desired| desired.object.sequence_id);
    assert_consistent(&objects);
    Ok(objects)
}

fn assert_consistent(objects: &[DesiredObject]) {
    let stacks: BTreeSet<_> = objects.iter().map(|desired| desired.object.stack_id).collect();
    assert_eq!(stacks.len(), objects.len(), "a stack is wanted and to be removed at once");
}

pub(crate) async fn version_of(session: &mut dyn Session, agent: AgentId) -> Result<Sequence, StoreError> {
    Ok(versions_of(session, agent).await?.0)
}

async fn versions_of(session: &mut dyn Session, agent: AgentId) -> Result<(Sequence, Sequence), StoreError> {
    let sql = "SELECT version, nudged FROM versions WHERE agent_id = ?1";
    let versions = one(session, sql, values![agent], |row| Ok((row.take()?, row.take()?))).await?;
    Ok(versions.unwrap_or_default())
}

pub(crate) async fn concerns(session: &mut dyn Session, agent: AgentId, stack: StackId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM assignments WHERE agent_id = ?1 AND stack_id = ?2";
    any(session, sql, values![agent, stack]).await
}

fn read(row: &mut Row) -> Result<DesiredObject, StoreError> {
    Ok(DesiredObject { object: read_revision(row)?, is_done: row.take()? })
}
