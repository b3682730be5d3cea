//! Revisions of stacks: appended, and never changed.

use serde_json::json;
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, Checksum, GeneratorId, RevisionId, Sequence, StackId};

use super::announce::{Happening, announce};
use super::session::{Row, Session, all, change, failed, one, only, values};
use super::{audit, epoch, found, matching, once, stacks};
use crate::store::{NewRevision, Noun, Page, RevisionRecord, Stamp, StoreError};
use crate::webhooks::subscription::EventType;

const WHAT: &str = "deployment_object";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT revisions.id, revisions.sequence, revisions.stack_id, revisions.yaml_content,
                    revisions.yaml_checksum, revisions.submitted_at, revisions.is_deletion_marker ",
            $rest
        )
    };
}
pub(super) use columns;

/// Everything is checked before anything is written: several of these may share a transaction.
pub(crate) async fn append(
    session: &mut dyn Session,
    stamp: Stamp,
    revision: NewRevision,
) -> Result<DeploymentObject, StoreError> {
    if let Some(before) = once::made_before(session, &stamp, WHAT).await? {
        return Ok(get(session, before.parse().map_err(failed)?).await?.object);
    }
    let sql = "SELECT generator_id FROM stacks WHERE id = ?1 AND deleted_at IS NULL";
    let generator: GeneratorId =
        found(one(session, sql, values![revision.stack], only).await?, Noun::Stack, revision.stack)?;
    let sequence = epoch::tick(session).await?;
    let object = append_row(session, &stamp, &revision, sequence, None).await?;
    matching::revision_was_appended(session, &revision, sequence).await?;
    once::remember(session, &stamp, WHAT, revision.id).await?;
    let data = json!({
        "deployment_object_id": revision.id,
        "stack_id": revision.stack,
        "generator_id": generator,
        "sequence_id": sequence,
        "yaml_checksum": object.yaml_checksum,
        "is_deletion_marker": revision.is_deletion_marker,
    });
    audit::record(
        session,
        &stamp,
        "deployment_object.created",
        WHAT,
        Some(revision.id.to_string()),
        Some(data.clone()),
    )
    .await?;
    let happening = Happening { event: EventType::DeploymentCreated, agent: None, stack: Some(revision.stack), data };
    announce(session, &stamp, happening).await?;
    Ok(object)
}

/// The row alone. What is for all agents becomes the newest of its stack.
pub(super) async fn append_row(
    session: &mut dyn Session,
    stamp: &Stamp,
    revision: &NewRevision,
    sequence: Sequence,
    only_for: Option<AgentId>,
) -> Result<DeploymentObject, StoreError> {
    let checksum = Checksum::of(&revision.yaml_content);
    let sql = "INSERT INTO revisions
                 (sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_deletion_marker)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let row = values![
        sequence,
        revision.id,
        revision.stack,
        only_for,
        &revision.yaml_content,
        &checksum,
        stamp.at,
        revision.is_deletion_marker,
    ];
    change(session, sql, row).await?;
    if only_for.is_none() {
        let sql = "UPDATE stacks SET newest = ?1, newest_is_marker = ?2 WHERE id = ?3";
        change(session, sql, values![sequence, revision.is_deletion_marker, revision.stack]).await?;
    }
    Ok(DeploymentObject {
        id: revision.id,
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        sequence_id: sequence,
        stack_id: revision.stack,
        yaml_content: revision.yaml_content.clone(),
        yaml_checksum: checksum,
        submitted_at: stamp.at,
        is_deletion_marker: revision.is_deletion_marker,
    })
}

pub(crate) async fn list(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<DeploymentObject>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = columns!(
        "FROM revisions WHERE stack_id = ?1 AND agent_id IS NULL
          AND sequence > coalesce((SELECT sequence FROM revisions WHERE id = ?2), 0) ORDER BY sequence LIMIT ?3"
    );
    all(session, sql, values![stack, page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, revision: RevisionId) -> Result<RevisionRecord, StoreError> {
    let sql = columns!(
        ", agent_id, (SELECT generator_id FROM stacks WHERE stacks.id = revisions.stack_id)
        FROM revisions WHERE id = ?1"
    );
    found(one(session, sql, values![revision], read_record).await?, Noun::Revision, revision)
}

pub(super) fn read(row: &mut Row) -> Result<DeploymentObject, StoreError> {
    let (id, sequence_id, stack_id) = (row.take()?, row.take()?, row.take()?);
    let (yaml_content, yaml_checksum, submitted_at) = (row.take()?, row.take()?, row.take()?);
    Ok(DeploymentObject {
        id,
        created_at: submitted_at,
        updated_at: submitted_at,
        deleted_at: None,
        sequence_id,
        stack_id,
        yaml_content,
        yaml_checksum,
        submitted_at,
        is_deletion_marker: row.take()?,
    })
}

fn read_record(row: &mut Row) -> Result<RevisionRecord, StoreError> {
    Ok(RevisionRecord { object: read(row)?, only_for: row.take()?, generator: row.take()? })
}
