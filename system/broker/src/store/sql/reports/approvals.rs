//! What agents hold back until somebody decides. Of a stack on an agent at most one plan waits.

use serde_json::json;
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, GeneratorId, Sequence, StackId};

use crate::store::records::{KeyHolder, Noun, Page, Stamp, StoreError};
use crate::store::sql::fleet::agents;
use crate::store::sql::reports::status;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::lookup::found;
use crate::store::sql::shared::session::{Row, Session, all, change, json_text, one, only, values};

const WHAT: &str = "approval";

/// The columns that [`read`] reads, of a query that goes on as given.
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

/// The same plan of the same revision is asked for once. One that was superseded waits again: the agent has come back
/// to it, and nobody has decided about it.
pub(crate) async fn propose(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    stack: StackId,
    request: ApprovalRequest,
) -> Result<Approval, StoreError> {
    agents::require(session, agent).await?;
    let (is_removed, _) = status::business(session, agent, stack, request.deployment_object_id).await?;
    found((!is_removed).then_some(()), Noun::Stack, stack)?;
    let known = asked_before(session, agent, stack, &request).await?;
    if let Some(known) = known.clone().filter(|known| known.state != ApprovalState::Superseded) {
        return Ok(known);
    }
    supersede(session, &stamp, agent, stack, None).await?;
    let id = match known {
        Some(known) => ask_again(session, known.id).await?,
        None => ask(session, &stamp, agent, stack, &request).await?,
    };
    let details = json!({"agent_id": agent, "stack_id": stack, "deployment_object_id": request.deployment_object_id});
    audit::record(session, &stamp, "approval.requested", WHAT, Some(id.to_string()), Some(details)).await?;
    get(session, id, None).await
}

async fn asked_before(
    session: &mut dyn Session,
    agent: AgentId,
    stack: StackId,
    request: &ApprovalRequest,
) -> Result<Option<Approval>, StoreError> {
    let sql = columns!(
        "WHERE approvals.agent_id = ?1 AND approvals.stack_id = ?2 AND approvals.revision_id = ?3 AND digest = ?4"
    );
    one(session, sql, values![agent, stack, request.deployment_object_id, &request.digest], read).await
}

/// If somebody else has asked just now, the agent is to come again.
async fn ask(
    session: &mut dyn Session,
    stamp: &Stamp,
    agent: AgentId,
    stack: StackId,
    request: &ApprovalRequest,
) -> Result<ApprovalId, StoreError> {
    let id = ApprovalId::mint_at(stamp.at, &stamp.entropy);
    let sql = "INSERT INTO approvals (id, created_at, agent_id, stack_id, revision_id, digest, state, reasons, plan)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8) ON CONFLICT DO NOTHING";
    let (revision, reasons) = (request.deployment_object_id, json_text(&request.reasons));
    let row = values![id, stamp.at, agent, stack, revision, &request.digest, reasons, &request.plan];
    if change(session, sql, row).await? > 0 { Ok(id) } else { Err(StoreError::Unavailable) }
}

async fn ask_again(session: &mut dyn Session, id: ApprovalId) -> Result<ApprovalId, StoreError> {
    let sql = "UPDATE approvals SET state = 'pending' WHERE id = ?1 AND state = 'superseded'";
    if change(session, sql, values![id]).await? > 0 { Ok(id) } else { Err(StoreError::Unavailable) }
}

/// The agent no longer wants what it held back: of a revision up to the given one, or of any.
pub(crate) async fn supersede(
    session: &mut dyn Session,
    stamp: &Stamp,
    agent: AgentId,
    stack: StackId,
    up_to: Option<Sequence>,
) -> Result<(), StoreError> {
    let sql = "UPDATE approvals SET state = 'superseded'
               WHERE agent_id = ?1 AND stack_id = ?2 AND state = 'pending' AND (CAST(?3 AS BIGINT) IS NULL
                 OR (SELECT sequence FROM revisions WHERE revisions.id = approvals.revision_id) <= ?3)
               RETURNING id";
    let gone: Vec<ApprovalId> = all(session, sql, values![agent, stack, up_to], only).await?;
    for id in gone {
        audit::record(session, stamp, "approval.superseded", WHAT, Some(id.to_string()), None).await?;
    }
    Ok(())
}

/// Whoever decides about it would decide for nobody.
pub(crate) async fn agent_was_deleted(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let sql = "UPDATE approvals SET state = 'superseded' WHERE agent_id = ?1 AND state = 'pending'";
    change(session, sql, values![agent]).await.map(drop)
}

pub(crate) async fn list(
    session: &mut dyn Session,
    owner: Option<GeneratorId>,
    state: Option<ApprovalState>,
    page: Page,
) -> Result<Vec<Approval>, StoreError> {
    let sql = columns!(
        "WHERE (CAST(?1 AS TEXT) IS NULL OR generator_id = ?1) AND (CAST(?2 AS TEXT) IS NULL OR state = ?2)
          AND (CAST(?3 AS TEXT) IS NULL OR approvals.id > ?3) ORDER BY approvals.id LIMIT ?4"
    );
    all(session, sql, values![owner, state, page.after, page.limit], read).await
}

pub(crate) async fn get(
    session: &mut dyn Session,
    approval: ApprovalId,
    owner: Option<GeneratorId>,
) -> Result<Approval, StoreError> {
    let sql = columns!("WHERE approvals.id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR generator_id = ?2)");
    found(one(session, sql, values![approval, owner], read).await?, Noun::Approval, approval)
}

/// The agent looks again at once: its poll is answered as if something were wanted anew.
pub(crate) async fn decide(
    session: &mut dyn Session,
    stamp: Stamp,
    approval: ApprovalId,
    owner: Option<GeneratorId>,
    decision: ApprovalState,
) -> Result<Approval, StoreError> {
    let waiting = get(session, approval, owner).await?;
    if waiting.state != ApprovalState::Pending {
        return decided(waiting, decision);
    }
    let version = epoch::tick(session).await?;
    let sql = "UPDATE approvals SET state = ?2, decided_by = ?3, decided_at = ?4 WHERE id = ?1 AND state = 'pending'";
    let rows = change(session, sql, values![approval, decision, decider(&stamp), stamp.at]).await?;
    let now = get(session, approval, owner).await?;
    if rows == 0 {
        return decided(now, decision);
    }
    epoch::nudge(session, &[now.agent_id], version).await?;
    let details = json!({"agent_id": now.agent_id, "stack_id": now.stack_id, "digest": now.digest});
    let action = format!("approval.{decision}");
    audit::record(session, &stamp, &action, WHAT, Some(approval.to_string()), Some(details)).await?;
    Ok(now)
}

/// Of something that is no longer open to decision.
fn decided(approval: Approval, decision: ApprovalState) -> Result<Approval, StoreError> {
    if approval.state == decision {
        return Ok(approval);
    }
    Err(StoreError::Decided { approval: approval.id, state: approval.state })
}

fn decider(stamp: &Stamp) -> Option<String> {
    match stamp.actor? {
        KeyHolder::Admin => Some("admin".to_owned()),
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
        reasons: row.json()?,
        plan: row.take()?,
        decided_by: row.take()?,
        decided_at: row.take()?,
        created_at: row.take()?,
    })
}
