//! What agents reported. The last word of each agent about each stack is kept beside what is wanted of it.

use serde_json::json;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, EventId};

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, Noun, Page, RevisionRecord, Stamp, StoreError, Whose};
use crate::store::sql::assignments::target_state;
use crate::store::sql::fleet::agents;
use crate::store::sql::reports::status;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::{as_reference, found};
use crate::store::sql::shared::outbox::{Happening, announce};
use crate::store::sql::shared::session::{Row, Session, all, change, failed, one, values};
use crate::store::sql::tables::keys;
use crate::store::sql::tables::revisions;

const WHAT: &str = "agent_event";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!("SELECT id, created_at, agent_id, revision_id, event_type, status, message FROM events ", $rest)
    };
}
pub(crate) use columns;

pub(crate) async fn record(
    session: &mut dyn Session,
    stamp: Stamp,
    event: AgentEvent,
) -> Result<AgentEvent, StoreError> {
    agents::require(session, event.agent_id).await?;
    if let Some(before) = once::made_before(session, &stamp, WHAT).await? {
        return get(session, before.parse().map_err(failed)?).await;
    }
    let record = revisions::get(session, event.deployment_object_id).await.map_err(as_reference)?;
    let is_theirs = record.only_for.is_none_or(|only| only == event.agent_id)
        && target_state::concerns(session, event.agent_id, record.object.stack_id).await?;
    if !is_theirs {
        let name = event.deployment_object_id.to_string();
        return Err(StoreError::MissingReference { noun: Noun::Revision, name });
    }
    let sql = "INSERT INTO events (id, created_at, agent_id, revision_id, event_type, status, message)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = values![
        event.id,
        event.created_at,
        event.agent_id,
        event.deployment_object_id,
        &event.event_type,
        event.status.clone(),
        event.message.as_deref(),
    ];
    change(session, sql, row).await?;
    once::remember(session, &stamp, WHAT, event.id).await?;
    outcome(session, &stamp, &event, &record).await?;
    Ok(event)
}

/// What follows from an outcome.
async fn outcome(
    session: &mut dyn Session,
    stamp: &Stamp,
    event: &AgentEvent,
    record: &RevisionRecord,
) -> Result<(), StoreError> {
    let object = &record.object;
    let what = match (&event.status, object.is_deletion_marker) {
        (EventStatus::Success, false) => EventType::DeploymentApplied,
        (EventStatus::Success, true) => EventType::DeploymentDeleted,
        (EventStatus::Failure, _) => EventType::DeploymentFailed,
        (EventStatus::Other(_), _) => return Ok(()),
    };
    let succeeded = event.status == EventStatus::Success;
    if succeeded && object.is_deletion_marker {
        // Only the instruction that is outstanding can be confirmed: a late word about an older one says nothing
        // about what the agent has received since.
        let version = epoch::tick(session).await?;
        let sql = "UPDATE assignments SET confirmed = 1
                   WHERE agent_id = ?1 AND stack_id = ?2 AND removal = ?3 AND confirmed = 0";
        if change(session, sql, values![event.agent_id, object.stack_id, object.sequence_id]).await? > 0 {
            epoch::desired_set_changed(session, event.agent_id, version).await?;
            status::was_removed(session, stamp, event.agent_id, object.stack_id).await?;
        }
    }
    let sql = "UPDATE assignments SET reported = ?1, succeeded = ?2, reported_at = ?3
               WHERE agent_id = ?4 AND stack_id = ?5 AND (reported IS NULL OR reported <= ?1)";
    let row = values![object.sequence_id, succeeded, event.created_at, event.agent_id, object.stack_id];
    change(session, sql, row).await?;
    let data = json!({
        "agent_id": event.agent_id,
        "stack_id": object.stack_id,
        "deployment_object_id": object.id,
        "sequence_id": object.sequence_id,
        "status": event.status,
        "message": event.message,
    });
    let resource = Some(event.agent_id.to_string());
    audit::record(session, stamp, what.as_str(), "agent", resource, Some(json!({"deployment_object_id": object.id})))
        .await?;
    let happening = Happening { event: what, agent: Some(event.agent_id), stack: Some(object.stack_id), data };
    announce(session, stamp, happening).await
}

pub(crate) async fn of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentEvent>, StoreError> {
    agents::require(session, agent).await?;
    of(session, agent, page).await
}

async fn of(session: &mut dyn Session, agent: AgentId, page: Page) -> Result<Vec<AgentEvent>, StoreError> {
    let sql = columns!(
        "WHERE agent_id = ?1 AND position > coalesce((SELECT position FROM events WHERE id = ?2), 0)
        ORDER BY position LIMIT ?3"
    );
    all(session, sql, values![agent, page.after, page.limit], read).await
}

pub(crate) async fn recent(
    session: &mut dyn Session,
    agent: AgentId,
    limit: i64,
) -> Result<Vec<AgentEvent>, StoreError> {
    let sql = columns!("WHERE agent_id = ?1 ORDER BY position DESC LIMIT ?2");
    all(session, sql, values![agent, limit], read).await
}

pub(crate) async fn list(session: &mut dyn Session, whose: Whose, page: Page) -> Result<Vec<AgentEvent>, StoreError> {
    let generator = match whose {
        Whose::All => None,
        Whose::Generator(generator) => Some(generator),
        Whose::Key(key) => match keys::holder_of(session, key).await? {
            Some(KeyHolder::Agent(agent)) => return of(session, agent, page).await,
            Some(KeyHolder::Generator(generator)) => Some(generator),
            Some(KeyHolder::Admin) => None,
            None => return Ok(Vec::new()),
        },
    };
    let sql = columns!(
        "WHERE position > coalesce((SELECT position FROM events WHERE id = ?1), 0)
          AND (CAST(?2 AS TEXT) IS NULL OR revision_id IN (
            SELECT revisions.id FROM revisions JOIN stacks ON stacks.id = revisions.stack_id
            WHERE stacks.generator_id = ?2))
        ORDER BY position LIMIT ?3"
    );
    all(session, sql, values![page.after, generator, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, event: EventId) -> Result<AgentEvent, StoreError> {
    found(one(session, columns!("WHERE id = ?1"), values![event], read).await?, Noun::Event, event)
}

pub(crate) fn read(row: &mut Row) -> Result<AgentEvent, StoreError> {
    let (id, created_at) = (row.take()?, row.take()?);
    Ok(AgentEvent {
        id,
        created_at,
        updated_at: created_at,
        deleted_at: None,
        agent_id: row.take()?,
        deployment_object_id: row.take()?,
        event_type: row.take()?,
        status: row.take()?,
        message: row.take()?,
    })
}
