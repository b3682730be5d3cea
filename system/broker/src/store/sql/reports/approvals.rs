//! Plans that agents execute only after an approval. At most one plan per stack and agent is pending.

use serde_json::json;
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, GeneratorId, Sequence, StackId};

use crate::store::records::{KeyHolder, Page, RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::assigned;
use crate::store::sql::shared::lookup::{require, require_that};
use crate::store::sql::shared::session::{Session, execute, fetch_all, fetch_one, single_column};
use crate::store::sql::shared::values::{Row, to_json, values};
use crate::store::sql::shared::{audit, changes, counter};
use crate::store::sql::tables::agents;

const RESOURCE_TYPE: &str = "approval";

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT approvals.id, approvals.agent_id, approvals.stack_id, approvals.revision_id, digest, state, reasons,
                    plan, decided_by, decided_at, approvals.created_at
             FROM approvals JOIN stacks ON stacks.id = approvals.stack_id ",
            $rest
        )
    };
}

/// The same plan of the same revision has one approval. If it was superseded, it becomes pending again: the agent has
/// returned to that plan, and there was no decision about it.
pub(crate) async fn request(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    stack: StackId,
    request: ApprovalRequest,
) -> Result<Approval, StoreError> {
    check_assigned(session, agent, stack, &request).await?;
    let is_open = |approval: &Approval| approval.state != ApprovalState::Superseded;
    if let Some(open) = find_requested(session, agent, stack, &request).await?.filter(is_open) {
        return Ok(open);
    }
    // Locks the counter until the commit, so that approvals become visible in the order of their positions.
    let position = counter::next_number(session).await?;
    // The agent or the stack may have been deleted meanwhile.
    check_assigned(session, agent, stack, &request).await?;
    let existing = find_requested(session, agent, stack, &request).await?;
    if let Some(open) = existing.clone().filter(is_open) {
        // Another request was faster.
        return Ok(open);
    }
    supersede(session, &context, agent, stack, None).await?;
    let id = match existing {
        Some(superseded) => reopen(session, superseded.id, position).await?,
        None => insert(session, &context, agent, stack, &request, position).await?,
    };
    let details = json!({"agent_id": agent, "stack_id": stack, "deployment_object_id": request.deployment_object_id});
    audit::record(session, &context, "approval.requested", RESOURCE_TYPE, Some(id.to_string()), Some(details)).await?;
    get(session, id, None).await
}

/// Checks that the agent exists and has the revision of its request.
async fn check_assigned(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    request: &ApprovalRequest,
) -> Result<(), StoreError> {
    agents::check_exists(session, agent).await?;
    let (is_removed, _) = assigned::check_revision(session, agent, stack, request.deployment_object_id).await?;
    require_that(!is_removed, RecordKind::Stack, stack)
}

async fn find_requested(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    request: &ApprovalRequest,
) -> Result<Option<Approval>, StoreError> {
    let sql = columns!(
        "WHERE approvals.agent_id = ?1 AND approvals.stack_id = ?2 AND approvals.revision_id = ?3 AND digest = ?4"
    );
    fetch_one(session, sql, values![agent, stack, request.deployment_object_id, &request.digest], read).await
}

/// Inserts a pending approval. If another request has inserted one meanwhile, the agent has to retry.
async fn insert(
    session: &mut dyn Session,
    context: &WriteContext,
    agent: AgentId,
    stack: StackId,
    request: &ApprovalRequest,
    position: Sequence,
) -> Result<ApprovalId, StoreError> {
    let id = ApprovalId::generate_at(context.time, &context.entropy);
    let sql = "INSERT INTO approvals (id, created_at, agent_id, stack_id, revision_id, digest, state, reasons, plan,
                 position)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8, ?9) ON CONFLICT DO NOTHING";
    let (revision, reasons) = (request.deployment_object_id, to_json(&request.reasons));
    let row = values![id, context.time, agent, stack, revision, &request.digest, reasons, &request.plan, position];
    if execute(session, sql, row).await? > 0 { Ok(id) } else { Err(StoreError::Unavailable) }
}

async fn reopen(session: &mut dyn Session, id: ApprovalId, position: Sequence) -> Result<ApprovalId, StoreError> {
    let sql = "UPDATE approvals SET state = 'pending', position = ?2 WHERE id = ?1 AND state = 'superseded'";
    if execute(session, sql, values![id, position]).await? > 0 { Ok(id) } else { Err(StoreError::Unavailable) }
}

/// Supersedes the pending plan of an agent for a stack: of a revision up to the given one, or of any.
pub(crate) async fn supersede(
    session: &mut dyn Session,
    context: &WriteContext,
    agent: AgentId,
    stack: StackId,
    up_to: Option<Sequence>,
) -> Result<(), StoreError> {
    let sql = "UPDATE approvals SET state = 'superseded'
               WHERE agent_id = ?1 AND stack_id = ?2 AND state = 'pending' AND (CAST(?3 AS BIGINT) IS NULL
                 OR (SELECT sequence FROM revisions WHERE revisions.id = approvals.revision_id) <= ?3)
               RETURNING id";
    let superseded: Vec<ApprovalId> = fetch_all(session, sql, values![agent, stack, up_to], single_column).await?;
    for id in superseded {
        audit::record(session, context, "approval.superseded", RESOURCE_TYPE, Some(id.to_string()), None).await?;
    }
    Ok(())
}

/// Supersedes the pending plans of a deleted agent, which will not execute them.
pub(crate) async fn supersede_of_agent(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let sql = "UPDATE approvals SET state = 'superseded' WHERE agent_id = ?1 AND state = 'pending'";
    execute(session, sql, values![agent]).await.map(drop)
}

pub(crate) async fn list(
    session: &mut dyn Session,
    owner: Option<GeneratorId>,
    state: Option<ApprovalState>,
    page: Page,
) -> Result<Vec<Approval>, StoreError> {
    let sql = columns!(
        "WHERE approvals.id IN (
            SELECT id FROM (
              SELECT id, sum(bytes) OVER (ORDER BY position) - bytes AS bytes_before FROM (
                SELECT approvals.id, position, octet_length(plan) + octet_length(reasons) AS bytes
                FROM approvals JOIN stacks ON stacks.id = approvals.stack_id
                WHERE (CAST(?1 AS TEXT) IS NULL OR generator_id = ?1) AND (CAST(?2 AS TEXT) IS NULL OR state = ?2)
                  AND (CAST(?3 AS TEXT) IS NULL
                    OR position > coalesce((SELECT position FROM approvals AS last WHERE last.id = ?3), ?6))
                ORDER BY position LIMIT ?4) AS candidates) AS sized
            WHERE bytes_before < ?5)
          ORDER BY position"
    );
    let values = values![owner, state, page.after, page.limit, Page::TEXT_BYTES_MAX, i64::MIN];
    fetch_all(session, sql, values, read).await
}

pub(crate) async fn get(
    session: &mut dyn Session,
    approval: ApprovalId,
    owner: Option<GeneratorId>,
) -> Result<Approval, StoreError> {
    let sql = columns!("WHERE approvals.id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR generator_id = ?2)");
    require(fetch_one(session, sql, values![approval, owner], read).await?, RecordKind::Approval, approval)
}

/// Requests a new pass of the agent, which ends its waiting poll.
pub(crate) async fn decide(
    session: &mut dyn Session,
    context: WriteContext,
    approval: ApprovalId,
    owner: Option<GeneratorId>,
    decision: ApprovalState,
) -> Result<Approval, StoreError> {
    let pending = get(session, approval, owner).await?;
    if pending.state != ApprovalState::Pending {
        return check_same_decision(pending, decision);
    }
    let version = counter::next_number(session).await?;
    let sql = "UPDATE approvals SET state = ?2, decided_by = ?3, decided_at = ?4 WHERE id = ?1 AND state = 'pending'";
    let rows = execute(session, sql, values![approval, decision, describe_actor(&context), context.time]).await?;
    let current = get(session, approval, owner).await?;
    if rows == 0 {
        return check_same_decision(current, decision);
    }
    changes::request_recheck(session, &[current.agent_id], version).await?;
    let details = json!({"agent_id": current.agent_id, "stack_id": current.stack_id, "digest": current.digest});
    let action = format!("approval.{decision}");
    audit::record(session, &context, &action, RESOURCE_TYPE, Some(approval.to_string()), Some(details)).await?;
    Ok(current)
}

/// Accepts a repetition of the decision on an approval that is no longer pending, and rejects any other.
fn check_same_decision(approval: Approval, decision: ApprovalState) -> Result<Approval, StoreError> {
    if approval.state == decision {
        return Ok(approval);
    }
    Err(StoreError::AlreadyDecided { approval: approval.id, state: approval.state })
}

fn describe_actor(context: &WriteContext) -> Option<String> {
    match context.actor? {
        KeyHolder::Admin(admin) => Some(format!("admin {admin}")),
        KeyHolder::Agent(agent) => Some(format!("agent {agent}")),
        KeyHolder::Generator(generator) => Some(format!("generator {generator}")),
    }
}

fn read(row: &mut Row) -> Result<Approval, StoreError> {
    Ok(Approval {
        id: row.take()?,
        agent_id: row.take()?,
        stack_id: row.take()?,
        deployment_object_id: row.take()?,
        digest: row.take()?,
        state: row.take()?,
        reasons: row.take_json()?,
        plan: row.take()?,
        decided_by: row.take()?,
        decided_at: row.take()?,
        created_at: row.take()?,
    })
}
