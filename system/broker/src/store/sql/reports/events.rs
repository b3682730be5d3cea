//! Events that agents report: those that wait together are recorded together. The last outcome of each stack on each agent is also kept in its assignment.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, EventId, RevisionId, Sequence, StackId};

use super::status;
use crate::event_types::EventType;
use crate::store::records::{KeyHolder, ListScope, Page, RecordKind, StoreError, StoreFuture, WriteContext};
use crate::store::sql::group::{Grouped, separate_error};
use crate::store::sql::shared::audit::AuditEntry;
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

/// An event, and the request that reports it.
#[derive(Debug)]
pub(crate) struct EventReport {
    pub context: WriteContext,
    pub event: AgentEvent,
}

/// Result of a report.
type ReportResult = Result<AgentEvent, StoreError>;

impl Grouped for EventReport {
    type Output = AgentEvent;

    fn run_all(session: &mut dyn Session, operations: Vec<Self>) -> StoreFuture<'_, Vec<ReportResult>> {
        Box::pin(record_all(session, operations))
    }
}

/// The parts of a revision that its outcomes are about.
#[derive(Clone, Copy)]
struct ReportedRevision {
    id: RevisionId,
    stack: StackId,
    sequence: Sequence,
    is_deletion_marker: bool,
}

/// A report that passed every check.
struct AcceptedReport<'a> {
    context: &'a WriteContext,
    event: &'a AgentEvent,
    revision: ReportedRevision,
    request: Option<&'a IdempotentRequest>,
}

/// Everything that is read is read at once, and the writes are sent without awaiting each: agents report often.
async fn record_all(session: &mut dyn Session, reports: Vec<EventReport>) -> Result<Vec<ReportResult>, StoreError> {
    // Announced first: a leader that announces itself waits for the events of the leader before it.
    session.announce_event().await?;
    let requests: Vec<Option<IdempotentRequest>> = reports.iter().map(to_request).collect();
    let with_keys: Vec<&IdempotentRequest> = requests.iter().flatten().collect();
    let agents: BTreeSet<AgentId> = reports.iter().map(|report| report.event.agent_id).collect();
    let queries = vec![
        agents::query_leaders(agents),
        idempotency::query_first(&with_keys),
        query_revisions(&reports),
        outbox::query_subscribers(),
    ];
    let responses = session.query_pipelined(queries).await?;
    let [leaders, first, revisions, subscribers] =
        <[_; 4]>::try_from(responses).map_err(|_| failed("a query has no result"))?;
    let leaders = agents::read_leaders(leaders)?;
    let mut first = idempotency::read_first(session, &with_keys, first).await?;
    let revisions: BTreeMap<_, _> = read_all(revisions, read_revision)?.into_iter().collect();
    let (mut results, mut accepted) = (Vec::with_capacity(reports.len()), Vec::with_capacity(reports.len()));
    for (EventReport { context, event }, request) in reports.iter().zip(&requests) {
        if let Err(rejected) = leaders.check(event.agent_id, context.process.as_deref()) {
            results.push(Err(rejected));
            continue;
        }
        if let Some((request, first)) = request.as_ref().and_then(|request| Some((request, first.get(request.key())?)))
        {
            results.push(match request.match_first(first) {
                Ok(id) => find_recorded(session, &accepted, id.parse().map_err(failed)?).await?,
                Err(mismatch) => Err(mismatch),
            });
            continue;
        }
        let Some(revision) = revisions.get(&(event.agent_id, event.deployment_object_id)).copied() else {
            let name = event.deployment_object_id.to_string();
            results.push(Err(StoreError::MissingReference { kind: RecordKind::Revision, name }));
            continue;
        };
        // A later report of the same batch may repeat this one.
        first.extend(request.as_ref().map(|request| (request.key().clone(), request.to_first(event.id))));
        accepted.push(AcceptedReport { context, event, revision, request: request.as_ref() });
        results.push(Ok(event.clone()));
    }
    record_accepted(session, &accepted, &outbox::read_subscribers(subscribers)?).await?;
    Ok(results)
}

/// Returns a report as a request, if it has an idempotency key.
fn to_request(EventReport { context, event }: &EventReport) -> Option<IdempotentRequest> {
    let revision = event.deployment_object_id;
    let content = || json!([event.agent_id, revision, event.event_type, event.status, event.message]);
    IdempotentRequest::new(context, RESOURCE_TYPE, content)
}

/// Returns the event that an earlier request has recorded, or an earlier report of the same batch. The outer error is one of the
/// database.
async fn find_recorded(
    session: &mut dyn Session,
    accepted: &[AcceptedReport<'_>],
    id: EventId,
) -> Result<ReportResult, StoreError> {
    match accepted.iter().find(|accepted| accepted.event.id == id) {
        Some(accepted) => Ok(Ok(accepted.event.clone())),
        None => separate_error(get(session, id).await),
    }
}

/// Query for the revisions of events, if their agents may report about them; [`read_revision`] reads a row.
fn query_revisions(reports: &[EventReport]) -> PipelinedQuery {
    let pairs: BTreeSet<(AgentId, RevisionId)> =
        reports.iter().map(|report| (report.event.agent_id, report.event.deployment_object_id)).collect();
    let sql = "WITH batch (agent_id, revision_id) AS ({TEXT, TEXT})
               SELECT batch.agent_id, revisions.id, revisions.stack_id, sequence, is_deletion_marker FROM batch
                 JOIN revisions ON revisions.id = batch.revision_id
                   AND (revisions.agent_id IS NULL OR revisions.agent_id = batch.agent_id)
                 JOIN assignments ON assignments.stack_id = revisions.stack_id AND assignments.agent_id = batch.agent_id";
    PipelinedQuery::Batch(sql, pairs.into_iter().map(|(agent, revision)| row![agent, revision]).collect())
}

fn read_revision(row: &mut Row) -> Result<((AgentId, RevisionId), ReportedRevision), StoreError> {
    let (agent, id, stack, sequence) = (row.take()?, row.take()?, row.take()?, row.take()?);
    Ok(((agent, id), ReportedRevision { id, stack, sequence, is_deletion_marker: row.take()? }))
}

async fn record_accepted(
    session: &mut dyn Session,
    accepted: &[AcceptedReport<'_>],
    subscribers: &[Subscriber],
) -> Result<(), StoreError> {
    let sql = "WITH batch (id, created_at, agent_id, revision_id, event_type, status, message)
                 AS ({TEXT, BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT})
               INSERT INTO events (id, created_at, agent_id, revision_id, event_type, status, message)
               SELECT * FROM batch";
    let to_row = |AcceptedReport { event, .. }: &AcceptedReport<'_>| {
        row![
            event.id,
            event.created_at,
            event.agent_id,
            event.deployment_object_id,
            &event.event_type,
            event.status.clone(),
            event.message.as_deref(),
        ]
    };
    execute_batch(session, sql, accepted.iter().map(to_row).collect()).await?;
    let created = accepted.iter().filter_map(|accepted| Some((accepted.request?, accepted.event.id.to_string())));
    idempotency::record_all(session, created.collect()).await?;
    let to_outcome = |accepted| Some((accepted, outcome_type(accepted)?));
    let outcomes: Vec<(&AcceptedReport<'_>, EventType)> = accepted.iter().filter_map(to_outcome).collect();
    apply_outcomes(session, &outcomes).await?;
    publish_outcomes(session, &outcomes, subscribers).await
}

/// Returns the type of the message about an outcome; `None` for another event.
fn outcome_type(AcceptedReport { event, revision, .. }: &AcceptedReport<'_>) -> Option<EventType> {
    match (&event.status, revision.is_deletion_marker) {
        (EventStatus::Success, false) => Some(EventType::DeploymentApplied),
        (EventStatus::Success, true) => Some(EventType::DeploymentDeleted),
        (EventStatus::Failure, _) => Some(EventType::DeploymentFailed),
        (EventStatus::Other(_), _) => None,
    }
}

/// Updates the assignments in the order of their outcomes. Of the outcomes of one assignment about revisions, one statement gets the
/// last of the newest revision, which is the one that stays.
async fn apply_outcomes(
    session: &mut dyn Session,
    outcomes: &[(&AcceptedReport<'_>, EventType)],
) -> Result<(), StoreError> {
    // Before any assignment is locked: changes of target states lock the counter first, and then assignments in another order.
    let confirms = |(_, kind): &(&AcceptedReport<'_>, EventType)| *kind == EventType::DeploymentDeleted;
    let version = if outcomes.iter().any(confirms) { Some(counter::next_number(session).await?) } else { None };
    let assignments: BTreeSet<_> =
        outcomes.iter().map(|(report, _)| (report.event.agent_id, report.revision.stack)).collect();
    if version.is_none() && assignments.len() > 1 {
        counter::lock(session).await?;
    }
    let mut last: BTreeMap<(AgentId, StackId), &AcceptedReport<'_>> = BTreeMap::new();
    for outcome @ (accepted, _) in outcomes {
        let assignment = (accepted.event.agent_id, accepted.revision.stack);
        if !accepted.revision.is_deletion_marker {
            let newest = last.entry(assignment).or_insert(accepted);
            if newest.revision.sequence <= accepted.revision.sequence {
                *newest = accepted;
            }
            continue;
        }
        update_assignments(session, std::mem::take(&mut last).into_values()).await?;
        if let Some(version) = version.filter(|_| confirms(outcome)) {
            confirm_removal(session, accepted, version).await?;
        }
        update_assignments(session, [*accepted]).await?;
    }
    update_assignments(session, last.into_values()).await
}

/// Stores outcomes in their assignments, of which each has one.
async fn update_assignments<'a>(
    session: &mut dyn Session,
    outcomes: impl IntoIterator<Item = &'a AcceptedReport<'a>>,
) -> Result<(), StoreError> {
    // A removal that the agent no longer has to carry out has a higher sequence than the revision that it has again.
    let sql = "WITH batch (reported, succeeded, reported_at, agent_id, stack_id, is_removal)
                 AS ({BIGINT, BIGINT, BIGINT, TEXT, TEXT, BIGINT})
               UPDATE assignments SET reported = batch.reported, succeeded = batch.succeeded,
                 reported_at = batch.reported_at
               FROM batch WHERE assignments.agent_id = batch.agent_id AND assignments.stack_id = batch.stack_id
                 AND (assignments.reported IS NULL OR assignments.reported <= batch.reported)
                 AND (batch.is_removal = 0 OR assignments.removal = batch.reported)";
    let to_row = |AcceptedReport { event, revision, .. }: &AcceptedReport<'_>| {
        let (succeeded, is_removal) = (event.status == EventStatus::Success, revision.is_deletion_marker);
        row![revision.sequence, succeeded, event.created_at, event.agent_id, revision.stack, is_removal]
    };
    execute_batch(session, sql, outcomes.into_iter().map(to_row).collect()).await
}

/// Records outcomes in the audit log, and publishes them.
async fn publish_outcomes(
    session: &mut dyn Session,
    outcomes: &[(&AcceptedReport<'_>, EventType)],
    subscribers: &[Subscriber],
) -> Result<(), StoreError> {
    let (mut entries, mut messages) = (Vec::with_capacity(outcomes.len()), Vec::with_capacity(outcomes.len()));
    for (AcceptedReport { context, event, revision, .. }, event_type) in outcomes {
        entries.push(AuditEntry {
            context,
            action: event_type.as_str(),
            resource_type: "agent",
            resource: Some(event.agent_id.to_string()),
            details: Some(json!({"deployment_object_id": revision.id})),
        });
        let data = json!({
            "agent_id": event.agent_id,
            "stack_id": revision.stack,
            "deployment_object_id": revision.id,
            "sequence_id": revision.sequence,
            "status": event.status,
            "message": event.message,
        });
        let (event_type, agent, stack) = (*event_type, Some(event.agent_id), Some(revision.stack));
        messages.push((*context, WebhookEvent { event_type, agent, stack, data }));
    }
    audit::record_all(session, entries).await?;
    outbox::publish_to(session, subscribers, &messages).await
}

/// Confirms the outstanding removal only: a late success of an older one does not cover the stack that the agent has received
/// since.
async fn confirm_removal(
    session: &mut dyn Session,
    AcceptedReport { context, event, revision, .. }: &AcceptedReport<'_>,
    version: Sequence,
) -> Result<(), StoreError> {
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
