//! Heartbeats of agents, and the agents whose heartbeats have stopped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sindri_model::AgentId;

use crate::event_types::EventType;
use crate::store::records::{Heartbeat, StoreError, WriteContext};
use crate::store::sql::shared::audit::AuditEntry;
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute_batch, fetch_all};
use crate::store::sql::shared::values::{Row, row, values};
use crate::store::sql::shared::{audit, outbox};

/// A heartbeat without data about the cluster leaves the previous data; one that is older than the last changes nothing.
/// Two statements for all of them: one round trip per agent would take longer than a call may.
pub(crate) async fn record(session: &mut dyn Session, heartbeats: Vec<(AgentId, Heartbeat)>) -> Result<(), StoreError> {
    let sql = "WITH batch (agent_id, received_at) AS ({TEXT, BIGINT})
               UPDATE agents SET last_heartbeat = batch.received_at, is_offline = 0 FROM batch
               WHERE agents.id = batch.agent_id
                 AND (last_heartbeat IS NULL OR last_heartbeat < batch.received_at)";
    execute_batch(session, sql, heartbeats.iter().map(|(agent, beat)| row![*agent, beat.received_at]).collect())
        .await?;
    let sql = "WITH batch (agent_id, reported_at, reachable, latency_ms) AS ({TEXT, BIGINT, BIGINT, BIGINT})
               UPDATE agents SET k8s_reachable = batch.reachable, k8s_api_latency_ms = batch.latency_ms,
                 k8s_reported_at = batch.reported_at FROM batch
               WHERE agents.id = batch.agent_id
                 AND (k8s_reported_at IS NULL OR k8s_reported_at < batch.reported_at)";
    let with_report = heartbeats
        .iter()
        .filter(|(_, Heartbeat { report, .. })| report.k8s_reachable.is_some() || report.k8s_api_latency_ms.is_some());
    let rows = with_report.map(|(agent, Heartbeat { received_at, report })| {
        row![*agent, *received_at, report.k8s_reachable, report.k8s_api_latency_ms]
    });
    execute_batch(session, sql, rows.collect()).await
}

/// Marks agents whose last heartbeat is older than the first parameter, at most as many as the second. Another broker
/// that does the same waits, and finds them marked. The conditions are those of a partial index, so agents that send
/// heartbeats are not read.
const MARK_OFFLINE: &str = "
    UPDATE agents SET is_offline = 1
    WHERE is_offline = 0 AND last_heartbeat < ?1 AND id IN (
      SELECT id FROM agents
      WHERE active = 1 AND is_offline = 0 AND deleted_at IS NULL AND last_heartbeat IS NOT NULL AND last_heartbeat < ?1
      ORDER BY last_heartbeat LIMIT ?2)
    RETURNING id, name, cluster_name, last_heartbeat";

/// An agent whose heartbeats have stopped.
struct SilentAgent {
    name: String,
    cluster_name: String,
    last_heartbeat: Timestamp,
}

/// Returns the number of marked agents. If it equals the limit, there may be more.
pub(crate) async fn mark_offline(
    session: &mut dyn Session,
    context: WriteContext,
    silent_since: Timestamp,
    limit: i64,
) -> Result<usize, StoreError> {
    let silent: BTreeMap<AgentId, SilentAgent> =
        fetch_all(session, MARK_OFFLINE, values![silent_since, limit], read).await?.into_iter().collect();
    if silent.is_empty() {
        return Ok(0);
    }
    let (mut entries, mut events) = (Vec::new(), Vec::new());
    for (agent, SilentAgent { name, cluster_name, last_heartbeat }) in &silent {
        let data = json!({
            "agent_id": agent, "name": name, "cluster_name": cluster_name, "last_heartbeat": last_heartbeat,
        });
        let (action, resource, details) = (EventType::AgentOffline.as_str(), agent.to_string(), Some(data.clone()));
        entries.push(AuditEntry {
            context: &context,
            action,
            resource_type: "agent",
            resource: Some(resource),
            details,
        });
        let event = WebhookEvent { event_type: EventType::AgentOffline, agent: Some(*agent), stack: None, data };
        events.push((&context, event));
    }
    audit::record_all(session, entries).await?;
    outbox::publish_all(session, &events).await?;
    Ok(silent.len())
}

fn read(row: &mut Row) -> Result<(AgentId, SilentAgent), StoreError> {
    let agent = row.take()?;
    Ok((agent, SilentAgent { name: row.take()?, cluster_name: row.take()?, last_heartbeat: row.take()? }))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::MARK_OFFLINE;
    use crate::store::SqliteStore;

    #[test]
    fn marking_agents_offline_reads_only_silent_agents() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db").display().to_string();
        drop(SqliteStore::open(&path, None).unwrap());
        let connection = Connection::open(&path).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {MARK_OFFLINE}")).unwrap();
        let steps = explain.query_map([1, 1], |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.contains("agents_by_heartbeat")), "{steps:#?}");
        assert!(!steps.iter().any(|step| step.starts_with("SCAN")), "{steps:#?}");
    }
}
