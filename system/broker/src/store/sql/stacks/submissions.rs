//! Submissions of revisions: those that wait together run together, each statement once for all of them.
//!
//! Everything is checked before anything but the counter is written, so that a rejected submission affects no other.

use std::collections::{BTreeMap, BTreeSet};

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, NewRevision, RecordKind, StoreError, StoreFuture, WriteContext};
use crate::store::sql::assignments::matching;
use crate::store::sql::group::{Grouped, separate_error};
use crate::store::sql::shared::audit::AuditEntry;
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::outbox::{Subscriber, WebhookEvent};
use crate::store::sql::shared::session::{PipelinedQuery, Session, failed, read_all};
use crate::store::sql::shared::values::{Row, row};
use crate::store::sql::shared::{audit, counter, idempotency, outbox};
use crate::store::sql::tables::revisions;
use crate::store::sql::tables::revisions::NumberedRevision;
use serde_json::{Value as Json, json};
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, Checksum, GeneratorId, Sequence, StackId};

const RESOURCE_TYPE: &str = "deployment_object";

/// A revision to append, and the request that submits it.
#[derive(Debug)]
pub(crate) struct Submission {
    pub context: WriteContext,
    pub revision: NewRevision,
}

impl Grouped for Submission {
    type Output = DeploymentObject;

    fn run_all(session: &mut dyn Session, operations: Vec<Self>) -> StoreFuture<'_, Vec<SubmissionResult>> {
        Box::pin(append_all(session, operations))
    }
}

/// Result of a submission.
type SubmissionResult = Result<DeploymentObject, StoreError>;

async fn append_all(
    session: &mut dyn Session,
    submissions: Vec<Submission>,
) -> Result<Vec<SubmissionResult>, StoreError> {
    let mut results = Vec::with_capacity(submissions.len());
    let mut rest = submissions.as_slice();
    while !rest.is_empty() {
        let (round, later) = rest.split_at(count_distinct_keys(rest));
        results.extend(append_round(session, round).await?);
        rest = later;
    }
    Ok(results)
}

/// Returns the number of submissions before one that repeats the idempotency key of an earlier one: the repetition must
/// find the revision that the first one has created.
fn count_distinct_keys(submissions: &[Submission]) -> usize {
    let mut seen = BTreeSet::new();
    let keys =
        submissions.iter().map(|Submission { context, .. }| Some((context.actor, context.idempotency_key.as_ref()?)));
    keys.enumerate()
        .find_map(|(index, key)| key.filter(|key| !seen.insert(*key)).map(|_| index))
        .unwrap_or(submissions.len())
}

/// Returns a submission as a request, if it has an idempotency key.
fn to_request(Submission { context, revision }: &Submission) -> Option<IdempotentRequest> {
    let content = || json!([revision.stack, Checksum::compute(&revision.yaml_content), revision.is_deletion_marker]);
    IdempotentRequest::new(context, RESOURCE_TYPE, content)
}

async fn append_round(session: &mut dyn Session, round: &[Submission]) -> Result<Vec<SubmissionResult>, StoreError> {
    // The counter first: it blocks other changes, so the data that is read after it stays valid.
    let count = i64::try_from(round.len()).map_err(failed)?;
    let requests: Vec<Option<IdempotentRequest>> = round.iter().map(to_request).collect();
    let with_keys: Vec<&IdempotentRequest> = requests.iter().flatten().collect();
    let queries = vec![
        counter::take_numbers(count),
        idempotency::query_first(&with_keys),
        query_stacks(round),
        outbox::query_subscribers(),
    ];
    let responses = session.query_pipelined(queries).await?;
    let [numbers, first, stacks, subscribers] =
        <[_; 4]>::try_from(responses).map_err(|_| failed("a query has no result"))?;
    let last = counter::read_taken(session, numbers, count)?;
    let first = idempotency::read_first(session, &with_keys, first).await?;
    let (stacks, subscribers) = (read_stacks(stacks)?, outbox::read_subscribers(subscribers)?);
    let (mut results, mut accepted) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
    for ((number, Submission { context, revision }), request) in (last.0 - count + 1..).zip(round).zip(&requests) {
        let repeated = request.as_ref().and_then(|request| Some((request, first.get(request.key())?)));
        let owner = require(stacks.owners.get(&revision.stack).copied(), RecordKind::Stack, revision.stack);
        results.push(match (repeated, owner.and_then(|owner| check_owner(context, owner))) {
            (Some((request, first)), _) => Some(find_created(session, request.match_first(first)).await?),
            (None, Err(rejected)) => Some(Err(rejected)),
            (None, Ok(owner)) => {
                let numbered = NumberedRevision { context, revision, sequence: Sequence(number), only_for: None };
                accepted.push(AcceptedSubmission { numbered, owner, request: request.as_ref() });
                None
            }
        });
    }
    let mut appended = append_accepted(session, &accepted, &stacks, &subscribers).await?.into_iter();
    let missing = || Err(failed("an accepted submission has no revision"));
    Ok(results.into_iter().map(|result| result.unwrap_or_else(|| appended.next().map_or_else(missing, Ok))).collect())
}

/// A submission that passed every check.
struct AcceptedSubmission<'a> {
    numbered: NumberedRevision<'a>,
    owner: GeneratorId,
    request: Option<&'a IdempotentRequest>,
}

/// Checks that the actor may append to a stack: a generator that is active only to its own, an agent to none.
fn check_owner(context: &WriteContext, owner: Owner) -> Result<GeneratorId, StoreError> {
    match context.actor {
        None | Some(KeyHolder::Admin(_)) => Ok(owner.generator),
        Some(KeyHolder::Generator(generator)) if generator == owner.generator && owner.is_active => Ok(generator),
        Some(KeyHolder::Generator(generator)) if generator == owner.generator => Err(StoreError::GeneratorInactive),
        Some(KeyHolder::Generator(_) | KeyHolder::Agent(_)) => Err(StoreError::NotOwner),
    }
}

/// Generator of a stack.
#[derive(Clone, Copy)]
struct Owner {
    generator: GeneratorId,
    is_active: bool,
}

/// Owners of the stacks of a round, and the agents that a new revision affects.
#[derive(Default)]
struct RoundStacks {
    /// Generators of the stacks that are not deleted.
    owners: BTreeMap<StackId, Owner>,
    /// Agents whose target state a new revision may change.
    affected: BTreeMap<StackId, Vec<AgentId>>,
}

fn query_stacks(round: &[Submission]) -> PipelinedQuery {
    let ids: BTreeSet<StackId> = round.iter().map(|submission| submission.revision.stack).collect();
    let sql = "WITH batch (stack_id) AS ({TEXT})
               SELECT stacks.id, generator_id, is_active, agent_id FROM batch
                 JOIN stacks ON stacks.id = batch.stack_id AND stacks.deleted_at IS NULL
                 JOIN generators ON generators.id = stacks.generator_id
                 LEFT JOIN assignments ON assignments.stack_id = batch.stack_id
                   AND (wanted = 1 OR (received = 1 AND removal IS NULL))";
    PipelinedQuery::Batch(sql, ids.into_iter().map(|stack| row![stack]).collect())
}

fn read_stacks(rows: Vec<Row>) -> Result<RoundStacks, StoreError> {
    let mut stacks = RoundStacks::default();
    let read = |row: &mut Row| Ok((row.take()?, Owner { generator: row.take()?, is_active: row.take()? }, row.take()?));
    for (stack, owner, agent) in read_all(rows, read)? {
        let agent: Option<AgentId> = agent;
        stacks.owners.insert(stack, owner);
        stacks.affected.entry(stack).or_default().extend(agent);
    }
    Ok(stacks)
}

/// Returns the revision that the first request with the same idempotency key created. The outer error is one of the
/// database, and fails the whole round.
async fn find_created(
    session: &mut dyn Session,
    created: Result<String, StoreError>,
) -> Result<SubmissionResult, StoreError> {
    match created {
        Ok(id) => {
            let found = revisions::get(session, id.parse().map_err(failed)?).await;
            separate_error(found.map(|found| found.revision))
        }
        Err(mismatch) => Ok(Err(mismatch)),
    }
}

async fn append_accepted(
    session: &mut dyn Session,
    accepted: &[AcceptedSubmission<'_>],
    stacks: &RoundStacks,
    subscribers: &[Subscriber],
) -> Result<Vec<DeploymentObject>, StoreError> {
    if accepted.is_empty() {
        return Ok(Vec::new());
    }
    let numbered: Vec<NumberedRevision<'_>> = accepted.iter().map(|accepted| accepted.numbered).collect();
    let appended = revisions::insert(session, &numbered).await?;
    matching::handle_appended_revisions(session, &revisions::find_newest(&numbered), &stacks.affected).await?;
    let created = accepted.iter().filter_map(|accepted| Some((accepted.request?, &accepted.numbered.revision.id)));
    idempotency::record_all(session, created.map(|(request, id)| (request, id.to_string())).collect()).await?;
    let (mut entries, mut events) = (Vec::new(), Vec::new());
    for (AcceptedSubmission { numbered, owner, .. }, appended) in accepted.iter().zip(&appended) {
        let NumberedRevision { context, revision, .. } = *numbered;
        let data = summarize(appended, *owner);
        let resource = Some(revision.id.to_string());
        let details = Some(data.clone());
        entries.push(AuditEntry {
            context,
            action: "deployment_object.created",
            resource_type: RESOURCE_TYPE,
            resource,
            details,
        });
        let stack = Some(revision.stack);
        events.push((context, WebhookEvent { event_type: EventType::DeploymentCreated, agent: None, stack, data }));
    }
    audit::record_all(session, entries).await?;
    outbox::publish_to(session, subscribers, &events).await?;
    Ok(appended)
}

/// Returns the parts of a new revision that the audit log and subscribers receive: never its bundle.
fn summarize(revision: &DeploymentObject, owner: GeneratorId) -> Json {
    json!({
        "deployment_object_id": revision.id,
        "stack_id": revision.stack_id,
        "generator_id": owner,
        "sequence_id": revision.sequence_id,
        "yaml_checksum": revision.yaml_checksum,
        "is_deletion_marker": revision.is_deletion_marker,
    })
}
