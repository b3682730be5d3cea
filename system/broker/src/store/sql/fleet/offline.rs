//! Agents that have fallen silent: subscribers are told once, and again only after the agent was back.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sindri_model::AgentId;

use crate::event_types::EventType;
use crate::store::records::{Stamp, StoreError};
use crate::store::sql::shared::audit::{self, Entry};
use crate::store::sql::shared::outbox::{Happening, announce_all};
use crate::store::sql::shared::session::{Row, Session, all, values};

/// Marks those whose last heartbeat is older than the first value, and as many at most as the second. Another broker
/// that does the same waits, and finds them marked. The conditions are those of an index that holds nobody else.
const SILENT: &str = "
    UPDATE agents SET is_offline = 1
    WHERE is_offline = 0 AND last_heartbeat < ?1 AND id IN (
      SELECT id FROM agents
      WHERE active = 1 AND is_offline = 0 AND deleted_at IS NULL AND last_heartbeat IS NOT NULL AND last_heartbeat < ?1
      ORDER BY last_heartbeat LIMIT ?2)
    RETURNING id, name, cluster_name, last_heartbeat";

/// An agent that has fallen silent.
struct Silent {
    name: String,
    cluster_name: String,
    last_heartbeat: Timestamp,
}

/// Says how many were noted: if it is as many as may be, there may be more.
pub(crate) async fn note(
    session: &mut dyn Session,
    stamp: Stamp,
    silent_since: Timestamp,
    limit: i64,
) -> Result<usize, StoreError> {
    let silent: BTreeMap<AgentId, Silent> =
        all(session, SILENT, values![silent_since, limit], read).await?.into_iter().collect();
    if silent.is_empty() {
        return Ok(0);
    }
    let (mut entries, mut happenings) = (Vec::new(), Vec::new());
    for (agent, Silent { name, cluster_name, last_heartbeat }) in &silent {
        let data = json!({
            "agent_id": agent, "name": name, "cluster_name": cluster_name, "last_heartbeat": last_heartbeat,
        });
        let (action, resource, details) = (EventType::AgentOffline.as_str(), agent.to_string(), Some(data.clone()));
        entries.push(Entry { stamp: &stamp, action, resource_type: "agent", resource: Some(resource), details });
        let happening = Happening { event: EventType::AgentOffline, agent: Some(*agent), stack: None, data };
        happenings.push((&stamp, happening));
    }
    audit::record_all(session, entries).await?;
    announce_all(session, &happenings).await?;
    Ok(silent.len())
}

fn read(row: &mut Row) -> Result<(AgentId, Silent), StoreError> {
    let agent = row.take()?;
    Ok((agent, Silent { name: row.take()?, cluster_name: row.take()?, last_heartbeat: row.take()? }))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::SILENT;
    use crate::store::SqliteStore;

    #[test]
    fn agents_that_are_well_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db").display().to_string();
        drop(SqliteStore::open(&path, None).unwrap());
        let connection = Connection::open(&path).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {SILENT}")).unwrap();
        let steps = explain.query_map([1, 1], |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.contains("agents_by_heartbeat")), "{steps:#?}");
        assert!(!steps.iter().any(|step| step.starts_with("SCAN")), "{steps:#?}");
    }
}
