//! History of a stack: its revisions with their numbers, newest first.

use sindri_model::StackId;
use sindri_model::wire::RevisionSummary;

use crate::store::bundle_cipher::ENCRYPTED;
use crate::store::records::{Page, StoreError};
use crate::store::sql::shared::session::{Session, fetch_all};
use crate::store::sql::shared::values::{Row, values};
use crate::store::sql::tables::stacks;

/// The size of an encrypted bundle is not known. A broker from before numbers were stored may have submitted a revision without one.
pub(crate) async fn list(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<RevisionSummary>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT id, coalesce(number, (
                   SELECT count(*) FROM revisions AS earlier WHERE earlier.stack_id = revisions.stack_id
                     AND earlier.agent_id IS NULL AND earlier.sequence <= revisions.sequence)), sequence, submitted_at, yaml_checksum,
                 CASE WHEN substr(yaml_content, 1, 1) = ?4 THEN NULL ELSE octet_length(yaml_content) END,
                 is_deletion_marker
               FROM revisions WHERE stack_id = ?1 AND agent_id IS NULL
                 AND (CAST(?2 AS TEXT) IS NULL OR sequence < (SELECT sequence FROM revisions WHERE id = ?2))
               ORDER BY sequence DESC LIMIT ?3";
    fetch_all(session, sql, values![stack, page.after, page.limit, ENCRYPTED.to_string()], read).await
}

fn read(row: &mut Row) -> Result<RevisionSummary, StoreError> {
    Ok(RevisionSummary {
        id: row.take()?,
        number: row.take()?,
        sequence_id: row.take()?,
        submitted_at: row.take()?,
        yaml_checksum: row.take()?,
        bytes: row.take()?,
        is_deletion_marker: row.take()?,
    })
}
