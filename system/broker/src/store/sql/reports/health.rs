//! Health of revisions: the last report of each agent about each revision.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::wire::{
    DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusUpdate,
    StackDeploymentHealth, StackHealthResponse,
};
use sindri_model::{AgentId, HealthId, RevisionId, StackId};

use crate::store::records::{Page, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::session::{Session, execute_batch, failed, fetch_all, fetch_batch, single_column};
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

pub(crate) async fn read_revision(
    session: &mut dyn Session,
    revision: RevisionId,
    page: Page,
) -> Result<DeploymentHealthResponse, StoreError> {
    revisions::check_exists(session, revision).await?;
    let sql = "SELECT DISTINCT status FROM health WHERE revision_id = ?1";
    let statuses = fetch_all(session, sql, values![revision], single_column).await?;
    let sql = "SELECT id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at FROM health
               WHERE id IN (
                 SELECT id FROM (
                   SELECT id, sum(bytes) OVER (ORDER BY agent_id) - bytes AS bytes_before FROM (
                     SELECT id, agent_id, coalesce(octet_length(summary), 0) AS bytes FROM health
                     WHERE revision_id = ?1
                       AND (CAST(?2 AS TEXT) IS NULL OR agent_id > (SELECT agent_id FROM health WHERE id = ?2))
                     ORDER BY agent_id LIMIT ?3) AS candidates) AS sized
                 WHERE bytes_before < ?4)
               ORDER BY agent_id";
    let values = values![revision, page.after, page.limit, Page::TEXT_BYTES_MAX];
    Ok(DeploymentHealthResponse {
        deployment_object_id: revision,
        overall_status: HealthStatus::worst(statuses),
        health_records: fetch_all(session, sql, values, read).await?,
    })
}

/// A query of the last report of each agent about a stack; the arguments are the columns and the rest of the statement. It reads each
/// report about the stack once, and none about others.
macro_rules! last_reports {
    ($columns:literal, $rest:literal) => {
        concat!(
            $columns,
            " FROM (
                SELECT health.status, health.revision_id, revisions.sequence,
                  row_number() OVER (PARTITION BY health.agent_id ORDER BY revisions.sequence DESC) AS position
                FROM revisions JOIN health ON health.revision_id = revisions.id WHERE revisions.stack_id = ?1) AS reports
              WHERE position = 1 ",
            $rest
        )
    };
}

pub(crate) async fn read_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<StackHealthResponse, StoreError> {
    stacks::get(session, stack).await?;
    let sql = last_reports!("SELECT DISTINCT status", "");
    let statuses = fetch_all(session, sql, values![stack], single_column).await?;
    let sql = last_reports!(
        "SELECT revision_id, count(*) FILTER (WHERE status = 'healthy'), count(*) FILTER (WHERE status = 'unknown'),
           count(*) FILTER (WHERE status = 'degraded'), count(*) FILTER (WHERE status = 'failing')",
        "AND (CAST(?2 AS TEXT) IS NULL OR sequence > (SELECT revisions.sequence FROM revisions WHERE id = ?2))
         GROUP BY revision_id, sequence ORDER BY sequence LIMIT ?3"
    );
    Ok(StackHealthResponse {
        stack_id: stack,
        overall_status: HealthStatus::worst(statuses),
        deployment_objects: fetch_all(session, sql, values![stack, page.after, page.limit], read_counts).await?,
    })
}

fn read_counts(row: &mut Row) -> Result<StackDeploymentHealth, StoreError> {
    let id = row.take()?;
    let mut count = || usize::try_from(row.take::<i64>()?).map_err(failed);
    let (healthy_agents, unknown_agents, degraded_agents, failing_agents) = (count()?, count()?, count()?, count()?);
    let statuses = [
        (HealthStatus::Healthy, healthy_agents),
        (HealthStatus::Unknown, unknown_agents),
        (HealthStatus::Degraded, degraded_agents),
        (HealthStatus::Failing, failing_agents),
    ];
    let reported = statuses.into_iter().filter(|(_, agents)| *agents > 0).map(|(status, _)| status);
    let status = HealthStatus::worst(reported);
    Ok(StackDeploymentHealth { id, status, healthy_agents, degraded_agents, failing_agents })
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
