//! Revisions of stacks: appended, and never changed.

use std::collections::BTreeMap;

use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, Checksum, RevisionId, Sequence, StackId};

use crate::store::records::{NewRevision, Noun, Page, RevisionRecord, Stamp, StoreError};
use crate::store::sql::assignments::matching::Newest;
use crate::store::sql::shared::lookup::found;
use crate::store::sql::shared::session::{Row, Session, all, change_each, one, row, values};
use crate::store::sql::stacks::lifecycle as stacks;

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
pub(crate) use columns;

/// A revision with its number.
#[derive(Clone, Copy)]
pub(crate) struct Appended<'a> {
    pub stamp: &'a Stamp,
    pub revision: &'a NewRevision,
    pub sequence: Sequence,
    pub only_for: Option<AgentId>,
}

/// The rows, and nothing of what follows from them. What is for all agents becomes the newest of its stack.
pub(crate) async fn insert(
    session: &mut dyn Session,
    appended: &[Appended<'_>],
) -> Result<Vec<DeploymentObject>, StoreError> {
    let objects: Vec<DeploymentObject> = appended.iter().map(object).collect();
    let rows = objects.iter().zip(appended).map(|(object, Appended { only_for, .. })| {
        row![
            object.sequence_id,
            object.id,
            object.stack_id,
            *only_for,
            &object.yaml_content,
            &object.yaml_checksum,
            object.submitted_at,
            object.is_deletion_marker,
        ]
    });
    let sql = "WITH batch (sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_marker)
                 AS ({BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT})
               INSERT INTO revisions
                 (sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_deletion_marker)
               SELECT * FROM batch";
    change_each(session, sql, rows.collect()).await?;
    let sql = "WITH batch (stack_id, sequence, is_marker) AS ({TEXT, BIGINT, BIGINT})
               UPDATE stacks SET newest = batch.sequence, newest_is_marker = batch.is_marker
               FROM batch WHERE stacks.id = batch.stack_id";
    let newest = newest_of(appended);
    let rows = newest.iter().map(|(stack, newest)| row![*stack, newest.sequence, newest.is_marker]);
    change_each(session, sql, rows.collect()).await?;
    Ok(objects)
}

/// The last of each stack, of those that are for all agents.
pub(crate) fn newest_of(appended: &[Appended<'_>]) -> BTreeMap<StackId, Newest> {
    let for_all = appended.iter().filter(|appended| appended.only_for.is_none());
    for_all
        .map(|Appended { revision, sequence, .. }| {
            (revision.stack, Newest { sequence: Some(*sequence), is_marker: revision.is_deletion_marker })
        })
        .collect()
}

fn object(Appended { stamp, revision, sequence, .. }: &Appended<'_>) -> DeploymentObject {
    DeploymentObject {
        id: revision.id,
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        sequence_id: *sequence,
        stack_id: revision.stack,
        yaml_content: revision.yaml_content.clone(),
        yaml_checksum: Checksum::of(&revision.yaml_content),
        submitted_at: stamp.at,
        is_deletion_marker: revision.is_deletion_marker,
    }
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

pub(crate) fn read(row: &mut Row) -> Result<DeploymentObject, StoreError> {
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
