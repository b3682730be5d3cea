//! How a stack is on each cluster, as its agent says: levels, and since when each has been so.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sindri_model::wire::{
    AgentStackStatus, Condition, ConditionStatus, ReportedCondition, StackStatusReport, condition,
};
use sindri_model::{AgentId, GeneratorId, RevisionId, Sequence, StackId};

use crate::event_types::EventType;
use crate::store::records::{AgentReport, NewestRevision, Noun, StackReports, Stamp, StoreError};
use crate::store::sql::fleet::agents;
use crate::store::sql::reports::approvals;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::lookup::found;
use crate::store::sql::shared::outbox::{Happening, announce};
use crate::store::sql::shared::session::{Row, Session, all, change, failed, json_text, one, values};

/// What subscribers are told when it becomes true.
const ANNOUNCED: [(&str, EventType); 2] =
    [(condition::DRIFTED, EventType::DeploymentDrifted), (condition::BLOCKED, EventType::DeploymentBlocked)];

/// A report that is to be noted.
struct Report {
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
    sequence: Sequence,
    conditions: Vec<Condition>,
}

/// What the agent said before.
#[derive(Default)]
struct Before {
    revision: Option<RevisionId>,
    sequence: Sequence,
    /// As the row has it.
    text: String,
    conditions: Vec<Condition>,
}

pub(crate) async fn report(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    stack: StackId,
    report: StackStatusReport,
) -> Result<(), StoreError> {
    agents::require(session, agent).await?;
    let revision = report.deployment_object_id;
    let (is_removed, sequence) = business(session, agent, stack, revision).await?;
    let before = said_before(session, agent, stack).await?;
    // A request may be late: what it says of an older revision, or of what is gone, is no longer so.
    if is_removed || before.sequence > sequence {
        return Ok(());
    }
    let conditions = since_when(report.conditions, &before.conditions, stamp.at);
    if holding(&conditions, condition::BLOCKED).is_none() {
        approvals::supersede(session, &stamp, agent, stack, Some(sequence)).await?;
    }
    if before.revision == Some(revision) && before.conditions == conditions {
        return Ok(());
    }
    let report = Report { agent, stack, revision, sequence, conditions };
    write(session, &report, &before).await?;
    follow(session, &stamp, &report, &before).await
}

/// Whether the agent has removed the stack, and the number of the revision, if both are its business.
pub(crate) async fn business(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
) -> Result<(bool, Sequence), StoreError> {
    let sql = "SELECT confirmed, sequence FROM assignments
                 LEFT JOIN revisions ON revisions.id = ?3 AND revisions.stack_id = assignments.stack_id
                   AND (revisions.agent_id IS NULL OR revisions.agent_id = assignments.agent_id)
               WHERE assignments.agent_id = ?1 AND assignments.stack_id = ?2";
    let row = one(session, sql, values![agent, stack, revision], |row| Ok((row.take()?, row.take()?))).await?;
    let (is_removed, sequence): (bool, Option<Sequence>) = found(row, Noun::Stack, stack)?;
    let missing = || StoreError::MissingReference { noun: Noun::Revision, name: revision.to_string() };
    Ok((is_removed, sequence.ok_or_else(missing)?))
}

async fn said_before(session: &mut dyn Session, agent: AgentId, stack: StackId) -> Result<Before, StoreError> {
    let sql = "SELECT revision_id, sequence, conditions FROM stack_status WHERE agent_id = ?1 AND stack_id = ?2";
    Ok(one(session, sql, values![agent, stack], read_before).await?.unwrap_or_default())
}

/// By type, each with the time at which its status last changed.
fn since_when(reported: Vec<ReportedCondition>, before: &[Condition], now: Timestamp) -> Vec<Condition> {
    let by_type: BTreeMap<String, ReportedCondition> =
        reported.into_iter().map(|condition| (condition.kind.clone(), condition)).collect();
    let settled = by_type.into_values().map(|ReportedCondition { kind, status, reason, message }| {
        let same = before.iter().find(|before| before.kind == kind && before.status == status);
        let last_transition_time = same.map_or(now, |same| same.last_transition_time);
        Condition { kind, status, reason, message, last_transition_time }
    });
    settled.collect()
}

/// In place of what was read. If somebody else has replaced that meanwhile, the agent is to come again.
async fn write(session: &mut dyn Session, report: &Report, before: &Before) -> Result<(), StoreError> {
    let Report { agent, stack, revision, sequence, conditions } = report;
    let conditions = json_text(conditions);
    let rows = match before.revision {
        None => {
            let sql = "INSERT INTO stack_status (agent_id, stack_id, revision_id, sequence, conditions)
                       VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            change(session, sql, values![*agent, *stack, *revision, *sequence, conditions]).await?
        }
        Some(_) => {
            let sql = "UPDATE stack_status SET revision_id = ?3, sequence = ?4, conditions = ?5
                       WHERE agent_id = ?1 AND stack_id = ?2 AND sequence = ?6 AND conditions = ?7";
            let row = values![*agent, *stack, *revision, *sequence, conditions, before.sequence, before.text.as_str()];
            change(session, sql, row).await?
        }
    };
    if rows > 0 { Ok(()) } else { Err(StoreError::Unavailable) }
}

/// What follows from a report that says something new.
async fn follow(session: &mut dyn Session, stamp: &Stamp, report: &Report, before: &Before) -> Result<(), StoreError> {
    let Report { agent, stack, revision, conditions, .. } = report;
    let statuses: BTreeMap<&str, ConditionStatus> =
        conditions.iter().map(|condition| (condition.kind.as_str(), condition.status)).collect();
    let details = json!({"agent_id": agent, "deployment_object_id": revision, "conditions": statuses});
    audit::record(session, stamp, "stack.reported", "stack", Some(stack.to_string()), Some(details)).await?;
    for (kind, event) in ANNOUNCED {
        let Some(now) = holding(conditions, kind).filter(|_| holding(&before.conditions, kind).is_none()) else {
            continue;
        };
        let data = json!({
            "agent_id": agent,
            "stack_id": stack,
            "deployment_object_id": revision,
            "reason": now.reason,
            "message": now.message,
        });
        let happening = Happening { event, agent: Some(*agent), stack: Some(*stack), data };
        announce(session, stamp, happening).await?;
    }
    Ok(())
}

/// The condition of this type, if it is true.
fn holding<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind && condition.status == ConditionStatus::True)
}

/// There is nothing any more that could be in some state or wait for somebody.
pub(crate) async fn was_removed(
    session: &mut dyn Session,
    stamp: &Stamp,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    approvals::supersede(session, stamp, agent, stack, None).await?;
    let sql = "DELETE FROM stack_status WHERE agent_id = ?1 AND stack_id = ?2";
    change(session, sql, values![agent, stack]).await.map(drop)
}

pub(crate) async fn of_stack(session: &mut dyn Session, stack: StackId) -> Result<StackReports, StoreError> {
    let sql = "SELECT generator_id, deleted_at, revisions.id, newest, newest_is_marker
               FROM stacks LEFT JOIN revisions ON revisions.sequence = stacks.newest WHERE stacks.id = ?1";
    let (generator, deleted_at, newest) =
        found(one(session, sql, values![stack], read_stack).await?, Noun::Stack, stack)?;
    // What an agent that was deleted owes is in the fleet: it will not say anything any more.
    let sql = "SELECT agents.id, agents.name, agents.cluster_name, revision_id, sequence, conditions,
                 CASE WHEN confirmed = 0 THEN removal END
               FROM assignments JOIN agents ON agents.id = assignments.agent_id AND agents.deleted_at IS NULL
                 LEFT JOIN stack_status ON stack_status.agent_id = assignments.agent_id
                   AND stack_status.stack_id = assignments.stack_id
               WHERE assignments.stack_id = ?1 AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0))
               ORDER BY agents.name, agents.cluster_name, agents.id";
    let agents = all(session, sql, values![stack], read_report).await?;
    let is_over = deleted_at.is_some() && agents.is_empty();
    found((!is_over).then_some(StackReports { generator, newest, agents }), Noun::Stack, stack)
}

fn read_before(row: &mut Row) -> Result<Before, StoreError> {
    let (revision, sequence, text): (_, _, String) = (row.take()?, row.take()?, row.take()?);
    let conditions = serde_json::from_str(&text).map_err(failed)?;
    Ok(Before { revision: Some(revision), sequence, text, conditions })
}

type StackRow = (GeneratorId, Option<Timestamp>, Option<NewestRevision>);

fn read_stack(row: &mut Row) -> Result<StackRow, StoreError> {
    let (generator, deleted_at) = (row.take()?, row.take()?);
    let (id, sequence, is_deletion_marker): (Option<_>, Option<_>, _) = (row.take()?, row.take()?, row.take()?);
    let newest = id.zip(sequence).map(|(id, sequence)| NewestRevision { id, sequence, is_deletion_marker });
    Ok((generator, deleted_at, newest))
}

fn read_report(row: &mut Row) -> Result<AgentReport, StoreError> {
    let said = AgentStackStatus {
        agent_id: row.take()?,
        name: row.take()?,
        cluster_name: row.take()?,
        deployment_object_id: row.take()?,
        sequence_id: row.take()?,
        conditions: row.json_or_none()?.unwrap_or_default(),
    };
    Ok(AgentReport { said, owes: row.take()? })
}
