//! Health of revisions: the last report of each agent about each revision.

use sindri_model::wire::{DeploymentHealth, HealthStatusUpdate};
use sindri_model::{AgentId, HealthId, RevisionId, StackId};

use crate::store::records::{RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::assigned;
use crate::store::sql::shared::lookup::as_missing_reference;
use crate::store::sql::shared::session::{Session, execute, fetch_all};
use crate::store::sql::shared::values::{Row, to_json, values};
use crate::store::sql::tables::{agents, revisions, stacks};

pub(crate) async fn record(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    update: HealthStatusUpdate,
) -> Result<(), StoreError> {
    agents::check_exists(session, agent).await?;
    for health in update.deployment_objects {
        let stored = revisions::get(session, health.id).await.map_err(as_missing_reference)?;
        if !assigned::is_assigned(session, agent, stored.revision.stack_id).await? {
            return Err(StoreError::MissingReference { kind: RecordKind::Revision, name: health.id.to_string() });
        }
        let sql = "INSERT INTO health (id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
                   ON CONFLICT (agent_id, revision_id)
                   DO UPDATE SET status = ?4, summary = ?5, checked_at = ?6, updated_at = ?7";
        let summary = health.summary.as_ref().map(to_json);
        let id = HealthId::generate(&context.entropy);
        execute(session, sql, values![id, agent, health.id, health.status, summary, health.checked_at, context.time])
            .await?;
    }
    Ok(())
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
