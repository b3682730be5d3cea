//! Deletes old records in small parts: each call is one short transaction.
//!
//! A record that a current target state needs stays, however old it is: the newest revision of each stack, removals that
//! are not confirmed, and the last report of each agent about both.

use crate::store::records::{RetentionCutoffs, StoreError};
use crate::store::sql::reports::proposals;
use crate::store::sql::shared::session::{Session, execute};
use crate::store::sql::shared::values::values;
use crate::store::sql::webhooks::deliveries;

/// Condition that a revision is in no target state.
macro_rules! is_superseded {
    () => {
        "NOT EXISTS (SELECT 1 FROM stacks WHERE stacks.id = revisions.stack_id AND newest = revisions.sequence)
         AND NOT EXISTS (SELECT 1 FROM assignments WHERE removal = revisions.sequence)"
    };
}

const EVENTS: &str = concat!(
    "DELETE FROM events WHERE position IN (
       SELECT position FROM events JOIN revisions ON revisions.id = events.revision_id
       WHERE created_at < ?1 AND (
         EXISTS (SELECT 1 FROM events AS later WHERE later.agent_id = events.agent_id
                 AND later.revision_id = events.revision_id AND later.position + 0 > events.position)
         OR (",
    is_superseded!(),
    ")) ORDER BY created_at LIMIT ?2)"
);
const AUDIT: &str =
    "DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)";
const HEALTH: &str = concat!(
    "DELETE FROM health WHERE id IN (
       SELECT health.id FROM health JOIN revisions ON revisions.id = health.revision_id
       WHERE updated_at < ?1 AND ",
    is_superseded!(),
    " ORDER BY updated_at LIMIT ?2)"
);
const APPROVALS: &str = concat!(
    "DELETE FROM approvals WHERE id IN (
       SELECT approvals.id FROM approvals JOIN revisions ON revisions.id = approvals.revision_id
       WHERE state <> 'pending' AND created_at < ?1 AND (
         EXISTS (SELECT 1 FROM approvals AS later WHERE later.agent_id = approvals.agent_id
                 AND later.revision_id = approvals.revision_id AND later.position > approvals.position)
         OR (",
    is_superseded!(),
    ")) ORDER BY approvals.id LIMIT ?2)"
);
const REVISIONS: &str = concat!(
    "DELETE FROM revisions WHERE sequence IN (
       SELECT sequence FROM revisions WHERE submitted_at < ?1 AND ",
    is_superseded!(),
    "  AND NOT EXISTS (SELECT 1 FROM events WHERE revision_id = revisions.id)
       AND NOT EXISTS (SELECT 1 FROM health WHERE revision_id = revisions.id)
       AND NOT EXISTS (SELECT 1 FROM approvals WHERE revision_id = revisions.id)
       AND NOT EXISTS (SELECT 1 FROM stack_status WHERE revision_id = revisions.id)
       ORDER BY submitted_at LIMIT ?2)"
);
const IDEMPOTENCY_KEYS: &str = "DELETE FROM requests WHERE (actor, idempotency_key) IN (
    SELECT actor, idempotency_key FROM requests WHERE at < ?1 ORDER BY at LIMIT ?2)";

/// Deletes at most `limit` records of each kind, and ends as many webhook messages that wait. Returns the number of these records. If
/// it is 0, there are no more.
pub(crate) async fn purge(session: &mut dyn Session, cutoffs: RetentionCutoffs, limit: i64) -> Result<u64, StoreError> {
    let RetentionCutoffs { events, audit, revisions, idempotency_keys, waiting_messages, expired_proposals } = cutoffs;
    // Reports before the revisions that they are about.
    let purges = [
        (events, EVENTS),
        (audit, AUDIT),
        (revisions, HEALTH),
        (revisions, APPROVALS),
        (revisions, REVISIONS),
        (idempotency_keys, IDEMPOTENCY_KEYS),
    ];
    let mut deleted = match waiting_messages {
        Some(before) => deliveries::abandon_old(session, before, limit).await?,
        None => 0,
    };
    if let Some(before) = expired_proposals {
        deleted += proposals::delete_expired(session, before, limit).await?;
    }
    for (before, sql) in purges {
        if let Some(before) = before {
            deleted += execute(session, sql, values![before, limit]).await?;
        }
    }
    Ok(deleted)
}
