//! Overview of the fleet. A deleted agent is listed while it has stacks that it received and did not remove.

use sindri_model::AgentId;

use crate::store::records::{FleetEntry, KeyHolder, ListScope, Page, RecordKind, StoreError};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, values};
use crate::store::sql::tables::{agents, keys};

/// A query of the fleet; the argument is the rest of the statement.
macro_rules! entries {
    ($rest:literal) => {
        concat!(
            agents::columns!(""),
            ", (SELECT created_at FROM events WHERE events.agent_id = agents.id ORDER BY position DESC LIMIT 1),
               (SELECT count(*) FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                WHERE assignments.agent_id = agents.id
                  AND (agents.deleted_at IS NULL OR received = 1) AND confirmed = 0
                  AND (removal IS NOT NULL OR wanted = 0
                       OR (wanted = 1 AND newest IS NOT NULL AND newest_is_marker = 0
                           AND NOT (reported IS NOT NULL AND reported = newest AND succeeded = 1)))),
               (SELECT count(*) FROM health JOIN revisions ON revisions.id = health.revision_id
                  JOIN stacks ON stacks.newest = revisions.sequence
                WHERE health.agent_id = agents.id AND health.status = 'degraded'),
               (SELECT count(*) FROM health JOIN revisions ON revisions.id = health.revision_id
                  JOIN stacks ON stacks.newest = revisions.sequence
                WHERE health.agent_id = agents.id AND health.status = 'failing')
             FROM agents ",
            $rest
        )
    };
}

pub(crate) async fn list(
    session: &mut dyn Session,
    scope: ListScope,
    page: Page,
) -> Result<Vec<FleetEntry>, StoreError> {
    let (agent, generator) = match scope {
        ListScope::All => (None, None),
        ListScope::Generator(generator) => (None, Some(generator)),
        ListScope::Key(key) => match keys::find_holder(session, key).await? {
            Some(KeyHolder::Admin(_)) => (None, None),
            Some(KeyHolder::Agent(agent)) => (Some(agent), None),
            Some(KeyHolder::Generator(generator)) => (None, Some(generator)),
            None => return Ok(Vec::new()),
        },
    };
    let sql = entries!(
        "WHERE (deleted_at IS NULL OR EXISTS (
            SELECT 1 FROM assignments WHERE assignments.agent_id = agents.id AND received = 1 AND confirmed = 0))
          AND (CAST(?1 AS TEXT) IS NULL OR agents.id = ?1)
          AND (CAST(?2 AS TEXT) IS NULL OR EXISTS (
            SELECT 1 FROM registrations WHERE registrations.agent_id = agents.id AND generator_id = ?2))
          AND (CAST(?3 AS TEXT) IS NULL OR (agents.name, agents.cluster_name, agents.id) > (
            SELECT a.name, a.cluster_name, a.id FROM agents a WHERE a.id = ?3))
         ORDER BY agents.name, agents.cluster_name, agents.id LIMIT ?4"
    );
    fetch_all(session, sql, values![agent, generator, page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, agent: AgentId) -> Result<FleetEntry, StoreError> {
    require(fetch_one(session, entries!("WHERE agents.id = ?1"), values![agent], read).await?, RecordKind::Agent, agent)
}

fn read(row: &mut Row) -> Result<FleetEntry, StoreError> {
    Ok(FleetEntry {
        agent: agents::read(row)?,
        last_event_at: row.take()?,
        pending: row.take()?,
        degraded: row.take()?,
        failing: row.take()?,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::store::SqliteStore;
    use crate::store::sql::tables::agents;

    #[test]
    fn the_last_event_of_an_agent_is_found_without_reading_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db").display().to_string();
        drop(SqliteStore::open(&path, None).unwrap());
        let connection = Connection::open(&path).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", entries!(""))).unwrap();
        let steps = explain.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.contains("events") && step.contains("events_by_agent")), "{steps:#?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:#?}");
    }
}
