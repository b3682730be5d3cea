//! Submissions: those that wait together are carried out together, each statement once for all of them.
//!
//! Everything is checked before anything but the counter is written, so that one which is refused disturbs no other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, GeneratorId, Sequence, StackId};
use tokio::sync::oneshot;

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, NewRevision, Noun, Stamp, StoreError};
use crate::store::sql::assignments::matching;
use crate::store::sql::shared::audit::{self, Entry};
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::found;
use crate::store::sql::shared::outbox::{self as announce, Happening, Subscriber};
use crate::store::sql::shared::session::{Question, Row, Session, failed, read_all, row};
use crate::store::sql::tables::revisions::{self, Appended};

const WHAT: &str = "deployment_object";

/// A revision that somebody wants to append.
#[derive(Debug)]
pub(crate) struct Submission {
    pub stamp: Stamp,
    pub revision: NewRevision,
}

/// What became of a submission.
pub(crate) type Outcome = Result<DeploymentObject, StoreError>;

/// A submission and its caller.
pub(crate) struct Waiting {
    pub submission: Submission,
    pub caller: oneshot::Sender<Outcome>,
}

impl Waiting {
    pub(crate) fn new(submission: Submission) -> (Self, oneshot::Receiver<Outcome>) {
        let (caller, answer) = oneshot::channel();
        (Self { submission, caller }, answer)
    }
}

/// Tells callers what became of their submissions, in the same order; all the same if the database failed.
pub(crate) fn answer(callers: Vec<oneshot::Sender<Outcome>>, outcomes: Result<Vec<Outcome>, StoreError>) {
    let outcomes = outcomes.unwrap_or_else(|error| callers.iter().map(|_| Err(error.clone())).collect());
    for (caller, outcome) in callers.into_iter().zip(outcomes) {
        // A caller that has gone away is told nothing; what it asked for is done all the same.
        let _ = caller.send(outcome);
    }
}

/// One alone.
pub(crate) async fn append(session: &mut dyn Session, submission: Submission) -> Outcome {
    let outcome = append_all(session, vec![submission]).await?.pop();
    outcome.unwrap_or_else(|| Err(failed("a submission has no outcome")))
}

/// As many outcomes as submissions, in their order. An error is of the database, and then nothing is done.
pub(crate) async fn append_all(
    session: &mut dyn Session,
    submissions: Vec<Submission>,
) -> Result<Vec<Outcome>, StoreError> {
    let mut outcomes = Vec::with_capacity(submissions.len());
    let mut rest = submissions.as_slice();
    while !rest.is_empty() {
        let (round, later) = rest.split_at(without_repeated_key(rest));
        outcomes.extend(append_round(session, round).await?);
        rest = later;
    }
    Ok(outcomes)
}

/// How many come before one that repeats the key of an earlier one: that one has to find what the first has made.
fn without_repeated_key(submissions: &[Submission]) -> usize {
    let mut seen = BTreeSet::new();
    let repeats = |submission: &Submission| once::mark(&submission.stamp).is_some_and(|mark| !seen.insert(mark));
    submissions.iter().position(repeats).unwrap_or(submissions.len())
}

async fn append_round(session: &mut dyn Session, round: &[Submission]) -> Result<Vec<Outcome>, StoreError> {
    // The counter first: whoever else changes something waits, and what is read after it stays so.
    let count = i64::try_from(round.len()).map_err(failed)?;
    let stamps: Vec<&Stamp> = round.iter().map(|submission| &submission.stamp).collect();
    let questions =
        vec![epoch::ask_ticks(count), once::ask_made_before(&stamps), ask_stacks(round), announce::ask_subscribers()];
    let answers = session.query_together(questions).await?;
    let [ticks, made, stacks, subscribers] =
        <[_; 4]>::try_from(answers).map_err(|_| failed("a question has no answer"))?;
    let (last, made) = (epoch::read_ticks(ticks)?, once::read_made_before(made)?);
    let (stacks, subscribers) = (read_stacks(stacks)?, announce::read_subscribers(subscribers)?);
    let (mut settled, mut accepted) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
    for (number, Submission { stamp, revision }) in (last.0 - count + 1..).zip(round) {
        let before = once::mark(stamp).and_then(|mark| made.get(&mark));
        let owner = found(stacks.owners.get(&revision.stack).copied(), Noun::Stack, revision.stack);
        settled.push(match (before, owner.and_then(|owner| theirs(stamp, owner))) {
            (Some(resource), _) => Some(made_before(session, resource).await?),
            (None, Err(refused)) => Some(Err(refused)),
            (None, Ok(owner)) => {
                let appended = Appended { stamp, revision, sequence: Sequence(number), only_for: None };
                accepted.push((appended, owner));
                None
            }
        });
    }
    let mut objects = append_accepted(session, &accepted, &stacks, &subscribers).await?.into_iter();
    let missing = || Err(failed("an accepted submission has no object"));
    Ok(settled.into_iter().map(|outcome| outcome.unwrap_or_else(|| objects.next().map_or_else(missing, Ok))).collect())
}

/// A generator appends to its own stacks, and an agent to none.
fn theirs(stamp: &Stamp, owner: GeneratorId) -> Result<GeneratorId, StoreError> {
    match stamp.actor {
        None | Some(KeyHolder::Admin) => Ok(owner),
        Some(KeyHolder::Generator(generator)) if generator == owner => Ok(owner),
        Some(KeyHolder::Generator(_) | KeyHolder::Agent(_)) => Err(StoreError::NotTheirs),
    }
}

/// What there is to know about the stacks of a round.
#[derive(Default)]
struct Stacks {
    /// The generators of those that live.
    owners: BTreeMap<StackId, GeneratorId>,
    /// The agents to which a new revision may matter.
    concerned: BTreeMap<StackId, Vec<AgentId>>,
}

fn ask_stacks(round: &[Submission]) -> Question {
    let ids: BTreeSet<StackId> = round.iter().map(|submission| submission.revision.stack).collect();
    let sql = "WITH batch (stack_id) AS ({TEXT})
               SELECT stacks.id, generator_id, agent_id FROM batch
                 JOIN stacks ON stacks.id = batch.stack_id AND deleted_at IS NULL
                 LEFT JOIN assignments ON assignments.stack_id = batch.stack_id
                   AND (wanted = 1 OR (received = 1 AND removal IS NULL))";
    Question::Each(sql, ids.into_iter().map(|stack| row![stack]).collect())
}

fn read_stacks(rows: Vec<Row>) -> Result<Stacks, StoreError> {
    let mut stacks = Stacks::default();
    for (stack, owner, agent) in read_all(rows, |row| Ok((row.take()?, row.take()?, row.take()?)))? {
        let agent: Option<AgentId> = agent;
        stacks.owners.insert(stack, owner);
        stacks.concerned.entry(stack).or_default().extend(agent);
    }
    Ok(stacks)
}

/// What the first request with the same key made. Only a failure of the database is an error of all.
async fn made_before(session: &mut dyn Session, resource: &str) -> Result<Outcome, StoreError> {
    match once::id_of(resource, WHAT) {
        Ok(id) => Ok(Ok(revisions::get(session, id.parse().map_err(failed)?).await?.object)),
        Err(reused) => Ok(Err(reused)),
    }
}

async fn append_accepted(
    session: &mut dyn Session,
    accepted: &[(Appended<'_>, GeneratorId)],
    stacks: &Stacks,
    subscribers: &[Subscriber],
) -> Result<Vec<DeploymentObject>, StoreError> {
    if accepted.is_empty() {
        return Ok(Vec::new());
    }
    let appended: Vec<Appended<'_>> = accepted.iter().map(|(appended, _)| *appended).collect();
    let objects = revisions::insert(session, &appended).await?;
    matching::revisions_were_appended(session, &revisions::newest_of(&appended), &stacks.concerned).await?;
    let made = appended.iter().map(|appended| (appended.stamp, appended.revision.id.to_string()));
    once::remember_all(session, WHAT, made.collect()).await?;
    let (mut entries, mut happenings) = (Vec::new(), Vec::new());
    for ((Appended { stamp, revision, .. }, owner), object) in accepted.iter().zip(&objects) {
        let data = told(object, *owner);
        let resource = Some(revision.id.to_string());
        let details = Some(data.clone());
        entries.push(Entry { stamp, action: "deployment_object.created", resource_type: WHAT, resource, details });
        let stack = Some(revision.stack);
        happenings.push((*stamp, Happening { event: EventType::DeploymentCreated, agent: None, stack, data }));
    }
    audit::record_all(session, entries).await?;
    announce::announce_to(session, subscribers, &happenings).await?;
    Ok(objects)
}

/// What the audit log and subscribers get to read of a new revision: never its content.
fn told(object: &DeploymentObject, owner: GeneratorId) -> Json {
    json!({
        "deployment_object_id": object.id,
        "stack_id": object.stack_id,
        "generator_id": owner,
        "sequence_id": object.sequence_id,
        "yaml_checksum": object.yaml_checksum,
        "is_deletion_marker": object.is_deletion_marker,
    })
}
