//! Which stacks are wanted of which agents, kept as rows, so that what is no longer wanted is noticed and said.
//!
//! A stack is wanted of an agent that it is targeted at, or that shares a label or an annotation with it and is
//! registered with its generator. The rule that everything here keeps: of a stack that is wanted and whose newest
//! revision is no marker, no removal is outstanding; of a stack that the agent has received and that is not wanted,
//! exactly one removal is, or was confirmed. So a desired set holds a stack at most once.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::{AgentId, RevisionId, Sequence, StackId};

use crate::store::records::{NewRevision, Stamp, StoreError};
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Row, Session, Value, all, change, change_each, one, only, row, values};
use crate::store::sql::tables::revisions::{self, Appended};

type Pair = (AgentId, StackId);

/// The pairs that the rule wants, of a query that narrows `agents` and `stacks`.
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

/// Labels, annotations or registrations of an agent have changed.
pub(crate) async fn of_agent_changed(
    session: &mut dyn Session,
    stamp: &Stamp,
    agent: AgentId,
) -> Result<(), StoreError> {
    let known = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND agent_id = ?1";
    settle(session, stamp, wanted_where!("agents.id = ?1"), known, values![agent]).await
}

/// Labels or annotations of a stack have changed.
pub(crate) async fn of_stack_changed(
    session: &mut dyn Session,
    stamp: &Stamp,
    stack: StackId,
) -> Result<(), StoreError> {
    let known = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND stack_id = ?1";
    settle(session, stamp, wanted_where!("stacks.id = ?1"), known, values![stack]).await
}

/// A target has come or gone.
pub(crate) async fn of_pair_changed(
    session: &mut dyn Session,
    stamp: &Stamp,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    let known = "SELECT agent_id, stack_id FROM assignments WHERE wanted = 1 AND agent_id = ?1 AND stack_id = ?2";
    let rule = wanted_where!("agents.id = ?1 AND stacks.id = ?2");
    settle(session, stamp, rule, known, values![agent, stack]).await
}

/// Compares what the rule wants with what is on record, and says what follows.
async fn settle(
    session: &mut dyn Session,
    stamp: &Stamp,
    rule: &'static str,
    known: &'static str,
    values: &[Value],
) -> Result<(), StoreError> {
    let wanted: BTreeSet<Pair> = all(session, rule, values, read_pair).await?.into_iter().collect();
    let known: BTreeSet<Pair> = all(session, known, values, read_pair).await?.into_iter().collect();
    for pair in wanted.difference(&known) {
        now_wanted(session, *pair).await?;
    }
    for pair in known.difference(&wanted) {
        no_longer_wanted(session, stamp, *pair).await?;
    }
    Ok(())
}

/// An instruction to remove it is void, unless the stack's own newest revision is one.
async fn now_wanted(session: &mut dyn Session, (agent, stack): Pair) -> Result<(), StoreError> {
    let sql = "INSERT INTO assignments (agent_id, stack_id, wanted) VALUES (?1, ?2, 1)
               ON CONFLICT (agent_id, stack_id) DO UPDATE SET wanted = 1";
    change(session, sql, values![agent, stack]).await?;
    let sql = "SELECT newest, newest_is_marker FROM stacks WHERE id = ?1";
    let newest = one(session, sql, values![stack], read_newest).await?.unwrap_or_default();
    let Newest { sequence: Some(_), is_marker: false } = newest else { return Ok(()) };
    let sql = "UPDATE assignments SET removal = NULL, confirmed = 0 WHERE agent_id = ?1 AND stack_id = ?2";
    change(session, sql, values![agent, stack]).await?;
    desired_set_changed(session, agent).await
}

/// An agent that has received it is told to remove it, once; any other is not bothered.
async fn no_longer_wanted(session: &mut dyn Session, stamp: &Stamp, (agent, stack): Pair) -> Result<(), StoreError> {
    // First, and with a condition of its own: somebody may be handing it out just now.
    let sql = "DELETE FROM assignments WHERE agent_id = ?1 AND stack_id = ?2 AND received = 0";
    if change(session, sql, values![agent, stack]).await? > 0 {
        return desired_set_changed(session, agent).await;
    }
    let sql = "UPDATE assignments SET wanted = 0 WHERE agent_id = ?1 AND stack_id = ?2 AND removal IS NOT NULL";
    if change(session, sql, values![agent, stack]).await? > 0 {
        // The stack's own marker says the same; one is enough.
        return Ok(());
    }
    tell_to_remove(session, stamp, (agent, stack)).await
}

/// An instruction for one agent.
pub(crate) async fn tell_to_remove(
    session: &mut dyn Session,
    stamp: &Stamp,
    (agent, stack): Pair,
) -> Result<(), StoreError> {
    let sequence = epoch::tick(session).await?;
    let id = RevisionId::mint_at(stamp.at, &stamp.entropy);
    let removal = NewRevision { id, stack, yaml_content: String::new(), is_deletion_marker: true };
    revisions::insert(session, &[Appended { stamp, revision: &removal, sequence, only_for: Some(agent) }]).await?;
    let sql = "UPDATE assignments SET wanted = 0, removal = ?1, confirmed = 0 WHERE agent_id = ?2 AND stack_id = ?3";
    change(session, sql, values![sequence, agent, stack]).await?;
    epoch::desired_set_changed(session, agent, sequence).await
}

/// A new revision is wanted wherever the stack is; a marker is to be confirmed by those that have received it.
pub(crate) async fn revisions_were_appended(
    session: &mut dyn Session,
    newest: &BTreeMap<StackId, Newest>,
    concerned: &BTreeMap<StackId, Vec<AgentId>>,
) -> Result<(), StoreError> {
    let telling = newest.iter().filter(|(stack, _)| concerned.get(*stack).is_some_and(|agents| !agents.is_empty()));
    let (markers, others): (Vec<_>, Vec<_>) = telling.partition(|(_, newest)| newest.is_marker);
    let rows = |stacks: Vec<(&StackId, &Newest)>| {
        stacks.into_iter().map(|(stack, newest)| row![*stack, newest.sequence]).collect()
    };
    let sql = "WITH batch (stack_id, sequence) AS ({TEXT, BIGINT})
               UPDATE assignments SET removal = batch.sequence, confirmed = 0 FROM batch
               WHERE assignments.stack_id = batch.stack_id AND received = 1 AND (wanted = 1 OR removal IS NULL)";
    change_each(session, sql, rows(markers)).await?;
    let sql = "WITH batch (stack_id, sequence) AS ({TEXT, BIGINT})
               UPDATE assignments SET removal = NULL, confirmed = 0 FROM batch
               WHERE assignments.stack_id = batch.stack_id AND wanted = 1 AND removal IS NOT NULL";
    change_each(session, sql, rows(others)).await?;
    let mut versions = BTreeMap::new();
    for (stack, newest) in newest {
        for agent in concerned.get(stack).into_iter().flatten() {
            versions
                .entry(*agent)
                .and_modify(|version| *version = newest.sequence.max(*version))
                .or_insert(newest.sequence);
        }
    }
    let versions = versions.into_iter().filter_map(|(agent, version)| version.map(|version| (agent, version)));
    epoch::desired_sets_changed(session, versions.collect()).await
}

/// Every agent that ever received the stack has to confirm the marker, whether it is still wanted there or not.
pub(crate) async fn stack_was_deleted(
    session: &mut dyn Session,
    stack: StackId,
    marker: Sequence,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM assignments WHERE stack_id = ?1 AND received = 0";
    change(session, sql, values![stack]).await?;
    let sql = "UPDATE assignments SET wanted = 0, removal = ?1, confirmed = 0 WHERE stack_id = ?2";
    change(session, sql, values![marker, stack]).await?;
    let sql = "SELECT agent_id FROM assignments WHERE stack_id = ?1";
    let concerned = all(session, sql, values![stack], only).await?;
    epoch::desired_sets_changed(session, concerned.into_iter().map(|agent| (agent, marker)).collect()).await
}

/// Nobody will ask any more; what it received stays on record as owed.
pub(crate) async fn agent_was_deleted(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    change(session, "DELETE FROM assignments WHERE agent_id = ?1 AND received = 0", values![agent]).await?;
    change(session, "UPDATE assignments SET wanted = 0 WHERE agent_id = ?1", values![agent]).await?;
    desired_set_changed(session, agent).await
}

pub(crate) async fn desired_set_changed(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let version = epoch::tick(session).await?;
    epoch::desired_set_changed(session, agent, version).await
}

fn read_pair(row: &mut Row) -> Result<Pair, StoreError> {
    Ok((row.take()?, row.take()?))
}

/// The newest revision of a stack, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest {
    pub sequence: Option<Sequence>,
    pub is_marker: bool,
}

fn read_newest(row: &mut Row) -> Result<Newest, StoreError> {
    Ok(Newest { sequence: row.take()?, is_marker: row.take()? })
}
