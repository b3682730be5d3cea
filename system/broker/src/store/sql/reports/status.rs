//! Status of a stack on each cluster, as its agent reports it: conditions, each with the time of its last transition.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use sindri_model::wire::{
    AgentStackStatus, Condition, ConditionStatus, ReportedCondition, StackStatusReport, condition,
};
use sindri_model::{AgentId, GeneratorId, RevisionId, Sequence, StackId};

use super::{approvals, overview};
use crate::event_types::EventType;
use crate::store::records::{
    ConditionSummary, NewestRevision, Page, RecordKind, StackReports, StoreError, WriteContext,
};
use crate::store::sql::assignments::assigned;
use crate::store::sql::shared::lookup::{require, require_that};
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute, failed, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, to_json, values};
use crate::store::sql::shared::{audit, outbox};
use crate::store::sql::tables::agents;

/// Conditions whose transition to true is published, with the event type.
const PUBLISHED: [(&str, EventType); 2] =
    [(condition::DRIFTED, EventType::DeploymentDrifted), (condition::BLOCKED, EventType::DeploymentBlocked)];

/// A report with the data that the broker adds.
struct NewStatus {
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
    sequence: Sequence,
    conditions: Vec<Condition>,
}

/// The status that the agent reported before.
#[derive(Default)]
struct PreviousStatus {
    revision: Option<RevisionId>,
    sequence: Sequence,
    /// The conditions as stored.
    text: String,
    conditions: Vec<Condition>,
}

pub(crate) async fn record(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    stack: StackId,
    report: StackStatusReport,
) -> Result<(), StoreError> {
    session.announce_event().await?;
    agents::check_reporter(session, agent, context.process.as_deref()).await?;
    let revision = report.deployment_object_id;
    let (is_removed, sequence) = assigned::check_revision(session, agent, stack, revision).await?;
    let previous = load_previous(session, agent, stack).await?;
    // A delayed request about an older revision or a removed stack is outdated.
    if is_removed || previous.sequence > sequence {
        return Ok(());
    }
    let conditions = add_transition_times(report.conditions, &previous.conditions, context.time);
    let is_unchanged = previous.revision == Some(revision) && previous.conditions == conditions;
    let is_blocked = find_true(&conditions, condition::BLOCKED).is_some();
    let status = NewStatus { agent, stack, revision, sequence, conditions };
    if !is_unchanged {
        // First the assignment: the confirmation of a removal locks it before the approvals and the status.
        write_summary(session, agent, stack, Some(&status)).await?;
    }
    if !is_blocked {
        approvals::supersede(session, &context, agent, stack, Some(sequence)).await?;
    }
    if is_unchanged {
        return Ok(());
    }
    write(session, &status, &previous).await?;
    publish(session, &context, &status, &previous).await
}

/// Stores the summary of a report beside the assignment, or removes it.
async fn write_summary(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    status: Option<&NewStatus>,
) -> Result<(), StoreError> {
    let sql = "UPDATE assignments SET status_sequence = ?3, status_summary = ?4 WHERE agent_id = ?1 AND stack_id = ?2";
    let sequence = status.map(|status| status.sequence);
    let summary = status.map(|status| ConditionSummary::from_conditions(&status.conditions).to_stored());
    execute(session, sql, values![agent, stack, sequence, summary]).await.map(drop)
}

async fn load_previous(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
) -> Result<PreviousStatus, StoreError> {
    let sql = "SELECT revision_id, sequence, conditions FROM stack_status WHERE agent_id = ?1 AND stack_id = ?2";
    Ok(fetch_one(session, sql, values![agent, stack], read_previous).await?.unwrap_or_default())
}

/// Sorts conditions by type and adds the time at which the status of each last changed.
fn add_transition_times(reported: Vec<ReportedCondition>, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let by_type: BTreeMap<String, ReportedCondition> =
        reported.into_iter().map(|condition| (condition.kind.clone(), condition)).collect();
    let conditions = by_type.into_values().map(|ReportedCondition { kind, status, reason, message }| {
        let unchanged = previous.iter().find(|previous| previous.kind == kind && previous.status == status);
        let last_transition_time = unchanged.map_or(now, |condition| condition.last_transition_time);
        Condition { kind, status, reason, message, last_transition_time }
    });
    conditions.collect()
}

/// Replaces the previous status. If another request has replaced it meanwhile, the agent has to retry.
async fn write(session: &mut dyn Session, status: &NewStatus, previous: &PreviousStatus) -> Result<(), StoreError> {
    let NewStatus { agent, stack, revision, sequence, conditions } = status;
    let conditions = to_json(conditions);
    let rows = match previous.revision {
        None => {
            let sql = "INSERT INTO stack_status (agent_id, stack_id, revision_id, sequence, conditions)
                       VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            execute(session, sql, values![*agent, *stack, *revision, *sequence, conditions]).await?
        }
        Some(_) => {
            let sql = "UPDATE stack_status SET revision_id = ?3, sequence = ?4, conditions = ?5
                       WHERE agent_id = ?1 AND stack_id = ?2 AND sequence = ?6 AND conditions = ?7";
            let row =
                values![*agent, *stack, *revision, *sequence, conditions, previous.sequence, previous.text.as_str()];
            execute(session, sql, row).await?
        }
    };
    if rows > 0 { Ok(()) } else { Err(StoreError::Unavailable) }
}

/// Records the new status in the audit log, and publishes conditions that have become true.
async fn publish(
    session: &mut dyn Session,
    context: &WriteContext,
    status: &NewStatus,
    previous: &PreviousStatus,
) -> Result<(), StoreError> {
    let NewStatus { agent, stack, revision, conditions, .. } = status;
    let statuses: BTreeMap<&str, ConditionStatus> =
        conditions.iter().map(|condition| (condition.kind.as_str(), condition.status)).collect();
    let details = json!({"agent_id": agent, "deployment_object_id": revision, "conditions": statuses});
    audit::record(session, context, "stack.reported", "stack", Some(stack.to_string()), Some(details)).await?;
    for (kind, event_type) in PUBLISHED {
        let Some(condition) = find_true(conditions, kind).filter(|_| find_true(&previous.conditions, kind).is_none())
        else {
            continue;
        };
        let data = json!({
            "agent_id": agent,
            "stack_id": stack,
            "deployment_object_id": revision,
            "reason": condition.reason,
            "message": condition.message,
        });
        let event = WebhookEvent { event_type, agent: Some(*agent), stack: Some(*stack), data };
        outbox::publish(session, context, event).await?;
    }
    Ok(())
}

/// Returns the condition of this type, if its status is true.
fn find_true<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind && condition.status == ConditionStatus::True)
}

/// Deletes the status of a stack that the agent has removed, and supersedes its pending plan.
pub(crate) async fn handle_removal(
    session: &mut dyn Session,
    context: &WriteContext,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    write_summary(session, agent, stack, None).await?;
    approvals::supersede(session, context, agent, stack, None).await?;
    let sql = "DELETE FROM stack_status WHERE agent_id = ?1 AND stack_id = ?2";
    execute(session, sql, values![agent, stack]).await.map(drop)
}

pub(crate) async fn get_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
) -> Result<StackStatusReport, StoreError> {
    let PreviousStatus { revision, conditions, .. } = load_previous(session, agent, stack).await?;
    let deployment_object_id = require(revision, RecordKind::StackStatus, stack)?;
    let conditions = conditions.into_iter().map(|Condition { kind, status, reason, message, .. }| ReportedCondition {
        kind,
        status,
        reason,
        message,
    });
    Ok(StackStatusReport { deployment_object_id, conditions: conditions.collect() })
}

pub(crate) async fn get_of_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<StackReports, StoreError> {
    let sql = "SELECT generator_id, deleted_at, revisions.id, newest, newest_is_marker
               FROM stacks LEFT JOIN revisions ON revisions.sequence = stacks.newest WHERE stacks.id = ?1";
    let (generator, deleted_at, newest) =
        require(fetch_one(session, sql, values![stack], read_stack).await?, RecordKind::Stack, stack)?;
    let assignments = overview::list_of_stack(session, stack).await?;
    let is_removed_everywhere = deleted_at.is_some() && assignments.is_empty();
    require_that(!is_removed_everywhere, RecordKind::Stack, stack)?;
    // Without deleted agents, which report nothing: the fleet overview shows their unconfirmed removals.
    let sql = "SELECT agents.id, agents.name, agents.cluster_name, revision_id, sequence, conditions
               FROM (
                 SELECT agent_id, sum(bytes) OVER (ORDER BY name, cluster_name, agent_id) - bytes AS bytes_before FROM (
                   SELECT agents.id AS agent_id, name, cluster_name, coalesce(octet_length(conditions), 0) AS bytes
                   FROM assignments JOIN agents ON agents.id = assignments.agent_id AND agents.deleted_at IS NULL
                     LEFT JOIN stack_status ON stack_status.agent_id = assignments.agent_id
                       AND stack_status.stack_id = assignments.stack_id
                   WHERE assignments.stack_id = ?1 AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0))
                     AND (CAST(?2 AS TEXT) IS NULL
                       OR (name, cluster_name, agents.id) > (SELECT name, cluster_name, id FROM agents WHERE id = ?2))
                   ORDER BY name, cluster_name, agents.id LIMIT ?3) AS candidates) AS sized
                 JOIN agents ON agents.id = sized.agent_id
                 LEFT JOIN stack_status ON stack_status.agent_id = agents.id AND stack_status.stack_id = ?1
               WHERE bytes_before < ?4
               ORDER BY agents.name, agents.cluster_name, agents.id";
    let values = values![stack, page.after, page.limit, Page::TEXT_BYTES_MAX];
    let agents = fetch_all(session, sql, values, read_status).await?;
    Ok(StackReports { generator, newest, assignments, agents })
}

fn read_previous(row: &mut Row) -> Result<PreviousStatus, StoreError> {
    let (revision, sequence, text): (_, _, String) = (row.take()?, row.take()?, row.take()?);
    let conditions = serde_json::from_str(&text).map_err(failed)?;
    Ok(PreviousStatus { revision: Some(revision), sequence, text, conditions })
}

/// Generator, time of deletion and newest revision of a stack.
type StackRow = (GeneratorId, Option<Timestamp>, Option<NewestRevision>);

fn read_stack(row: &mut Row) -> Result<StackRow, StoreError> {
    let (generator, deleted_at) = (row.take()?, row.take()?);
    let (id, sequence, is_deletion_marker): (Option<_>, Option<_>, _) = (row.take()?, row.take()?, row.take()?);
    let newest = id.zip(sequence).map(|(id, sequence)| NewestRevision { id, sequence, is_deletion_marker });
    Ok((generator, deleted_at, newest))
}

fn read_status(row: &mut Row) -> Result<AgentStackStatus, StoreError> {
    Ok(AgentStackStatus {
        agent_id: row.take()?,
        name: row.take()?,
        cluster_name: row.take()?,
        deployment_object_id: row.take()?,
        sequence_id: row.take()?,
        conditions: row.take_json_or_null()?.unwrap_or_default(),
    })
}
