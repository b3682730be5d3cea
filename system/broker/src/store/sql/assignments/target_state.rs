//! The target state of one agent, and the record of what the agent has received.

use std::collections::BTreeSet;

use sindri_model::wire::{AgentStatus, SubmittingRequest, TargetVersion};
use sindri_model::{AgentId, Sequence};

use crate::store::records::{Page, RecordKind, StoreError, TargetRevision, TargetState};
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, execute, fetch_all, fetch_one, has_rows};
use crate::store::sql::shared::values::{Row, values};
use crate::store::sql::tables::revisions;

pub(crate) async fn get(session: &mut dyn Session, agent: AgentId) -> Result<TargetState, StoreError> {
    let state = read_without_revisions(session, agent).await?;
    Ok(TargetState { revisions: list_revisions(session, agent, false).await?, ..state })
}

/// Returns the target state after recording each of its stacks as received. Only the agent's own polls call this.
pub(crate) async fn deliver(session: &mut dyn Session, agent: AgentId) -> Result<TargetState, StoreError> {
    let state = read_without_revisions(session, agent).await?;
    record_receipt(session, agent).await?;
    // Only received stacks: a stack that was taken from the agent meanwhile is not delivered.
    Ok(TargetState { revisions: list_revisions(session, agent, true).await?, ..state })
}

/// Returns the target state like [`get`], with a page of what the agent has not applied.
pub(crate) async fn get_unapplied(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<TargetState, StoreError> {
    let state = read_without_revisions(session, agent).await?;
    Ok(TargetState { revisions: list_unapplied(session, agent, false, page).await?, ..state })
}

/// Returns the target state like [`deliver`], with a page of what the agent has not applied. The stacks of the other pages count as
/// received too: the agent may ask for them.
pub(crate) async fn deliver_unapplied(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<TargetState, StoreError> {
    let state = read_without_revisions(session, agent).await?;
    record_receipt(session, agent).await?;
    Ok(TargetState { revisions: list_unapplied(session, agent, true, page).await?, ..state })
}

/// Reads everything but the revisions.
async fn read_without_revisions(session: &mut dyn Session, agent: AgentId) -> Result<TargetState, StoreError> {
    // The version is read first: a change that is committed meanwhile has a higher version, and causes another poll.
    let TargetVersion { state: version, recheck: recheck_version } = get_versions(session, agent).await?;
    let (status, proposals) = get_status(session, agent).await?;
    let epoch = epoch::current(session).await?;
    Ok(TargetState { epoch, version, recheck_version, status, proposals, revisions: Vec::new() })
}

/// Records each stack of the target state as received.
async fn record_receipt(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    // A stack without a revision is not in the target state, and so not received. An idle poll writes nothing.
    let unreceived = "SELECT 1 FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                 WHERE agent_id = ?1 AND wanted = 1 AND received = 0 AND newest IS NOT NULL AND newest_is_marker = 0";
    if has_rows(session, unreceived, values![agent]).await? {
        let sql = "UPDATE assignments SET received = 1
                   WHERE agent_id = ?1 AND wanted = 1 AND received = 0 AND stack_id IN (
                     SELECT id FROM stacks WHERE newest IS NOT NULL AND newest_is_marker = 0)";
        execute(session, sql, values![agent]).await?;
    }
    Ok(())
}

/// Returns the status of an agent that is not deleted, and the number of the newest proposal that it has not answered.
async fn get_status(session: &mut dyn Session, agent: AgentId) -> Result<(AgentStatus, Option<Sequence>), StoreError> {
    let sql = "SELECT active, (SELECT max(position) FROM proposal_plans WHERE agent_id = ?1 AND failed IS NULL)
               FROM agents WHERE id = ?1 AND deleted_at IS NULL";
    let found = fetch_one(session, sql, values![agent], |row| Ok((row.take()?, row.take()?))).await?;
    require(found, RecordKind::Agent, agent)
}

/// Revisions and removals of a target state. The second parameter limits it to received stacks.
const TARGET_REVISIONS: &str = concat!(
    revisions::columns!(
        ", CASE WHEN reported = revisions.sequence THEN succeeded ELSE 0 END, request_id, traceparent, stacks.name
          FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
            JOIN revisions ON revisions.sequence = stacks.newest
          WHERE assignments.agent_id = ?1 AND wanted = 1 AND received >= ?2 AND newest_is_marker = 0
          UNION ALL "
    ),
    revisions::columns!(
        ", 0, request_id, traceparent, stacks.name
          FROM assignments JOIN revisions ON revisions.sequence = assignments.removal
            JOIN stacks ON stacks.id = assignments.stack_id
          WHERE assignments.agent_id = ?1 AND removal IS NOT NULL AND confirmed = 0"
    )
);

/// Page of the revisions and removals that the agent has not applied. The second parameter limits it to received stacks.
const UNAPPLIED_REVISIONS: &str = revisions::columns!(
    ", 0, request_id, traceparent, stacks.name
      FROM revisions JOIN stacks ON stacks.id = revisions.stack_id
      WHERE sequence IN (
        SELECT sequence FROM (
          SELECT sequence, sum(bytes) OVER (ORDER BY sequence) - bytes AS bytes_before FROM (
            SELECT sequence, octet_length(yaml_content) AS bytes FROM revisions
            WHERE sequence > coalesce((SELECT sequence FROM revisions WHERE id = ?3), 0) AND sequence IN (
              SELECT newest FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
              WHERE assignments.agent_id = ?1 AND wanted = 1 AND received >= ?2 AND newest_is_marker = 0
                AND CASE WHEN reported = newest THEN succeeded ELSE 0 END = 0
              UNION ALL
              SELECT removal FROM assignments
              WHERE assignments.agent_id = ?1 AND removal IS NOT NULL AND confirmed = 0)
            ORDER BY sequence LIMIT ?4) AS candidates) AS sized
        WHERE bytes_before < ?5)
      ORDER BY sequence"
);

/// Lists a page of the revisions and removals that the agent has not applied, by sequence.
async fn list_unapplied(
    session: &mut dyn Session,
    agent: AgentId,
    only_received: bool,
    page: Page,
) -> Result<Vec<TargetRevision>, StoreError> {
    let values = values![agent, only_received, page.after, page.limit, Page::TEXT_BYTES_MAX];
    let mut found = fetch_all(session, UNAPPLIED_REVISIONS, values, read).await?;
    found.iter_mut().try_for_each(|target: &mut TargetRevision| revisions::open(session, &mut target.revision))?;
    assert_one_per_stack(&found);
    Ok(found)
}

/// Lists revisions and removals by sequence. They are sorted here, because a database would copy whole bundles while
/// sorting.
async fn list_revisions(
    session: &mut dyn Session,
    agent: AgentId,
    only_received: bool,
) -> Result<Vec<TargetRevision>, StoreError> {
    let mut found = fetch_all(session, TARGET_REVISIONS, values![agent, only_received], read).await?;
    found.iter_mut().try_for_each(|target: &mut TargetRevision| revisions::open(session, &mut target.revision))?;
    found.sort_unstable_by_key(|target| target.revision.sequence_id);
    assert_one_per_stack(&found);
    Ok(found)
}

fn assert_one_per_stack(revisions: &[TargetRevision]) {
    let stacks: BTreeSet<_> = revisions.iter().map(|target| target.revision.stack_id).collect();
    assert_eq!(stacks.len(), revisions.len(), "a target state contains a stack twice");
}

pub(crate) async fn get_version(session: &mut dyn Session, agent: AgentId) -> Result<Sequence, StoreError> {
    Ok(get_versions(session, agent).await?.state)
}

pub(super) async fn get_versions(session: &mut dyn Session, agent: AgentId) -> Result<TargetVersion, StoreError> {
    let sql = "SELECT version, nudged FROM versions WHERE agent_id = ?1";
    let versions = fetch_one(session, sql, values![agent], |row| Ok((row.take()?, row.take()?))).await?;
    let (state, recheck) = versions.unwrap_or_default();
    Ok(TargetVersion { state, recheck })
}

fn read(row: &mut Row) -> Result<TargetRevision, StoreError> {
    let (mut revision, is_applied) = (revisions::read(row)?, row.take()?);
    let (id, traceparent): (Option<String>, Option<String>) = (row.take()?, row.take()?);
    revision.stack_name = row.take()?;
    Ok(TargetRevision { revision, is_applied, request: id.map(|id| SubmittingRequest { id, traceparent }) })
}
