//! Assigns stacks to agents. Assignments are rows, so that a stack which an agent should no longer have is noticed and
//! gets a removal.
//!
//! An agent should have a stack (column `wanted`) that is targeted at it, or that shares a label or an annotation with
//! it if the agent is registered with the stack's generator. Invariant: a wanted stack whose newest revision is not a
//! deletion marker has no outstanding removal; a stack that the agent has received and that is not wanted has exactly
//! one removal, outstanding or confirmed. So a target state contains a stack at most once.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::{AgentId, RevisionId, Sequence, StackId};

use crate::store::records::{NewRevision, StoreError, WriteContext};
use crate::store::sql::shared::session::{Session, execute, execute_batch, fetch_all, fetch_batch};
use crate::store::sql::shared::values::{Row, Value, row, values};
use crate::store::sql::shared::{changes, counter};
use crate::store::sql::tables::revisions;
use crate::store::sql::tables::revisions::{NewestSequence, NumberedRevision};

/// An agent and a stack.
type Pair = (AgentId, StackId);

/// A query of all wanted pairs; the argument is a condition on `agents` and `stacks`.
macro_rules! wanted_where {
    ($narrow:literal) => {
        concat!(
            "SELECT targets.agent_id, targets.stack_id FROM targets
               JOIN agents ON agents.id = targets.agent_id AND agents.deleted_at IS NULL
               JOIN stacks ON stacks.id = targets.stack_id AND stacks.deleted_at IS NULL
             WHERE ",
            $narrow,
            " UNION
             SELECT agents.id, stacks.id FROM agent_labels
               JOIN stack_labels ON stack_labels.label = agent_labels.label
               JOIN agents ON agents.id = agent_labels.agent_id AND agents.deleted_at IS NULL
               JOIN stacks ON stacks.id = stack_labels.stack_id AND stacks.deleted_at IS NULL
               JOIN registrations ON registrations.agent_id = agents.id
                 AND registrations.generator_id = stacks.generator_id
             WHERE ",
            $narrow,
            " UNION
             SELECT agents.id, stacks.id FROM agent_annotations
               JOIN stack_annotations ON stack_annotations.key = agent_annotations.key
                 AND substr(stack_annotations.value, 1, 200) = substr(agent_annotations.value, 1, 200)
                 AND stack_annotations.value = agent_annotations.value
               JOIN agents ON agents.id = agent_annotations.agent_id AND agents.deleted_at IS NULL
               JOIN stacks ON stacks.id = stack_annotations.stack_id AND stacks.deleted_at IS NULL
               JOIN registrations ON registrations.agent_id = agents.id
                 AND registrations.generator_id = stacks.generator_id
             WHERE ",
            $narrow
        )
    };
}

/// Updates the assignments of an agent after its labels, annotations or registrations have changed.
pub(crate) async fn update_agent(
    session: &mut dyn Session,
    context: &WriteContext,
    agent: AgentId,
) -> Result<(), StoreError> {
    let recorded = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND agent_id = ?1";
    update(session, context, wanted_where!("agents.id = ?1"), recorded, values![agent]).await
}

/// Updates the assignments of a stack after its labels or annotations have changed.
pub(crate) async fn update_stack(
    session: &mut dyn Session,
    context: &WriteContext,
    stack: StackId,
) -> Result<(), StoreError> {
    let recorded = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND stack_id = ?1";
    update(session, context, wanted_where!("stacks.id = ?1"), recorded, values![stack]).await
}

/// Updates the assignment of a stack to an agent after its target was added or removed.
pub(crate) async fn update_pair(
    session: &mut dyn Session,
    context: &WriteContext,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    let recorded = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND agent_id = ?1 AND stack_id = ?2";
    let wanted = wanted_where!("agents.id = ?1 AND stacks.id = ?2");
    update(session, context, wanted, recorded, values![agent, stack]).await
}

/// Compares the wanted pairs with those on record, and assigns or unassigns the difference.
async fn update(
    session: &mut dyn Session,
    context: &WriteContext,
    wanted: &'static str,
    recorded: &'static str,
    values: &[Value],
) -> Result<(), StoreError> {
    let wanted: BTreeSet<Pair> = fetch_all(session, wanted, values, read_pair).await?.into_iter().collect();
    let recorded: BTreeSet<Pair> = fetch_all(session, recorded, values, read_pair).await?.into_iter().collect();
    assign(session, wanted.difference(&recorded).copied().collect()).await?;
    unassign(session, context, recorded.difference(&wanted).copied().collect()).await
}

/// Assigns stacks to agents. This cancels their removals, unless the stack's newest revision is a deletion marker.
async fn assign(session: &mut dyn Session, pairs: BTreeSet<Pair>) -> Result<(), StoreError> {
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               INSERT INTO assignments (agent_id, stack_id, wanted) SELECT agent_id, stack_id, 1 FROM batch WHERE true
               ON CONFLICT (agent_id, stack_id) DO UPDATE SET wanted = 1, reported = NULL, succeeded = 0, reported_at = NULL,
                 status_sequence = NULL, status_summary = NULL";
    execute_batch(session, sql, to_rows(&pairs)).await?;
    // Reports about a removal have a higher sequence than the revision that the agent has again.
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               DELETE FROM stack_status WHERE (agent_id, stack_id) IN (SELECT agent_id, stack_id FROM batch)";
    execute_batch(session, sql, to_rows(&pairs)).await?;
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               SELECT batch.agent_id, batch.stack_id FROM batch JOIN stacks ON stacks.id = batch.stack_id
               WHERE newest IS NOT NULL AND newest_is_marker = 0";
    let delivered: BTreeSet<Pair> = fetch_batch(session, sql, to_rows(&pairs), read_pair).await?.into_iter().collect();
    // A statement of its own: joined with stacks, PostgreSQL would look for the assignments by their stacks alone.
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               UPDATE assignments SET removal = NULL, confirmed = 0
               WHERE (agent_id, stack_id) IN (SELECT agent_id, stack_id FROM batch) AND removal IS NOT NULL";
    execute_batch(session, sql, to_rows(&delivered)).await?;
    let changed = delivered.into_iter().map(|(agent, _)| agent).collect();
    record_changes(session, changed).await
}

/// Takes stacks from agents. An agent that has received the stack gets one removal; for any other the assignment is
/// deleted.
async fn unassign(
    session: &mut dyn Session,
    context: &WriteContext,
    mut pairs: BTreeSet<Pair>,
) -> Result<(), StoreError> {
    // First, and conditional on `received`: a poll may deliver the stack at the same time.
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               DELETE FROM assignments
               WHERE (agent_id, stack_id) IN (SELECT agent_id, stack_id FROM batch) AND received = 0
               RETURNING agent_id, stack_id";
    let deleted: BTreeSet<Pair> = fetch_batch(session, sql, to_rows(&pairs), read_pair).await?.into_iter().collect();
    pairs.retain(|pair| !deleted.contains(pair));
    record_changes(session, deleted.into_iter().map(|(agent, _)| agent).collect()).await?;
    // If there is a removal, it is the deletion marker of the stack.
    let sql = "WITH batch (agent_id, stack_id) AS ({TEXT, TEXT})
               UPDATE assignments SET wanted = 0
               WHERE (agent_id, stack_id) IN (SELECT agent_id, stack_id FROM batch) AND removal IS NOT NULL
               RETURNING agent_id, stack_id";
    let removed: BTreeSet<Pair> = fetch_batch(session, sql, to_rows(&pairs), read_pair).await?.into_iter().collect();
    pairs.retain(|pair| !removed.contains(pair));
    issue_removals(session, context, &pairs).await
}

/// Records that the target states of agents changed, as of the next number of the counter.
async fn record_changes(session: &mut dyn Session, agents: Vec<AgentId>) -> Result<(), StoreError> {
    if agents.is_empty() {
        return Ok(());
    }
    let version = counter::next_number(session).await?;
    changes::record_target_changes(session, agents.into_iter().map(|agent| (agent, version)).collect()).await
}

/// Appends a removal for one agent for each pair.
pub(crate) async fn issue_removals(
    session: &mut dyn Session,
    context: &WriteContext,
    pairs: &BTreeSet<Pair>,
) -> Result<(), StoreError> {
    if pairs.is_empty() {
        return Ok(());
    }
    let taken = counter::next_numbers(session, pairs.len()).await?;
    let removals: Vec<(AgentId, NewRevision)> = pairs.iter().map(|pair| new_removal(context, *pair)).collect();
    let numbered: Vec<NumberedRevision<'_>> = removals
        .iter()
        .zip(taken)
        .map(|((agent, revision), sequence)| NumberedRevision { context, revision, sequence, only_for: Some(*agent) })
        .collect();
    revisions::insert(session, &numbered).await?;
    let sql = "WITH batch (sequence, agent_id, stack_id) AS ({BIGINT, TEXT, TEXT})
               UPDATE assignments SET wanted = 0, removal = batch.sequence, confirmed = 0 FROM batch
               WHERE assignments.agent_id = batch.agent_id AND assignments.stack_id = batch.stack_id";
    let rows = numbered.iter().map(|removal| row![removal.sequence, removal.only_for, removal.revision.stack]);
    execute_batch(session, sql, rows.collect()).await?;
    // Ascending, so that the version of an agent with several removals is the last of them.
    let versions = numbered.iter().filter_map(|removal| Some((removal.only_for?, removal.sequence)));
    changes::record_target_changes(session, versions.collect()).await
}

fn new_removal(context: &WriteContext, (agent, stack): Pair) -> (AgentId, NewRevision) {
    let id = RevisionId::generate_at(context.time, &context.entropy);
    (agent, NewRevision { id, stack, yaml_content: String::new(), is_deletion_marker: true })
}

fn to_rows(pairs: &BTreeSet<Pair>) -> Vec<Vec<Value>> {
    pairs.iter().map(|(agent, stack)| row![*agent, *stack]).collect()
}

/// Updates assignments after revisions were appended: agents that should have the stack get the newest revision, and
/// agents that have received it must confirm a deletion marker.
pub(crate) async fn handle_appended_revisions(
    session: &mut dyn Session,
    newest: &BTreeMap<StackId, NewestSequence>,
    affected: &BTreeMap<StackId, Vec<AgentId>>,
) -> Result<(), StoreError> {
    let affecting = newest.iter().filter(|(stack, _)| affected.get(*stack).is_some_and(|agents| !agents.is_empty()));
    let (markers, others): (Vec<_>, Vec<_>) = affecting.partition(|(_, newest)| newest.is_marker);
    let rows = |stacks: Vec<(&StackId, &NewestSequence)>| {
        stacks.into_iter().map(|(stack, newest)| row![*stack, newest.sequence]).collect()
    };
    // `received` is no condition but part of the value: a poll may deliver the stack at the same time, and only a row that
    // matches waits for it and is read again.
    let sql = "WITH batch (stack_id, sequence) AS ({TEXT, BIGINT})
               UPDATE assignments SET removal = CASE WHEN received = 1 THEN batch.sequence END, confirmed = 0 FROM batch
               WHERE assignments.stack_id = batch.stack_id AND (wanted = 1 OR removal IS NULL)";
    execute_batch(session, sql, rows(markers)).await?;
    let sql = "WITH batch (stack_id, sequence) AS ({TEXT, BIGINT})
               UPDATE assignments SET removal = NULL, confirmed = 0 FROM batch
               WHERE assignments.stack_id = batch.stack_id AND wanted = 1 AND removal IS NOT NULL";
    execute_batch(session, sql, rows(others)).await?;
    let mut versions = BTreeMap::new();
    for (stack, newest) in newest {
        for agent in affected.get(stack).into_iter().flatten() {
            versions
                .entry(*agent)
                .and_modify(|version| *version = newest.sequence.max(*version))
                .or_insert(newest.sequence);
        }
    }
    let versions = versions.into_iter().filter_map(|(agent, version)| version.map(|version| (agent, version)));
    changes::record_target_changes(session, versions.collect()).await
}

/// Updates assignments after stacks were deleted: every agent that ever received one must confirm its deletion marker,
/// even if it should no longer have had the stack.
pub(crate) async fn handle_deleted_stacks(
    session: &mut dyn Session,
    markers: &[NumberedRevision<'_>],
) -> Result<(), StoreError> {
    let sql = "WITH batch (stack_id) AS ({TEXT})
               DELETE FROM assignments WHERE stack_id IN (SELECT stack_id FROM batch) AND received = 0";
    execute_batch(session, sql, markers.iter().map(|marker| row![marker.revision.stack]).collect()).await?;
    let sql = "WITH batch (stack_id, sequence) AS ({TEXT, BIGINT})
               UPDATE assignments SET wanted = 0, removal = batch.sequence, confirmed = 0 FROM batch
               WHERE assignments.stack_id = batch.stack_id RETURNING agent_id, removal";
    let rows = markers.iter().map(|marker| row![marker.revision.stack, marker.sequence]).collect();
    let mut versions: BTreeMap<AgentId, Sequence> = BTreeMap::new();
    for (agent, marker) in fetch_batch(session, sql, rows, |row| Ok((row.take()?, row.take()?))).await? {
        let version = versions.entry(agent).or_insert(marker);
        *version = marker.max(*version);
    }
    changes::record_target_changes(session, versions).await
}

/// Updates assignments after an agent was deleted. It will not poll again; the stacks that it received stay on record.
pub(crate) async fn handle_deleted_agent(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    execute(session, "DELETE FROM assignments WHERE agent_id = ?1 AND received = 0", values![agent]).await?;
    execute(session, "UPDATE assignments SET wanted = 0 WHERE agent_id = ?1", values![agent]).await?;
    changes::record_target_change(session, agent).await
}

fn read_pair(row: &mut Row) -> Result<Pair, StoreError> {
    Ok((row.take()?, row.take()?))
}
