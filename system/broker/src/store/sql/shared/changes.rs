//! Record of the changes that invalidate what brokers cache.
//!
//! Each change is written to a table, where brokers on the same database find it, and added to the transaction's own
//! list, which the store publishes at the commit.

use std::collections::BTreeMap;

use sindri_model::{AgentId, Sequence};

use super::counter;
use super::session::{Session, execute, execute_batch, fetch_all, single_column};
use super::values::{Row, row, values};
use crate::store::records::{ChangesSince, StoreChange, StoreError};

const KEYS: &str = "keys";
const EPOCH: &str = "epoch";

/// Records that a key was deleted, or allows something else.
pub(crate) async fn record_key_change(session: &mut dyn Session) -> Result<(), StoreError> {
    record_subject(session, KEYS, StoreChange::Keys).await.map(drop)
}

/// Records that an epoch began, and returns the number of that change.
pub(crate) async fn record_epoch_change(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    record_subject(session, EPOCH, StoreChange::Epoch).await
}

/// Records that a webhook message waits to be sent. It is not written to a table: brokers look for messages
/// periodically, and this only saves them the wait.
pub(crate) fn record_delivery_change(session: &mut dyn Session) {
    add(session, StoreChange::Deliveries);
}

/// Records that the target state or the status of an agent changed, as of the next number of the counter.
pub(crate) async fn record_target_change(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let version = counter::next_number(session).await?;
    record_target_change_at(session, agent, version).await
}

/// Records that the target state or the status of an agent changed, as of a number that the transaction has taken.
pub(crate) async fn record_target_change_at(
    session: &mut dyn Session,
    agent: AgentId,
    version: Sequence,
) -> Result<(), StoreError> {
    record_target_changes(session, BTreeMap::from([(agent, version)])).await
}

/// Records that the target states of some agents changed, each with its new version.
pub(crate) async fn record_target_changes(
    session: &mut dyn Session,
    versions: BTreeMap<AgentId, Sequence>,
) -> Result<(), StoreError> {
    // WHERE true: without it SQLite parses ON CONFLICT as the condition of a join.
    let sql = "WITH batch (agent_id, version) AS ({TEXT, BIGINT})
               INSERT INTO versions (agent_id, version) SELECT agent_id, version FROM batch WHERE true
               ON CONFLICT (agent_id) DO UPDATE SET version = excluded.version";
    execute_batch(session, sql, versions.iter().map(|(agent, version)| row![*agent, *version]).collect()).await?;
    session.changes().extend(versions.into_iter().map(|(agent, version)| StoreChange::TargetState(agent, version)));
    Ok(())
}

/// Makes agents run a new pass although their target states are the same: each gets a full response to its next poll.
pub(crate) async fn request_recheck(
    session: &mut dyn Session,
    agents: &[AgentId],
    version: Sequence,
) -> Result<(), StoreError> {
    let sql = "WITH batch (agent_id, version) AS ({TEXT, BIGINT})
               INSERT INTO versions (agent_id, version, nudged) SELECT agent_id, version, version FROM batch WHERE true
               ON CONFLICT (agent_id) DO UPDATE SET version = excluded.version, nudged = excluded.nudged";
    execute_batch(session, sql, agents.iter().map(|agent| row![*agent, version]).collect()).await?;
    session.changes().extend(agents.iter().map(|agent| StoreChange::TargetState(*agent, version)));
    Ok(())
}

async fn record_subject(
    session: &mut dyn Session,
    subject: &'static str,
    change: StoreChange,
) -> Result<Sequence, StoreError> {
    let version = counter::next_number(session).await?;
    let sql = "INSERT INTO changes (subject, version) VALUES (?1, ?2)
               ON CONFLICT (subject) DO UPDATE SET version = ?2";
    execute(session, sql, values![subject, version]).await?;
    add(session, change);
    Ok(version)
}

fn add(session: &mut dyn Session, change: StoreChange) {
    let changes = session.changes();
    if !changes.contains(&change) {
        changes.push(change);
    }
}

/// Returns the recorded changes after a position of the counter.
pub(crate) async fn list_since(session: &mut dyn Session, latest: Sequence) -> Result<ChangesSince, StoreError> {
    // The counter is read first: a change that is committed after that is found again by the next call.
    let now = counter::last_number(session).await?;
    let sql = "SELECT agent_id, version FROM versions WHERE version > ?1 ORDER BY version";
    let mut changes = fetch_all(session, sql, values![latest], read_version).await?;
    let sql = "SELECT DISTINCT agent_id FROM proposal_plans WHERE position > ?1 ORDER BY agent_id";
    let proposed: Vec<AgentId> = fetch_all(session, sql, values![latest], single_column).await?;
    changes.extend(proposed.into_iter().map(StoreChange::Proposal));
    let sql = "SELECT subject FROM changes WHERE version > ?1";
    let subjects = fetch_all(session, sql, values![latest], single_column).await?;
    changes.extend(subjects.into_iter().filter_map(|subject: String| match subject.as_str() {
        KEYS => Some(StoreChange::Keys),
        EPOCH => Some(StoreChange::Epoch),
        _ => None,
    }));
    Ok(ChangesSince { latest: now, changes })
}

fn read_version(row: &mut Row) -> Result<StoreChange, StoreError> {
    Ok(StoreChange::TargetState(row.take()?, row.take()?))
}
