//! Submissions of revisions: those that wait together run together, each statement once for all of them.
//!
//! Everything is checked before anything but the counter is written, so that a rejected submission affects no other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, GeneratorId, Sequence, StackId};
use tokio::sync::oneshot;

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, NewRevision, RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::matching;
use crate::store::sql::shared::audit::AuditEntry;
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::outbox::{Subscriber, WebhookEvent};
use crate::store::sql::shared::session::{PipelinedQuery, Session, failed, read_all};
use crate::store::sql::shared::values::{Row, row};
use crate::store::sql::shared::{audit, counter, idempotency, outbox};
use crate::store::sql::tables::revisions;
use crate::store::sql::tables::revisions::NumberedRevision;

const RESOURCE_TYPE: &str = "deployment_object";

/// A revision to append, and the request that submits it.
#[derive(Debug)]
pub(crate) struct Submission {
    pub context: WriteContext,
    pub revision: NewRevision,
}

/// Result of a submission.
pub(crate) type SubmissionResult = Result<DeploymentObject, StoreError>;

/// A submission whose caller awaits its result.
pub(crate) struct PendingSubmission {
    pub submission: Submission,
    pub caller: oneshot::Sender<SubmissionResult>,
}

impl PendingSubmission {
    pub(crate) fn new(submission: Submission) -> (Self, oneshot::Receiver<SubmissionResult>) {
        let (caller, result) = oneshot::channel();
        (Self { submission, caller }, result)
    }
}

/// Sends callers the results of their submissions, in the same order; if the database failed, its error to all of them.
pub(crate) fn send_results(
    callers: Vec<oneshot::Sender<SubmissionResult>>,
    results: Result<Vec<SubmissionResult>, StoreError>,
) {
    let results = results.unwrap_or_else(|error| callers.iter().map(|_| Err(error.clone())).collect());
    for (caller, result) in callers.into_iter().zip(results) {
        // The caller may have stopped waiting; its submission is durable all the same.
        let _ = caller.send(result);
    }
}

/// Appends one revision.
pub(crate) async fn append(session: &mut dyn Session, submission: Submission) -> SubmissionResult {
    let result = append_all(session, vec![submission]).await?.pop();
    result.unwrap_or_else(|| Err(failed("a submission has no result")))
}

/// Appends revisions, and returns as many results as submissions, in their order. An error is one of the database; then
/// nothing was appended.
pub(crate) async fn append_all(
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
    let repeats =
        |submission: &Submission| idempotency::request_key(&submission.context).is_some_and(|key| !seen.insert(key));
    submissions.iter().position(repeats).unwrap_or(submissions.len())
}

async fn append_round(session: &mut dyn Session, round: &[Submission]) -> Result<Vec<SubmissionResult>, StoreError> {
    // The counter first: it blocks other changes, so the data that is read after it stays valid.
    let count = i64::try_from(round.len()).map_err(failed)?;
    let contexts: Vec<&WriteContext> = round.iter().map(|submission| &submission.context).collect();
    let queries = vec![
        counter::take_numbers(count),
        idempotency::query_created(&contexts),
        query_stacks(round),
        outbox::query_subscribers(),
    ];
    let responses = session.query_pipelined(queries).await?;
    let [numbers, created, stacks, subscribers] =
        <[_; 4]>::try_from(responses).map_err(|_| failed("a query has no result"))?;
    let (last, created) = (counter::read_last_number(numbers)?, idempotency::read_created(created)?);
    let (stacks, subscribers) = (read_stacks(stacks)?, outbox::read_subscribers(subscribers)?);
    let (mut results, mut accepted) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
    for (number, Submission { context, revision }) in (last.0 - count + 1..).zip(round) {
        let repeated = idempotency::request_key(context).and_then(|key| created.get(&key));
        let owner = require(stacks.owners.get(&revision.stack).copied(), RecordKind::Stack, revision.stack);
        results.push(match (repeated, owner.and_then(|owner| check_owner(context, owner))) {
            (Some(resource), _) => Some(find_created(session, resource).await?),
            (None, Err(rejected)) => Some(Err(rejected)),
            (None, Ok(owner)) => {
                let numbered = NumberedRevision { context, revision, sequence: Sequence(number), only_for: None };
                accepted.push((numbered, owner));
                None
            }
        });
    }
    let mut appended = append_accepted(session, &accepted, &stacks, &subscribers).await?.into_iter();
    let missing = || Err(failed("an accepted submission has no revision"));
    Ok(results.into_iter().map(|result| result.unwrap_or_else(|| appended.next().map_or_else(missing, Ok))).collect())
}

/// Checks that the actor may append to a stack: a generator only to its own, an agent to none.
fn check_owner(context: &WriteContext, owner: GeneratorId) -> Result<GeneratorId, StoreError> {
    match context.actor {
        None | Some(KeyHolder::Admin) => Ok(owner),
        Some(KeyHolder::Generator(generator)) if generator == owner => Ok(owner),
        Some(KeyHolder::Generator(_) | KeyHolder::Agent(_)) => Err(StoreError::NotOwner),
    }
}

/// Owners of the stacks of a round, and the agents that a new revision affects.
#[derive(Default)]
struct RoundStacks {
    /// Generators of the stacks that are not deleted.
    owners: BTreeMap<StackId, GeneratorId>,
    /// Agents whose target state a new revision may change.
    affected: BTreeMap<StackId, Vec<AgentId>>,
}

fn query_stacks(round: &[Submission]) -> PipelinedQuery {
    let ids: BTreeSet<StackId> = round.iter().map(|submission| submission.revision.stack).collect();
    let sql = "WITH batch (stack_id) AS ({TEXT})
               SELECT stacks.id, generator_id, agent_id FROM batch
                 JOIN stacks ON stacks.id = batch.stack_id AND deleted_at IS NULL
                 LEFT JOIN assignments ON assignments.stack_id = batch.stack_id
                   AND (wanted = 1 OR (received = 1 AND removal IS NULL))";
    PipelinedQuery::Batch(sql, ids.into_iter().map(|stack| row![stack]).collect())
}

fn read_stacks(rows: Vec<Row>) -> Result<RoundStacks, StoreError> {
    let mut stacks = RoundStacks::default();
    for (stack, owner, agent) in read_all(rows, |row| Ok((row.take()?, row.take()?, row.take()?)))? {
        let agent: Option<AgentId> = agent;
        stacks.owners.insert(stack, owner);
        stacks.affected.entry(stack).or_default().extend(agent);
    }
    Ok(stacks)
}

/// Returns the revision that the first request with the same idempotency key created. The outer error is one of the
/// database, and fails the whole round.
async fn find_created(session: &mut dyn Session, resource: &str) -> Result<SubmissionResult, StoreError> {
    match idempotency::parse_resource(resource, RESOURCE_TYPE) {
        Ok(id) => Ok(Ok(revisions::get(session, id.parse().map_err(failed)?).await?.revision)),
        Err(reused) => Ok(Err(reused)),
    }
}

async fn append_accepted(
    session: &mut dyn Session,
    accepted: &[(NumberedRevision<'_>, GeneratorId)],
    stacks: &RoundStacks,
    subscribers: &[Subscriber],
) -> Result<Vec<DeploymentObject>, StoreError> {
    if accepted.is_empty() {
        return Ok(Vec::new());
    }
    let numbered: Vec<NumberedRevision<'_>> = accepted.iter().map(|(numbered, _)| *numbered).collect();
    let appended = revisions::insert(session, &numbered).await?;
    matching::handle_appended_revisions(session, &revisions::find_newest(&numbered), &stacks.affected).await?;
    let created = numbered.iter().map(|numbered| (numbered.context, numbered.revision.id.to_string()));
    idempotency::record_all(session, RESOURCE_TYPE, created.collect()).await?;
    let (mut entries, mut events) = (Vec::new(), Vec::new());
    for ((NumberedRevision { context, revision, .. }, owner), appended) in accepted.iter().zip(&appended) {
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
        events.push((*context, WebhookEvent { event_type: EventType::DeploymentCreated, agent: None, stack, data }));
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
