//! Events with the names of what they are about, so that a reader needs no further requests.

use sindri_model::wire::NamedEvent;

use super::events::last_complete_position;
use crate::store::records::{EventFilter, EventOrder, Page, StoreError};
use crate::store::sql::shared::session::{Session, fetch_all};
use crate::store::sql::shared::values::{Row, values};

/// A query of events, up to the largest size of a page; the arguments are the order of the positions, and the condition that
/// they are after the last event of the page before.
macro_rules! page {
    ($order:literal, $after:literal) => {
        concat!(
            "SELECT events.id, events.created_at, events.agent_id, agents.name, agents.cluster_name, revisions.stack_id,
               stacks.name, revisions.sequence, revisions.is_deletion_marker, events.status, events.message
             FROM (SELECT position, sum(bytes) OVER (ORDER BY position ",
            $order,
            ") - bytes AS bytes_before FROM (
                     SELECT position, coalesce(octet_length(message), 0) AS bytes FROM events
                     WHERE (CAST(?1 AS TEXT) IS NULL OR ",
            $after,
            ") AND position <= ?4
                       AND (CAST(?5 AS BIGINT) IS NULL OR created_at >= ?5)
                       AND (CAST(?6 AS TEXT) IS NULL OR agent_id = ?6)
                       AND (CAST(?7 AS TEXT) IS NULL OR revision_id IN (SELECT id FROM revisions WHERE stack_id = ?7))
                       AND (CAST(?8 AS TEXT) IS NULL OR revision_id IN (
                         SELECT revisions.id FROM revisions JOIN stacks ON stacks.id = revisions.stack_id
                         WHERE stacks.generator_id = ?8))
                     ORDER BY position ",
            $order,
            " LIMIT ?2) AS candidates) AS sized
               JOIN events ON events.position = sized.position
               JOIN agents ON agents.id = events.agent_id
               JOIN revisions ON revisions.id = events.revision_id
               JOIN stacks ON stacks.id = revisions.stack_id
             WHERE bytes_before < ?3 ORDER BY events.position ",
            $order
        )
    };
}

/// An event after which a page begins may have been deleted meanwhile: the list of the oldest then begins again, and that of the
/// newest is at its end.
pub(crate) async fn list(
    session: &mut dyn Session,
    filter: EventFilter,
    page: Page,
) -> Result<Vec<NamedEvent>, StoreError> {
    let sql = match filter.order {
        EventOrder::OldestFirst => page!("ASC", "position > coalesce((SELECT position FROM events WHERE id = ?1), 0)"),
        EventOrder::NewestFirst => page!("DESC", "position < (SELECT position FROM events WHERE id = ?1)"),
    };
    let last = last_complete_position(session).await?;
    let EventFilter { generator, stack, agent, since, order: _ } = filter;
    let values = values![page.after, page.limit, Page::TEXT_BYTES_MAX, last, since, agent, stack, generator];
    fetch_all(session, sql, values, read).await
}

fn read(row: &mut Row) -> Result<NamedEvent, StoreError> {
    Ok(NamedEvent {
        id: row.take()?,
        created_at: row.take()?,
        agent_id: row.take()?,
        agent_name: row.take()?,
        cluster_name: row.take()?,
        stack_id: row.take()?,
        stack_name: row.take()?,
        sequence_id: row.take()?,
        is_deletion_marker: row.take()?,
        status: row.take()?,
        message: row.take()?,
    })
}
