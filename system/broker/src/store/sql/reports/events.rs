//! Events that agents report. The last outcome of each stack on each agent is also kept in its assignment.

use serde_json::json;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, EventId, RevisionId, Sequence, StackId};

use super::status;
use crate::event_types::EventType;
use crate::store::records::{KeyHolder, ListScope, Page, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::outbox::{Subscriber, WebhookEvent};
use crate::store::sql::shared::session::{
    PipelinedQuery, Session, execute, execute_batch, failed, fetch_all, fetch_one, read_all, single_column,
};
use crate::store::sql::shared::values::{Row, row, values};
use crate::store::sql::shared::{audit, changes, counter, idempotency, outbox};
use crate::store::sql::tables::{agents, keys};

const RESOURCE_TYPE: &str = "agent_event";

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:expr) => {
        concat!("SELECT id, created_at, agent_id, revision_id, event_type, status, message FROM events ", $rest)
    };
}
pub(crate) use columns;

/// A query of events by position, up to the size in the fourth parameter; the argument selects the candidates.
macro_rules! sized {
    ($candidates:literal) => {
        $crate::store::sql::reports::events::columns!(concat!(
            "WHERE position IN (
               SELECT position FROM (
                 SELECT position, sum(bytes) OVER (ORDER BY position) - bytes AS bytes_before FROM (
                   SELECT position, coalesce(octet_length(message), 0) AS bytes FROM events
                   WHERE ",
            $candidates,
            ") AS candidates) AS sized
               WHERE bytes_before < ?4)
             ORDER BY position"
        ))
    };
}
pub(super) use sized;

/// The parts of a revision that its outcomes are about.
struct ReportedRevision {
    id: RevisionId,
    stack: StackId,
    sequence: Sequence,
    is_deletion_marker: bool,
}

/// Everything that is read is read at once, and the writes are sent without awaiting each: agents report often.
pub(crate) async fn record(
    session: &mut dyn Session,
    context: WriteContext,
    event: AgentEvent,
) -> Result<AgentEvent, StoreError> {
    // Announced first: a leader that announces itself waits for the events of the leader before it.
    session.announce_event().await?;
    let content = || {
        let revision = event.deployment_object_id;
        json!([event.agent_id, revision, event.event_type, event.status, event.message])
    };
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    let requests: Vec<&IdempotentRequest> = request.iter().collect();
    let queries = vec![
        agents::query_leader(event.agent_id),
        idempotency::query_first(&requests),
        query_revision(&event),
        outbox::query_subscribers(),
    ];
    let responses = session.query_pipelined(queries).await?;
    let [leader, first, revision, subscribers] =
        <[_; 4]>::try_from(responses).map_err(|_| failed("a query has no result"))?;
    agents::check_leader(leader, event.agent_id, context.process.as_deref())?;
    let first = idempotency::read_first(session, &requests, first).await?;
    if let Some((request, first)) = request.as_ref().and_then(|request| Some((request, first.get(request.key())?))) {
        return get(session, request.match_first(first)?.parse().map_err(failed)?).await;
    }
    let missing =
        || StoreError::MissingReference { kind: RecordKind::Revision, name: event.deployment_object_id.to_string() };
    let revision = read_all(revision, read_revision)?.into_iter().next().ok_or_else(missing)?;
    let sql = "WITH batch (id, created_at, agent_id, revision_id, event_type, status, message)
                 AS ({TEXT, BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT})
               INSERT INTO events (id, created_at, agent_id, revision_id, event_type, status, message)
               SELECT * FROM batch";
    let row = row![
        event.id,
        event.created_at,
        event.agent_id,
        event.deployment_object_id,
        &event.event_type,
        event.status.clone(),
        event.message.as_deref(),
    ];
    execute_batch(session, sql, vec![row]).await?;
    idempotency::record(session, request.as_ref(), event.id).await?;
    apply_outcome(session, &context, &event, &revision, &outbox::read_subscribers(subscribers)?).await?;
    Ok(event)
}

/// Query for the revision of an event, if the agent may report about it; [`read_revision`] reads a row.
fn query_revision(event: &AgentEvent) -> PipelinedQuery {
    let sql = "SELECT revisions.id, revisions.stack_id, sequence, is_deletion_marker FROM revisions
                 JOIN assignments ON assignments.stack_id = revisions.stack_id AND assignments.agent_id = ?2
               WHERE revisions.id = ?1 AND (revisions.agent_id IS NULL OR revisions.agent_id = ?2)";
    PipelinedQuery::Single(sql, row![event.deployment_object_id, event.agent_id])
}

fn read_revision(row: &mut Row) -> Result<ReportedRevision, StoreError> {
    let (id, stack, sequence) = (row.take()?, row.take()?, row.take()?);
    Ok(ReportedRevision { id, stack, sequence, is_deletion_marker: row.take()? })
}

/// Updates the assignment after an outcome, and publishes the outcome.
async fn apply_outcome(
    session: &mut dyn Session,
    context: &WriteContext,
    event: &AgentEvent,
    revision: &ReportedRevision,
    subscribers: &[Subscriber],
) -> Result<(), StoreError> {
    let event_type = match (&event.status, revision.is_deletion_marker) {
        (EventStatus::Success, false) => EventType::DeploymentApplied,
        (EventStatus::Success, true) => EventType::DeploymentDeleted,
        (EventStatus::Failure, _) => EventType::DeploymentFailed,
        (EventStatus::Other(_), _) => return Ok(()),
    };
    let succeeded = event.status == EventStatus::Success;
    if succeeded && revision.is_deletion_marker {
        confirm_removal(session, context, event, revision).await?;
    }
    // A removal that the agent no longer has to carry out has a higher sequence than the revision that it has again.
    let sql = "WITH batch (reported, succeeded, reported_at, agent_id, stack_id, is_removal)
                 AS ({BIGINT, BIGINT, BIGINT, TEXT, TEXT, BIGINT})
               UPDATE assignments SET reported = batch.reported, succeeded = batch.succeeded,
                 reported_at = batch.reported_at
               FROM batch WHERE assignments.agent_id = batch.agent_id AND assignments.stack_id = batch.stack_id
                 AND (assignments.reported IS NULL OR assignments.reported <= batch.reported)
                 AND (batch.is_removal = 0 OR assignments.removal = batch.reported)";
    let is_removal = revision.is_deletion_marker;
    let row = row![revision.sequence, succeeded, event.created_at, event.agent_id, revision.stack, is_removal];
    execute_batch(session, sql, vec![row]).await?;
    let data = json!({
        "agent_id": event.agent_id,
        "stack_id": revision.stack,
        "deployment_object_id": revision.id,
        "sequence_id": revision.sequence,
        "status": event.status,
        "message": event.message,
    });
    let resource = Some(event.agent_id.to_string());
    audit::record(
        session,
        context,
        event_type.as_str(),
        "agent",
        resource,
        Some(json!({"deployment_object_id": revision.id})),
    )
    .await?;
    let event = WebhookEvent { event_type, agent: Some(event.agent_id), stack: Some(revision.stack), data };
    outbox::publish_to(session, subscribers, &[(context, event)]).await
}

/// Confirms the outstanding removal only: a late success of an older one does not cover the stack that the agent has received
/// since.
async fn confirm_removal(
    session: &mut dyn Session,
    context: &WriteContext,
    event: &AgentEvent,
    revision: &ReportedRevision,
) -> Result<(), StoreError> {
    let version = counter::next_number(session).await?;
    let sql = "UPDATE assignments SET confirmed = 1
               WHERE agent_id = ?1 AND stack_id = ?2 AND removal = ?3 AND confirmed = 0";
    if execute(session, sql, values![event.agent_id, revision.stack, revision.sequence]).await? > 0 {
        changes::record_target_change_at(session, event.agent_id, version).await?;
        status::handle_removal(session, context, event.agent_id, revision.stack).await?;
    }
    Ok(())
}

pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentEvent>, StoreError> {
    agents::check_exists(session, agent).await?;
    list_by_agent(session, agent, page).await
}

async fn list_by_agent(session: &mut dyn Session, agent: AgentId, page: Page) -> Result<Vec<AgentEvent>, StoreError> {
    let sql = sized!(
        "agent_id = ?1 AND position > coalesce((SELECT position FROM events WHERE id = ?2), 0) AND position <= ?5
        ORDER BY position LIMIT ?3"
    );
    let last = last_complete_position(session).await?;
    fetch_all(session, sql, values![agent, page.after, page.limit, Page::TEXT_BYTES_MAX, last], read).await
}

/// Lists the events about a stack: those of one agent, or of all.
pub(crate) async fn list_of_stack(
    session: &mut dyn Session,
    stack: StackId,
    agent: Option<AgentId>,
    page: Page,
) -> Result<Vec<AgentEvent>, StoreError> {
    let sql = sized!(
        "revision_id IN (SELECT id FROM revisions WHERE stack_id = ?1) AND (CAST(?6 AS TEXT) IS NULL OR agent_id = ?6)
          AND position > coalesce((SELECT position FROM events WHERE id = ?2), 0) AND position <= ?5
        ORDER BY position LIMIT ?3"
    );
    let last = last_complete_position(session).await?;
    fetch_all(session, sql, values![stack, page.after, page.limit, Page::TEXT_BYTES_MAX, last, agent], read).await
}

pub(crate) async fn list_recent(
    session: &mut dyn Session,
    agent: AgentId,
    limit: i64,
) -> Result<Vec<AgentEvent>, StoreError> {
    let sql = columns!("WHERE agent_id = ?1 ORDER BY position DESC LIMIT ?2");
    fetch_all(session, sql, values![agent, limit], read).await
}

pub(crate) async fn list(
    session: &mut dyn Session,
    scope: ListScope,
    page: Page,
) -> Result<Vec<AgentEvent>, StoreError> {
    let generator = match scope {
        ListScope::All => None,
        ListScope::Generator(generator) => Some(generator),
        ListScope::Key(key) => match keys::find_holder(session, key).await? {
            Some(KeyHolder::Agent(agent)) => return list_by_agent(session, agent, page).await,
            Some(KeyHolder::Generator(generator)) => Some(generator),
            Some(KeyHolder::Admin(_)) => None,
            None => return Ok(Vec::new()),
        },
    };
    let sql = sized!(
        "position > coalesce((SELECT position FROM events WHERE id = ?1), 0) AND position <= ?5
          AND (CAST(?2 AS TEXT) IS NULL OR revision_id IN (
            SELECT revisions.id FROM revisions JOIN stacks ON stacks.id = revisions.stack_id
            WHERE stacks.generator_id = ?2))
        ORDER BY position LIMIT ?3"
    );
    let last = last_complete_position(session).await?;
    fetch_all(session, sql, values![page.after, generator, page.limit, Page::TEXT_BYTES_MAX, last], read).await
}

/// Returns a position up to which every event is visible that ever will be. A page must not go beyond it: an event with a
/// lower position that is committed later would be before the next page, and in none.
pub(super) async fn last_complete_position(session: &mut dyn Session) -> Result<i64, StoreError> {
    let sql = "SELECT coalesce(max(position), 0) FROM events";
    let last = fetch_one(session, sql, &[], single_column).await?.unwrap_or_default();
    session.await_announced_events().await?;
    Ok(last)
}

pub(crate) async fn get(session: &mut dyn Session, event: EventId) -> Result<AgentEvent, StoreError> {
    require(fetch_one(session, columns!("WHERE id = ?1"), values![event], read).await?, RecordKind::Event, event)
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
