//! The audit log. Each entry is written in the transaction of the change that it records.

use serde_json::{Value as Json, json};
use sindri_model::AuditId;
use sindri_model::wire::AuditLog;

use super::session::{Session, execute_batch, fetch_all, fetch_one, single_column};
use super::values::{Row, Value, row, to_json, values};
use crate::store::records::{AuditFilter, FailedLogin, KeyHolder, Page, StoreError, WriteContext};

/// A query of the entries that match a filter, whose values are the first eight parameters.
macro_rules! matching {
    ($select:literal, $rest:literal) => {
        concat!(
            $select,
            " FROM audit
              WHERE (CAST(?1 AS TEXT) IS NULL OR actor_type = ?1)
                AND (CAST(?2 AS TEXT) IS NULL OR actor_id = ?2)
                AND (CAST(?3 AS TEXT) IS NULL OR action = ?3)
                AND (CAST(?4 AS TEXT) IS NULL OR substr(action, 1, length(CAST(?4 AS TEXT))) = ?4)
                AND (CAST(?5 AS TEXT) IS NULL OR resource_type = ?5)
                AND (CAST(?6 AS TEXT) IS NULL OR resource_id = ?6)
                AND (CAST(?7 AS BIGINT) IS NULL OR at >= ?7)
                AND (CAST(?8 AS BIGINT) IS NULL OR at <= ?8) ",
            $rest
        )
    };
}

/// Limit on the number of entries that a list counts, so that it does not read the whole log.
const COUNTED_MAX: i64 = 10_000;

/// An entry of the audit log.
pub(crate) struct AuditEntry<'a> {
    pub context: &'a WriteContext,
    pub action: &'a str,
    pub resource_type: &'a str,
    pub resource: Option<String>,
    pub details: Option<Json>,
}

pub(crate) async fn record(
    session: &mut dyn Session,
    context: &WriteContext,
    action: &str,
    resource_type: &str,
    resource: Option<String>,
    details: Option<Json>,
) -> Result<(), StoreError> {
    record_all(session, vec![AuditEntry { context, action, resource_type, resource, details }]).await
}

pub(crate) async fn record_all(session: &mut dyn Session, entries: Vec<AuditEntry<'_>>) -> Result<(), StoreError> {
    let sql = "WITH batch (id, at, actor_type, actor_id, action, resource_type, resource_id, details, ip_address,
                 user_agent) AS ({TEXT, BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT})
               INSERT INTO audit (id, at, actor_type, actor_id, action, resource_type, resource_id, details,
                 ip_address, user_agent) SELECT * FROM batch";
    execute_batch(session, sql, entries.into_iter().map(to_row).collect()).await
}

/// Records logins that failed. The broker itself is the actor, because the sender is not known.
pub(crate) async fn record_failed_logins(
    session: &mut dyn Session,
    context: WriteContext,
    logins: Vec<FailedLogin>,
) -> Result<(), StoreError> {
    let to_context = |login: &FailedLogin| WriteContext { time: login.time, peer: login.peer, ..context.clone() };
    let contexts: Vec<WriteContext> = logins.iter().map(to_context).collect();
    let to_entry = |(login, context): (FailedLogin, _)| AuditEntry {
        context,
        action: "login.failed",
        resource_type: "pak",
        resource: None,
        details: Some(json!({
            "key_prefix": login.key_prefix, "reason": login.reason.as_str(), "unrecorded": login.unrecorded,
        })),
    };
    record_all(session, logins.into_iter().zip(&contexts).map(to_entry).collect()).await
}

fn to_row(entry: AuditEntry<'_>) -> Vec<Value> {
    let AuditEntry { context, action, resource_type, resource, details } = entry;
    let (actor_type, actor) = match context.actor {
        None => ("system", None),
        Some(KeyHolder::Admin(admin)) => ("admin", Some(admin.to_string())),
        Some(KeyHolder::Agent(agent)) => ("agent", Some(agent.to_string())),
        Some(KeyHolder::Generator(generator)) => ("generator", Some(generator.to_string())),
    };
    row![
        AuditId::generate_at(context.time, &context.entropy),
        context.time,
        actor_type,
        actor,
        action,
        resource_type,
        resource,
        details.map(|details| to_json(&details)),
        context.peer.map(|peer| peer.to_string()),
        context.user_agent.as_deref(),
    ]
}

pub(crate) async fn list(session: &mut dyn Session, filter: AuditFilter) -> Result<(Vec<AuditLog>, i64), StoreError> {
    // `agent.*` matches every action with the prefix `agent.`.
    let (action, prefix) = match filter.action.as_deref().map(|action| action.strip_suffix('*')) {
        Some(Some(prefix)) => (None, Some(prefix.to_owned())),
        Some(None) => (filter.action.clone(), None),
        None => (None, None),
    };
    let mut values = values![
        filter.actor_type,
        filter.actor_id,
        action,
        prefix,
        filter.resource_type,
        filter.resource_id,
        filter.from,
        filter.to,
    ]
    .to_vec();
    let sql = matching!("SELECT count(*) FROM (SELECT 1", "LIMIT ?9) AS counted");
    let counted: Vec<Value> = values.iter().cloned().chain([COUNTED_MAX.into()]).collect();
    let total = fetch_one(session, sql, &counted, single_column).await?.unwrap_or(0);
    values.extend_from_slice(values![filter.limit, filter.offset, filter.after, Page::TEXT_BYTES_MAX]);
    let sql = concat!(
        "SELECT id, at, actor_type, actor_id,
            CASE actor_type WHEN 'agent' THEN (SELECT name FROM agents WHERE agents.id = audit.actor_id)
              WHEN 'generator' THEN (SELECT name FROM generators WHERE generators.id = audit.actor_id)
              WHEN 'admin' THEN coalesce((SELECT name FROM admins WHERE admins.id = audit.actor_id), 'admin')
              ELSE actor_type END,
            action, resource_type, resource_id, details, ip_address, user_agent
         FROM audit WHERE position IN (
           SELECT position FROM (
             SELECT position, sum(bytes) OVER (ORDER BY position DESC) - bytes AS bytes_before FROM (",
        matching!(
            "SELECT position, coalesce(octet_length(details), 0) + coalesce(octet_length(user_agent), 0) AS bytes",
            "AND (CAST(?11 AS TEXT) IS NULL OR position < (SELECT position FROM audit WHERE id = ?11))
             ORDER BY position DESC LIMIT ?9 OFFSET ?10"
        ),
        ") AS candidates) AS sized
           WHERE bytes_before < ?12)
         ORDER BY position DESC"
    );
    Ok((fetch_all(session, sql, &values, read).await?, total))
}

fn read(row: &mut Row) -> Result<AuditLog, StoreError> {
    let (id, at) = (row.take()?, row.take()?);
    Ok(AuditLog {
        id,
        timestamp: at,
        actor_type: row.take()?,
        actor_id: row.take()?,
        actor_name: row.take()?,
        action: row.take()?,
        resource_type: row.take()?,
        resource_id: row.take()?,
        details: row.take_json_or_null()?,
        ip_address: row.take()?,
        user_agent: row.take()?,
        created_at: at,
    })
}
