//! What agents say about the health of what they applied: the last word of each about each revision.

use sindri_model::wire::{DeploymentHealth, HealthStatusUpdate};
use sindri_model::{AgentId, HealthId, RevisionId, StackId};

use crate::store::records::{Noun, Stamp, StoreError};
use crate::store::sql::assignments::target_state;
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::lookup::as_reference;
use crate::store::sql::shared::session::{Row, Session, all, change, json_text, values};
use crate::store::sql::stacks::lifecycle as stacks;
use crate::store::sql::tables::revisions;

pub(crate) async fn record(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    update: HealthStatusUpdate,
) -> Result<(), StoreError> {
    agents::require(session, agent).await?;
    for said in update.deployment_objects {
        let record = revisions::get(session, said.id).await.map_err(as_reference)?;
        if !target_state::concerns(session, agent, record.object.stack_id).await? {
            return Err(StoreError::MissingReference { noun: Noun::Revision, name: said.id.to_string() });
        }
        let sql = "INSERT INTO health (id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
                   ON CONFLICT (agent_id, revision_id)
                   DO UPDATE SET status = ?4, summary = ?5, checked_at = ?6, updated_at = ?7";
        let summary = said.summary.as_ref().map(json_text);
        let id = HealthId::mint(&stamp.entropy);
        change(session, sql, values![id, agent, said.id, said.status, summary, said.checked_at, stamp.at]).await?;
    }
    Ok(())
}

pub(crate) async fn of_revision(
    session: &mut dyn Session,
    revision: RevisionId,
) -> Result<Vec<DeploymentHealth>, StoreError> {
    revisions::get(session, revision).await?;
    let sql = "SELECT id, agent_id, revision_id, status, summary, checked_at, created_at, updated_at FROM health
               WHERE revision_id = ?1 ORDER BY agent_id";
    all(session, sql, values![revision], read).await
}

pub(crate) async fn of_stack(session: &mut dyn Session, stack: StackId) -> Result<Vec<DeploymentHealth>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT health.id, health.agent_id, revision_id, status, summary, checked_at, created_at, updated_at
               FROM health JOIN revisions ON revisions.id = health.revision_id
               WHERE revisions.stack_id = ?1 AND revisions.sequence = (
                 SELECT max(r.sequence) FROM health h JOIN revisions r ON r.id = h.revision_id
                 WHERE r.stack_id = ?1 AND h.agent_id = health.agent_id)
               ORDER BY revisions.sequence, health.agent_id";
    all(session, sql, values![stack], read).await
}

fn read(row: &mut Row) -> Result<DeploymentHealth, StoreError> {
    Ok(DeploymentHealth {
        id: row.take()?,
        agent_id: row.take()?,
        deployment_object_id: row.take()?,
        status: row.take()?,
        summary: row.json_or_none()?,
        checked_at: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}
