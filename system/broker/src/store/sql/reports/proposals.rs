//! Proposals: texts for stacks that are not submitted, and the plans of agents for them.
//!
//! A proposal takes a number of the counter, by which agents and other brokers notice it. It changes no target state.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use sindri_model::limits::PLAN_BYTES_MAX;
use sindri_model::wire::{Agent, AgentProposal, CreatedProposal, PlanReport, cut_plan};
use sindri_model::{AgentId, Checksum, ProposalId, StackId};

use crate::store::bundle_cipher::{BundleCipher, open_text};
use crate::store::records::{NewProposal, ProposalRecord, RecordKind, StoreChange, StoreError, WriteContext};
use crate::store::sql::assignments::policies;
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::{require, require_that};
use crate::store::sql::shared::session::{
    Session, execute, execute_batch, failed, fetch_all, fetch_one, has_rows, single_column,
};
use crate::store::sql::shared::values::{Row, row, values};
use crate::store::sql::shared::{audit, counter, idempotency};
use crate::store::sql::tables::{agents, stacks};

const RESOURCE_TYPE: &str = "proposal";
/// Proposals of one stack for which an active agent has no plan yet.
const UNANSWERED_MAX: i64 = 8;
/// Bytes of the plans of one proposal. The rest is cut.
const PLANS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of all texts, and of all plans that there may be for them.
const BYTES_MAX: i64 = 256 * 1024 * 1024;
/// Expired proposals that a new one deletes.
const EXPIRED_AT_ONCE: i64 = 200;
/// Proposals in one response to an agent.
const LISTED_MAX: i64 = 4;

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    proposal: NewProposal,
) -> Result<CreatedProposal, StoreError> {
    let NewProposal { id, stack, yaml_content, expires_at } = proposal;
    // Locks the counter until the commit: the limits hold, and proposals become visible in the order of their numbers.
    let position = counter::next_number(session).await?;
    let content = || json!([stack, Checksum::compute(&yaml_content)]);
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    if let Some(first) = idempotency::find_created(session, request.as_ref()).await? {
        return get_created(session, stack, first.parse().map_err(failed)?, context.time).await;
    }
    stacks::get(session, stack).await?;
    delete_expired(session, context.time, EXPIRED_AT_ONCE).await?;
    let sql = "SELECT agent_id FROM assignments JOIN agents ON agents.id = agent_id AND deleted_at IS NULL
               WHERE stack_id = ?1 AND wanted = 1 ORDER BY agent_id";
    let agents: Vec<AgentId> = fetch_all(session, sql, values![stack], single_column).await?;
    let bytes = yaml_content.len().saturating_add(PLANS_BYTES_MAX.min(agents.len() * PLAN_BYTES_MAX));
    let bytes = i64::try_from(bytes).map_err(failed)?;
    check_limits(session, stack, bytes, context.time).await?;
    let stored = encrypt(session, &context, &text_name(id), yaml_content);
    let sql = "INSERT INTO proposals (id, stack_id, created_at, expires_at, yaml_content, bytes)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    execute(session, sql, values![id, stack, context.time, expires_at, stored, bytes]).await?;
    let sql = "WITH batch (agent_id, position, proposal_id) AS ({TEXT, BIGINT, TEXT})
               INSERT INTO proposal_plans (agent_id, position, proposal_id)
               SELECT agent_id, position, proposal_id FROM batch";
    execute_batch(session, sql, agents.iter().map(|agent| row![*agent, position, id]).collect()).await?;
    session.changes().extend(agents.iter().map(|agent| StoreChange::Proposal(*agent)));
    idempotency::record(session, request.as_ref(), id).await?;
    let details = json!({"stack_id": stack, "agents": agents.len()});
    audit::record(session, &context, "proposal.created", RESOURCE_TYPE, Some(id.to_string()), Some(details)).await?;
    Ok(CreatedProposal { id, stack_id: stack, created_at: context.time, expires_at, agents })
}

/// Returns the proposal that the first request with the same idempotency key created.
async fn get_created(
    session: &mut dyn Session,
    stack: StackId,
    id: ProposalId,
    now: Timestamp,
) -> Result<CreatedProposal, StoreError> {
    let ProposalRecord { created_at, expires_at, agents } = get(session, stack, id, now).await?;
    let agents = agents.into_iter().map(|(agent, _)| agent.id).collect();
    Ok(CreatedProposal { id, stack_id: stack, created_at, expires_at, agents })
}

async fn check_limits(session: &mut dyn Session, stack: StackId, bytes: i64, now: Timestamp) -> Result<(), StoreError> {
    let read = |row: &mut Row| Ok((row.take()?, row.take()?));
    // Inactive agents do not answer, and do not count.
    let sql = "SELECT min(expires_at), count(*) FROM proposals WHERE stack_id = ?1 AND expires_at > ?2 AND EXISTS (
                 SELECT 1 FROM proposal_plans JOIN agents ON agents.id = agent_id AND active = 1 AND deleted_at IS NULL
                 WHERE proposal_id = proposals.id AND failed IS NULL)";
    let found: Option<(Option<Timestamp>, i64)> = fetch_one(session, sql, values![stack, now], read).await?;
    let (first_end, unanswered) = found.unwrap_or_default();
    let too_many = |reason: String, first_end: Option<Timestamp>| {
        let wait = first_end.map(|end| end.duration_since(now)).and_then(|wait| Duration::try_from(wait).ok());
        Err(StoreError::TooManyProposals { reason, wait: wait.unwrap_or_default() })
    };
    if unanswered >= UNANSWERED_MAX {
        return too_many(format!("{unanswered} proposals of this stack wait for the plans of agents"), first_end);
    }
    let sql = "SELECT min(expires_at), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM proposals";
    let found: Option<(Option<Timestamp>, i64)> = fetch_one(session, sql, &[], read).await?;
    let (first_end, stored) = found.unwrap_or_default();
    if stored.saturating_add(bytes) > BYTES_MAX {
        return too_many(format!("all proposals may have {BYTES_MAX} bytes together with their plans"), first_end);
    }
    Ok(())
}

/// Returns a proposal of a stack that has not expired. Agents that should not have the stack any more are left out.
pub(crate) async fn get(
    session: &mut dyn Session,
    stack: StackId,
    id: ProposalId,
    now: Timestamp,
) -> Result<ProposalRecord, StoreError> {
    let sql = "SELECT created_at, expires_at FROM proposals WHERE id = ?1 AND stack_id = ?2 AND expires_at > ?3";
    let times = fetch_one(session, sql, values![id, stack, now], |row| Ok((row.take()?, row.take()?))).await?;
    let (created_at, expires_at) = require(times, RecordKind::Proposal, id)?;
    let sql = agents::columns!(
        ", failed, changes, plan
         FROM proposal_plans JOIN agents ON agents.id = proposal_plans.agent_id AND agents.deleted_at IS NULL
           JOIN assignments ON assignments.agent_id = agents.id AND assignments.stack_id = ?2 AND wanted = 1
         WHERE proposal_id = ?1 ORDER BY agents.cluster_name, agents.name, agents.id"
    );
    let mut agents = fetch_all(session, sql, values![id, stack], read_plan).await?;
    for (agent, report) in &mut agents {
        if let Some(PlanReport { plan, .. }) = report {
            *plan = open(session, &plan_name(id, agent.id), std::mem::take(plan))?;
        }
    }
    Ok(ProposalRecord { created_at, expires_at, agents })
}

/// Lists the oldest proposals that an agent has not answered, of stacks that it should have.
pub(crate) async fn list_waiting(
    session: &mut dyn Session,
    agent: AgentId,
    now: Timestamp,
) -> Result<Vec<AgentProposal>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = "SELECT proposals.id, proposals.stack_id, stacks.name, proposals.created_at, yaml_content
               FROM proposal_plans JOIN proposals ON proposals.id = proposal_id
                 JOIN stacks ON stacks.id = proposals.stack_id AND stacks.deleted_at IS NULL
                 JOIN assignments ON assignments.agent_id = proposal_plans.agent_id
                   AND assignments.stack_id = proposals.stack_id AND wanted = 1
               WHERE proposal_plans.agent_id = ?1 AND failed IS NULL AND expires_at > ?2
               ORDER BY position LIMIT ?3";
    let mut found = fetch_all(session, sql, values![agent, now, LISTED_MAX], read_waiting).await?;
    for proposal in &mut found {
        proposal.yaml_content = open(session, &text_name(proposal.id), std::mem::take(&mut proposal.yaml_content))?;
        proposal.annotations = policies::list_of_stack(session, proposal.stack_id).await?;
    }
    Ok(found)
}

/// Records the plan of an agent. The first one stays: a repeated report changes nothing.
pub(crate) async fn report(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    id: ProposalId,
    report: PlanReport,
) -> Result<(), StoreError> {
    // Locks the proposal, so that its plans stay within their limit.
    let sql = "UPDATE proposals SET plan_bytes = plan_bytes WHERE id = ?1 AND expires_at > ?2 RETURNING plan_bytes";
    let used: Option<i64> = fetch_one(session, sql, values![id, context.time], single_column).await?;
    let used = usize::try_from(require(used, RecordKind::Proposal, id)?).map_err(failed)?;
    let PlanReport { failed: has_failed, changes, plan } = report;
    let plan = cut_plan(plan, PLANS_BYTES_MAX.saturating_sub(used));
    let bytes = i64::try_from(plan.len()).map_err(failed)?;
    let stored = encrypt(session, &context, &plan_name(id, agent), plan);
    let sql = "UPDATE proposal_plans SET failed = ?3, changes = ?4, plan = ?5
               WHERE agent_id = ?1 AND proposal_id = ?2 AND failed IS NULL";
    if execute(session, sql, values![agent, id, has_failed, changes, stored]).await? > 0 {
        let sql = "UPDATE proposals SET plan_bytes = plan_bytes + ?2 WHERE id = ?1";
        return execute(session, sql, values![id, bytes]).await.map(drop);
    }
    let sql = "SELECT 1 FROM proposal_plans WHERE agent_id = ?1 AND proposal_id = ?2";
    require_that(has_rows(session, sql, values![agent, id]).await?, RecordKind::Proposal, id)
}

/// Deletes proposals that have expired before a time, at most `limit`, and returns their number.
pub(crate) async fn delete_expired(
    session: &mut dyn Session,
    before: Timestamp,
    limit: i64,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM proposals WHERE id IN (
                 SELECT id FROM proposals WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
    execute(session, sql, values![before, limit]).await
}

/// Returns the name of a text, so that an encrypted one cannot be moved to another proposal.
fn text_name(id: ProposalId) -> String {
    format!("proposal {id} text")
}

fn plan_name(id: ProposalId, agent: AgentId) -> String {
    format!("proposal {id} plan of agent {agent}")
}

/// Returns a text as it is stored: encrypted if bundles are.
fn encrypt(session: &dyn Session, context: &WriteContext, name: &str, plain: String) -> String {
    let cipher = session.bundle_cipher().filter(|cipher| cipher.encrypts_new());
    let encrypt = |cipher: &BundleCipher| cipher.encrypt_text(&context.entropy, name, &plain);
    cipher.map(encrypt).unwrap_or(plain)
}

fn open(session: &dyn Session, name: &str, stored: String) -> Result<String, StoreError> {
    let opened = open_text(session.bundle_cipher(), name, stored);
    opened.ok_or_else(|| failed(format!("the {name} is encrypted and cannot be decrypted with this key")))
}

fn read_plan(row: &mut Row) -> Result<(Agent, Option<PlanReport>), StoreError> {
    let agent = agents::read(row)?;
    let (failed, changes, plan): (Option<bool>, Option<bool>, Option<String>) = (row.take()?, row.take()?, row.take()?);
    let report = failed.map(|failed| PlanReport {
        failed,
        changes: changes.unwrap_or_default(),
        plan: plan.unwrap_or_default(),
    });
    Ok((agent, report))
}

/// Reads a row without the annotations of the stack. The text is the stored one, which [`open`] replaces by the plain one.
fn read_waiting(row: &mut Row) -> Result<AgentProposal, StoreError> {
    let (id, stack_id, stack_name) = (row.take()?, row.take()?, row.take()?);
    let (created_at, yaml_content) = (row.take()?, row.take()?);
    Ok(AgentProposal { id, stack_id, stack_name, annotations: BTreeMap::new(), created_at, yaml_content })
}
