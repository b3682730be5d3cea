//! The last event of an agent about each revision and removal of its target state, without the history.

use sindri_model::AgentId;
use sindri_model::wire::AgentEvent;

use super::events;
use crate::store::records::{Page, StoreError};
use crate::store::sql::shared::session::{Session, fetch_all};
use crate::store::sql::shared::values::values;
use crate::store::sql::tables::agents;

/// The newest event of each revision comes from the index `events_by_revision`, however long the history is: the query
/// orders by the same expression as the index.
const OUTCOMES: &str = events::sized!(
    "position IN (
       SELECT (SELECT latest.position FROM events latest WHERE latest.agent_id = ?1 AND latest.revision_id = revisions.id
               ORDER BY latest.position + 0 DESC LIMIT 1)
       FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
         JOIN revisions ON revisions.sequence = stacks.newest
       WHERE assignments.agent_id = ?1 AND wanted = 1 AND newest_is_marker = 0
       UNION ALL
       SELECT (SELECT latest.position FROM events latest WHERE latest.agent_id = ?1 AND latest.revision_id = revisions.id
               ORDER BY latest.position + 0 DESC LIMIT 1)
       FROM assignments JOIN revisions ON revisions.sequence = assignments.removal
       WHERE assignments.agent_id = ?1 AND removal IS NOT NULL AND confirmed = 0)
       AND position > coalesce((SELECT position FROM events WHERE id = ?2), 0)
     ORDER BY position LIMIT ?3"
);

/// Lists the events oldest first, without revisions that the agent has not reported about. An event that is newer than its page
/// is on a later page, in place of the older one about the same revision or after it.
pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentEvent>, StoreError> {
    agents::check_exists(session, agent).await?;
    fetch_all(session, OUTCOMES, values![agent, page.after, page.limit, Page::TEXT_BYTES_MAX], events::read).await
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::OUTCOMES;
    use crate::store::SqliteStore;

    #[test]
    fn listing_outcomes_does_not_read_the_history() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db").display().to_string();
        drop(SqliteStore::open(&path, None).unwrap());
        let connection = Connection::open(&path).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {OUTCOMES}")).unwrap();
        let steps = explain.query_map(("x", None::<String>, 1, 1), |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.contains("events_by_revision")), "{steps:#?}");
        // The rows of the page are scanned, and never a table.
        let of_page = ["SCAN candidates", "SCAN sized", "SCAN (subquery"];
        let is_table = |step: &&String| step.starts_with("SCAN") && !of_page.iter().any(|page| step.starts_with(page));
        assert_eq!(steps.iter().find(is_table), None, "{steps:#?}");
        let sorts = steps.iter().filter(|step| step.contains("TEMP B-TREE")).count();
        assert!(sorts <= 1, "only the result is sorted, never a history: {steps:#?}");
    }
}
