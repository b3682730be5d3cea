//! Health of revisions: the last report of each agent about each revision.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::wire::{DeploymentHealth, DeploymentObjectHealthUpdate, HealthStatusUpdate};
use sindri_model::{AgentId, HealthId, RevisionId, StackId};

use crate::store::records::{RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::session::{Session, execute_batch, fetch_all, fetch_batch, single_column};
use crate::store::sql::shared::values::{Row, row, to_json, values};
use crate::store::sql::tables::{agents, revisions, stacks};

pub(crate) async fn record(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    update: HealthStatusUpdate,
) -> Result<(), StoreError> {
    session.announce_event().await?;
    agents::check_reporter(session, agent, context.process.as_deref()).await?;
    // The last report about a revision counts, as if each were recorded after the one before it.
    let reports: BTreeMap<RevisionId, DeploymentObjectHealthUpdate> =
        update.deployment_objects.into_iter().map(|health| (health.id, health)).collect();
    let sql = "WITH batch (agent_id, revision_id) AS ({TEXT, TEXT})
               SELECT revisions.id FROM batch JOIN revisions ON revisions.id = batch.revision_id
                 JOIN assignments ON assignments.stack_id = revisions.stack_id
                   AND assignments.agent_id = batch.agent_id";
    let rows = reports.keys().map(|revision| row![agent, *revision]).collect();
    let known: BTreeSet<RevisionId> = fetch_batch(session, sql, rows, single_column).await?.into_iter().collect();
    if let Some(missing) = reports.keys().find(|revision| !known.contains(revision)) {
        return Err(StoreError::MissingReference { kind: RecordKind::Revision, name: missing.to_string() });
    }
    let sql = "WITH batch (id, agent_id, revision_id, status, summary, checked_at, at)
                 AS ({TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT})
               INSERT INTO health (id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at)
               SELECT id, agent_id, revision_id, status, summary, checked_at, at, at FROM batch WHERE true
               ON CONFLICT (agent_id, revision_id) DO UPDATE SET status = excluded.status,
                 summary = excluded.summary, checked_at = excluded.checked_at, updated_at = excluded.updated_at";
    let rows = reports.into_values().map(|health| {
        let id = HealthId::generate(&context.entropy);
        let summary = health.summary.as_ref().map(to_json);
        row![id, agent, health.id, health.status, summary, health.checked_at, context.time]
    });
    execute_batch(session, sql, rows.collect()).await
}

pub(crate) async fn list_of_revision(
    session: &mut dyn Session,
    revision: RevisionId,
) -> Result<Vec<DeploymentHealth>, StoreError> {
    revisions::get(session, revision).await?;
    let sql = "SELECT id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at FROM health
               WHERE revision_id = ?1 ORDER BY agent_id";
    fetch_all(session, sql, values![revision], read).await
}

pub(crate) async fn list_of_stack(
    session: &mut dyn Session,
    stack: StackId,
) -> Result<Vec<DeploymentHealth>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT health.id, health.agent_id, revision_id, status, summary, checked_at, created_at, updated_at
               FROM health JOIN revisions ON revisions.id = health.revision_id
               WHERE revisions.stack_id = ?1 AND revisions.sequence = (
                 SELECT max(r.sequence) FROM health h JOIN revisions r ON r.id = h.revision_id
                 WHERE r.stack_id = ?1 AND h.agent_id = health.agent_id)
               ORDER BY revisions.sequence, health.agent_id";
    fetch_all(session, sql, values![stack], read).await
}

fn read(row: &mut Row) -> Result<DeploymentHealth, StoreError> {
    Ok(DeploymentHealth {
        id: row.take()?,
        agent_id: row.take()?,
        deployment_object_id: row.take()?,
        status: row.take()?,
        summary: row.take_json_or_null()?,
        checked_at: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}
