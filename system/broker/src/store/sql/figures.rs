//! Counts of records for metrics. Each is of a bounded table, or stops at a limit.

use super::shared::session::{Session, fetch_one};
use super::shared::values::{Row, values};
use crate::store::records::{COUNTED_MAX, RecordCounts, StoreError, StoreFigures};

pub(crate) async fn read_all(session: &mut dyn Session) -> Result<StoreFigures, StoreError> {
    let sql = "SELECT
                 (SELECT count(*) FROM agents WHERE active = 1 AND deleted_at IS NULL
                    AND is_offline = 0 AND last_heartbeat IS NOT NULL),
                 (SELECT count(*) FROM agents WHERE active = 1 AND deleted_at IS NULL AND is_offline = 1),
                 coalesce(sum(CASE WHEN reported = newest THEN 0 ELSE 1 END), 0),
                 coalesce(sum(CASE WHEN reported = newest AND succeeded = 0 THEN 1 ELSE 0 END), 0),
                 (SELECT count(*) FROM (SELECT 1 FROM approvals WHERE state = 'pending' LIMIT ?1) AS pending),
                 (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE completed_at IS NULL LIMIT ?1) AS queued)
               FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
               WHERE wanted = 1 AND newest IS NOT NULL AND newest_is_marker = 0";
    Ok(fetch_one(session, sql, values![COUNTED_MAX], read).await?.unwrap_or_default())
}

pub(crate) async fn count_records(session: &mut dyn Session) -> Result<RecordCounts, StoreError> {
    let sql = "SELECT (SELECT count(*) FROM agents WHERE active = 1 AND deleted_at IS NULL),
                 (SELECT count(*) FROM stacks WHERE deleted_at IS NULL),
                 (SELECT count(*) FROM (SELECT 1 FROM revisions LIMIT ?1) AS stored)";
    let read =
        |row: &mut Row| Ok(RecordCounts { active_agents: row.take()?, stacks: row.take()?, revisions: row.take()? });
    Ok(fetch_one(session, sql, values![COUNTED_MAX], read).await?.unwrap_or_default())
}

fn read(row: &mut Row) -> Result<StoreFigures, StoreError> {
    Ok(StoreFigures {
        agents_online: row.take()?,
        agents_offline: row.take()?,
        stacks_behind: row.take()?,
        stacks_failed: row.take()?,
        approvals_pending: row.take()?,
        deliveries_pending: row.take()?,
    })
}
