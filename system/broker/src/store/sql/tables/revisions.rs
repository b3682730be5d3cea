//! Rows of the table `revisions`: appended and never changed, except that a bundle may be encrypted, or encrypted with another
//! key.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, Checksum, RevisionId, Sequence, StackId};

use super::stacks;
use crate::store::bundle_cipher::{BundleCipher, ENCRYPTED, open_bundle};
use crate::store::records::{NewRevision, Page, RecordKind, RewriteBundle, StoreError, StoredRevision, WriteContext};
use crate::store::sql::shared::lookup::{require, require_that};
use crate::store::sql::shared::session::{Session, execute_batch, failed, fetch_all, fetch_one, has_rows};
use crate::store::sql::shared::values::{Row, row, values};

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
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

/// A revision with its sequence.
#[derive(Clone, Copy)]
pub(crate) struct NumberedRevision<'a> {
    pub context: &'a WriteContext,
    pub revision: &'a NewRevision,
    pub sequence: Sequence,
    pub only_for: Option<AgentId>,
}

/// The columns of `stacks` about its newest revision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewestSequence {
    pub sequence: Option<Sequence>,
    pub is_marker: bool,
    pub submitted_at: Option<Timestamp>,
    /// Number of revisions that were inserted at once, the newest included.
    pub count: i64,
}

/// Inserts revisions without updating assignments. A revision for all agents becomes the newest of its stack.
pub(crate) async fn insert(
    session: &mut dyn Session,
    revisions: &[NumberedRevision<'_>],
) -> Result<Vec<DeploymentObject>, StoreError> {
    let inserted: Vec<DeploymentObject> = revisions.iter().map(to_wire).collect();
    let cipher = session.bundle_cipher().filter(|cipher| cipher.encrypts_new()).cloned();
    let positions = count_within_stacks(revisions);
    let with_positions = inserted.iter().zip(revisions).zip(positions);
    let rows = with_positions.map(|((revision, NumberedRevision { only_for, context, .. }), position)| {
        let request = context.request.as_ref();
        let encrypt = |cipher: &BundleCipher| cipher.encrypt(&context.entropy, revision.id, &revision.yaml_content);
        let stored = cipher.as_ref().map_or_else(|| revision.yaml_content.clone(), encrypt);
        row![
            revision.sequence_id,
            revision.id,
            revision.stack_id,
            *only_for,
            stored,
            &revision.yaml_checksum,
            revision.submitted_at,
            revision.is_deletion_marker,
            request.map(|request| request.id.as_str()),
            request.and_then(|request| request.traceparent.as_deref()),
            position,
        ]
    });
    // The numbers of a batch follow the newest number, which is updated after all of them.
    let sql = "WITH batch (sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_marker,
                   request_id, traceparent, position)
                 AS ({BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, TEXT, BIGINT})
               INSERT INTO revisions
                 (sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_deletion_marker,
                   request_id, traceparent, number)
               SELECT sequence, id, stack_id, agent_id, yaml_content, yaml_checksum, submitted_at, is_marker,
                 request_id, traceparent,
                 (SELECT newest_number FROM stacks WHERE stacks.id = batch.stack_id) + position FROM batch";
    execute_batch(session, sql, rows.collect()).await?;
    let sql = "WITH batch (stack_id, sequence, is_marker, count, submitted_at)
                 AS ({TEXT, BIGINT, BIGINT, BIGINT, BIGINT})
               UPDATE stacks SET newest = batch.sequence, newest_is_marker = batch.is_marker,
                 newest_number = newest_number + batch.count, newest_at = batch.submitted_at
               FROM batch WHERE stacks.id = batch.stack_id";
    let newest = find_newest(revisions);
    let rows = newest
        .iter()
        .map(|(stack, newest)| row![*stack, newest.sequence, newest.is_marker, newest.count, newest.submitted_at]);
    execute_batch(session, sql, rows.collect()).await?;
    Ok(inserted)
}

/// Returns the position of each revision among those of its stack, from 1; `None` for those that are for one agent.
fn count_within_stacks(revisions: &[NumberedRevision<'_>]) -> Vec<Option<i64>> {
    let mut counts: BTreeMap<StackId, i64> = BTreeMap::new();
    let mut count = |revision: &NumberedRevision<'_>| {
        let count = counts.entry(revision.revision.stack).or_default();
        *count += i64::from(revision.only_for.is_none());
        revision.only_for.is_none().then_some(*count)
    };
    revisions.iter().map(&mut count).collect()
}

/// Returns the last revision of each stack that is for all agents.
pub(crate) fn find_newest(revisions: &[NumberedRevision<'_>]) -> BTreeMap<StackId, NewestSequence> {
    let for_all = revisions.iter().filter(|numbered| numbered.only_for.is_none());
    let mut newest: BTreeMap<StackId, NewestSequence> = BTreeMap::new();
    for NumberedRevision { context, revision, sequence, .. } in for_all {
        let count = newest.get(&revision.stack).map_or(0, |before| before.count) + 1;
        let (sequence, submitted_at, is_marker) = (Some(*sequence), Some(context.time), revision.is_deletion_marker);
        newest.insert(revision.stack, NewestSequence { sequence, is_marker, submitted_at, count });
    }
    newest
}

fn to_wire(NumberedRevision { context, revision, sequence, .. }: &NumberedRevision<'_>) -> DeploymentObject {
    DeploymentObject {
        id: revision.id,
        created_at: context.time,
        updated_at: context.time,
        deleted_at: None,
        sequence_id: *sequence,
        stack_id: revision.stack,
        yaml_content: revision.yaml_content.clone(),
        yaml_checksum: Checksum::compute(&revision.yaml_content),
        submitted_at: context.time,
        is_deletion_marker: revision.is_deletion_marker,
        stack_name: None,
    }
}

/// Lists the revisions of a stack, up to the largest size of a page.
pub(crate) async fn list(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<DeploymentObject>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = columns!(
        "FROM revisions WHERE sequence IN (
            SELECT sequence FROM (
              SELECT sequence, sum(bytes) OVER (ORDER BY sequence) - bytes AS bytes_before FROM (
                SELECT sequence, octet_length(yaml_content) AS bytes FROM revisions
                WHERE stack_id = ?1 AND agent_id IS NULL
                  AND sequence > coalesce((SELECT sequence FROM revisions WHERE id = ?2), 0)
                ORDER BY sequence LIMIT ?3) AS candidates) AS sized
            WHERE bytes_before < ?4)
          ORDER BY sequence"
    );
    let mut found = fetch_all(session, sql, values![stack, page.after, page.limit, Page::TEXT_BYTES_MAX], read).await?;
    found.iter_mut().try_for_each(|revision| open(session, revision))?;
    Ok(found)
}

/// Lists the revisions of a stack with an empty text in place of each bundle.
pub(crate) async fn list_without_content(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<DeploymentObject>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT id, sequence, stack_id, '', yaml_checksum, submitted_at, is_deletion_marker FROM revisions
               WHERE stack_id = ?1 AND agent_id IS NULL
                 AND sequence > coalesce((SELECT sequence FROM revisions WHERE id = ?2), 0)
               ORDER BY sequence LIMIT ?3";
    fetch_all(session, sql, values![stack, page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, revision: RevisionId) -> Result<StoredRevision, StoreError> {
    let sql = columns!(
        ", agent_id, (SELECT generator_id FROM stacks WHERE stacks.id = revisions.stack_id)
        FROM revisions WHERE id = ?1"
    );
    let found = fetch_one(session, sql, values![revision], read_stored).await?;
    let mut found = require(found, RecordKind::Revision, revision)?;
    open(session, &mut found.revision)?;
    Ok(found)
}

/// Checks that a revision exists, without reading it.
pub(crate) async fn check_exists(session: &mut dyn Session, revision: RevisionId) -> Result<(), StoreError> {
    let exists = has_rows(session, "SELECT 1 FROM revisions WHERE id = ?1", values![revision]).await?;
    require_that(exists, RecordKind::Revision, revision)
}

/// Replaces the stored text of a bundle by its plain text.
pub(crate) fn open(session: &dyn Session, revision: &mut DeploymentObject) -> Result<(), StoreError> {
    let stored = std::mem::take(&mut revision.yaml_content);
    revision.yaml_content = open_bundle(session.bundle_cipher(), revision.id, stored).map_err(failed)?;
    Ok(())
}

/// Largest sum of the stored texts that one transaction rewrites, unless a single one is larger.
const REWRITTEN_BYTES_MAX: i64 = 4 * 1024 * 1024;

/// Rewrites the stored texts of the next bundles; returns the last sequence that was read.
pub(crate) async fn rewrite(
    session: &mut dyn Session,
    after: Sequence,
    limit: i64,
    rewrite: RewriteBundle,
) -> Result<Option<Sequence>, StoreError> {
    let sql = "SELECT sequence, id, yaml_content FROM revisions WHERE sequence IN (
                 SELECT sequence FROM (
                   SELECT sequence, row_number() OVER (ORDER BY sequence) AS position,
                          sum(bytes) OVER (ORDER BY sequence) AS bytes_until FROM (
                     SELECT sequence, octet_length(yaml_content) AS bytes FROM revisions
                     WHERE sequence > ?1 ORDER BY sequence LIMIT ?2) AS candidates) AS sized
                 WHERE position = 1 OR bytes_until <= ?3)
               ORDER BY sequence";
    let read = |row: &mut Row| Ok((row.take()?, row.take()?, row.take()?));
    let found: Vec<(Sequence, RevisionId, String)> =
        fetch_all(session, sql, values![after, limit, REWRITTEN_BYTES_MAX], read).await?;
    let mut rows = Vec::new();
    for (sequence, id, stored) in &found {
        rows.extend(rewrite(*id, stored)?.map(|text| row![*sequence, text]));
    }
    if !rows.is_empty() {
        session.erase_replaced_content()?;
    }
    let sql = "WITH batch (sequence, yaml_content) AS ({BIGINT, TEXT})
               UPDATE revisions SET yaml_content = batch.yaml_content FROM batch
               WHERE revisions.sequence = batch.sequence";
    execute_batch(session, sql, rows).await?;
    Ok(found.last().map(|(sequence, ..)| *sequence))
}

/// Returns a revision with an encrypted bundle that is the newest of its stack, and its stored text.
pub(crate) async fn get_newest_encrypted(
    session: &mut dyn Session,
) -> Result<Option<(RevisionId, String)>, StoreError> {
    let sql = "SELECT revisions.id, yaml_content FROM stacks JOIN revisions ON revisions.sequence = stacks.newest
               WHERE substr(yaml_content, 1, 1) = ?1 ORDER BY sequence DESC LIMIT 1";
    fetch_one(session, sql, values![ENCRYPTED.to_string()], |row| Ok((row.take()?, row.take()?))).await
}

/// Reads a row. The bundle is the stored text, which [`open`] replaces by the plain one.
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
        stack_name: None,
    })
}

fn read_stored(row: &mut Row) -> Result<StoredRevision, StoreError> {
    Ok(StoredRevision { revision: read(row)?, only_for: row.take()?, generator: row.take()? })
}
