//! Deletes old records in small parts: each call is one short transaction.
//!
//! A record that a current target state needs stays, however old it is: the newest revision of each stack, removals that
//! are not confirmed, and the last report of each agent about both. So does what an agent may have to remove: a deleted stack
//! until every agent has removed it, or was itself deleted as long ago.

use crate::store::records::{RetentionCutoffs, StoreError};
use crate::store::sql::reports::proposals;
use crate::store::sql::shared::counter;
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

/// Condition that the agent of a row was deleted.
macro_rules! is_of_deleted_agent {
    ($table:literal) => {
        concat!("EXISTS (SELECT 1 FROM agents WHERE agents.id = ", $table, ".agent_id AND deleted_at < ?1)")
    };
}

/// Condition that a stack was deleted and no agent may have to remove it.
macro_rules! is_removed_stack {
    () => {
        "deleted_at < ?1 AND NOT EXISTS (SELECT 1 FROM assignments WHERE assignments.stack_id = stacks.id)"
    };
}

/// The time of the report is in no index: it changes with every event.
const REMOVED_ASSIGNMENTS: &str = "DELETE FROM assignments WHERE (agent_id, stack_id) IN (
    SELECT agent_id, stack_id FROM assignments WHERE wanted = 0 AND confirmed = 1 AND reported_at < ?1
    ORDER BY agent_id, stack_id LIMIT ?2)";
const ASSIGNMENTS_OF_DELETED_AGENTS: &str = "DELETE FROM assignments WHERE (agent_id, stack_id) IN (
    SELECT agent_id, stack_id FROM assignments JOIN agents ON agents.id = agent_id
    WHERE agents.deleted_at < ?1 ORDER BY agents.deleted_at LIMIT ?2)";
/// Removed stacks refer to their deletion marker no more, so that it is superseded.
const NEWEST_OF_REMOVED_STACKS: &str = concat!(
    "UPDATE stacks SET newest = NULL WHERE id IN (SELECT id FROM stacks WHERE newest IS NOT NULL AND ",
    is_removed_stack!(),
    " ORDER BY deleted_at LIMIT ?2)"
);
const ANNOTATIONS_OF_REMOVED_STACKS: &str = concat!(
    "DELETE FROM stack_annotations WHERE id IN (
       SELECT stack_annotations.id FROM stack_annotations JOIN stacks ON stacks.id = stack_id WHERE ",
    is_removed_stack!(),
    " ORDER BY deleted_at LIMIT ?2)"
);
const STACKS: &str = concat!(
    "DELETE FROM stacks WHERE id IN (SELECT id FROM stacks WHERE newest IS NULL AND ",
    is_removed_stack!(),
    "  AND NOT EXISTS (SELECT 1 FROM revisions WHERE revisions.stack_id = stacks.id)
       AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals.stack_id = stacks.id)
       AND NOT EXISTS (SELECT 1 FROM proposals WHERE proposals.stack_id = stacks.id)
       AND NOT EXISTS (SELECT 1 FROM stack_annotations WHERE stack_annotations.stack_id = stacks.id)
       ORDER BY deleted_at LIMIT ?2)"
);
const VERSIONS_OF_DELETED_AGENTS: &str = "DELETE FROM versions WHERE agent_id IN (
    SELECT agents.id FROM agents JOIN versions ON versions.agent_id = agents.id
    WHERE deleted_at < ?1 ORDER BY deleted_at LIMIT ?2)";
const AGENTS: &str = "DELETE FROM agents WHERE id IN (
    SELECT id FROM agents WHERE deleted_at < ?1
      AND NOT EXISTS (SELECT 1 FROM assignments WHERE assignments.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM events WHERE events.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM health WHERE health.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM revisions WHERE revisions.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM proposal_plans WHERE proposal_plans.agent_id = agents.id)
      AND NOT EXISTS (SELECT 1 FROM versions WHERE versions.agent_id = agents.id)
    ORDER BY deleted_at LIMIT ?2)";
const GENERATORS: &str = "DELETE FROM generators WHERE id IN (
    SELECT id FROM generators WHERE deleted_at < ?1
      AND NOT EXISTS (SELECT 1 FROM stacks WHERE stacks.generator_id = generators.id)
    ORDER BY deleted_at LIMIT ?2)";
/// The record of a person who logs in with tokens stays: it locks the person out.
const ADMINS: &str = "DELETE FROM admins WHERE id IN (
    SELECT id FROM admins WHERE deleted_at < ?1 AND name NOT LIKE 'oidc:%' ORDER BY deleted_at LIMIT ?2)";

const EVENTS: &str = concat!(
    "DELETE FROM events WHERE position IN (
       SELECT position FROM events JOIN revisions ON revisions.id = events.revision_id
       WHERE created_at < ?1 AND (
         EXISTS (SELECT 1 FROM events AS later WHERE later.agent_id = events.agent_id
                 AND later.revision_id = events.revision_id AND later.position + 0 > events.position)
         OR ",
    is_of_deleted_agent!("events"),
    " OR (",
    is_superseded!(),
    ")) ORDER BY created_at LIMIT ?2)"
);
const AUDIT: &str =
    "DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)";
const HEALTH: &str = concat!(
    "DELETE FROM health WHERE id IN (
       SELECT health.id FROM health JOIN revisions ON revisions.id = health.revision_id
       WHERE updated_at < ?1 AND (",
    is_of_deleted_agent!("health"),
    " OR (",
    is_superseded!(),
    ")) ORDER BY updated_at LIMIT ?2)"
);
const APPROVALS: &str = concat!(
    "DELETE FROM approvals WHERE id IN (
       SELECT approvals.id FROM approvals JOIN revisions ON revisions.id = approvals.revision_id
       WHERE state <> 'pending' AND created_at < ?1 AND (
         EXISTS (SELECT 1 FROM approvals AS later WHERE later.agent_id = approvals.agent_id
                 AND later.revision_id = approvals.revision_id AND later.position > approvals.position)
         OR ",
    is_of_deleted_agent!("approvals"),
    " OR (",
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
    // Nothing begins to need a record, or refers to it, while it is deleted: other changes wait for the counter, and reports were
    // awaited.
    session.await_announced_events().await?;
    counter::lock(session).await?;
    // Each record after those that refer to it.
    let purges = [
        (revisions, REMOVED_ASSIGNMENTS),
        (revisions, ASSIGNMENTS_OF_DELETED_AGENTS),
        (revisions, NEWEST_OF_REMOVED_STACKS),
        (revisions, ANNOTATIONS_OF_REMOVED_STACKS),
        (events, EVENTS),
        (audit, AUDIT),
        (revisions, HEALTH),
        (revisions, APPROVALS),
        (revisions, REVISIONS),
        (revisions, STACKS),
        (revisions, VERSIONS_OF_DELETED_AGENTS),
        (revisions, AGENTS),
        (revisions, GENERATORS),
        (revisions, ADMINS),
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
