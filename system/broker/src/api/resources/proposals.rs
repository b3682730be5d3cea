//! Proposals: texts for stacks that are not submitted. The agents that should have the stack say what each would change.

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use sindri_model::limits::PLAN_BYTES_MAX;
use sindri_model::wire::{
    Agent, AgentProposal, AgentStatus, CreatedProposal, PlanReport, PlanStatus, Proposal, ProposalRequest, ProposedPlan,
};
use sindri_model::{AgentId, ProposalId, StackId};

use super::bundle_text::check_text;
use super::overview::describe_agent;
use super::quota_checks::count_submission;
use super::stack_access::load_owned_stack;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{NewProposal, WriteContext};

/// Time for which a proposal exists.
const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// Creates a proposal. It costs agents more than a submission, and counts as one for the quota of a generator.
pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    CreateContext(mut context): CreateContext,
    JsonBody(ProposalRequest { yaml_content }): JsonBody<ProposalRequest>,
) -> Result<Created<CreatedProposal>, ErrorResponse> {
    count_submission(&broker, actor)?;
    load_owned_stack(&broker, actor, stack).await?;
    let yaml_content = check_text(&broker, yaml_content, false).await?;
    context.time = broker.clock.now();
    let id = ProposalId::generate_at(context.time, &broker.entropy);
    let expires_at = context.time.saturating_add(LIFETIME).unwrap_or(context.time);
    let proposal = NewProposal { id, stack, yaml_content, expires_at };
    Ok(Created(broker.store.create_proposal(context, proposal).await?))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((stack, proposal)): PathParams<(StackId, ProposalId)>,
) -> Result<Json<Proposal>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    let now = broker.clock.now();
    let record = broker.store.get_proposal(stack, proposal, now).await?;
    let describe = |(agent, report)| describe_plan(&broker, agent, report, now);
    let agents = record.agents.into_iter().map(describe).collect();
    let (created_at, expires_at) = (record.created_at, record.expires_at);
    Ok(Json(Proposal { id: proposal, stack_id: stack, created_at, expires_at, agents }))
}

fn describe_plan(broker: &Broker, agent: Agent, report: Option<PlanReport>, now: Timestamp) -> ProposedPlan {
    let agent = broker.memory.heartbeats.apply_to(agent);
    let agent = describe_agent(agent, now, broker.offline_after.map(|after| after.as_secs()));
    let status = match &report {
        Some(report) if report.failed => PlanStatus::Failed,
        Some(_) => PlanStatus::Planned,
        None if agent.status == AgentStatus::Inactive => PlanStatus::Inactive,
        None if !agent.is_online => PlanStatus::Offline,
        None => PlanStatus::Waiting,
    };
    let (agent_id, name, cluster_name) = (agent.id, agent.name, agent.cluster_name);
    let changes = report.as_ref().filter(|report| !report.failed).map(|report| report.changes);
    ProposedPlan { agent_id, name, cluster_name, status, changes, plan: report.map(|report| report.plan) }
}

/// Lists the proposals that an agent has not answered, at most a few: it answers them and asks again.
pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
) -> Result<Json<Vec<AgentProposal>>, ErrorResponse> {
    actor.check_agent(agent)?;
    Ok(Json(broker.store.list_proposals(agent, broker.clock.now()).await?))
}

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((agent, proposal)): PathParams<(AgentId, ProposalId)>,
    context: WriteContext,
    JsonBody(report): JsonBody<PlanReport>,
) -> Result<NoContent, ErrorResponse> {
    actor.check_agent(agent)?;
    if report.plan.len() > PLAN_BYTES_MAX {
        let message = format!("a plan must have at most {PLAN_BYTES_MAX} bytes");
        return Err(ErrorResponse::bad_request("invalid_plan", message));
    }
    broker.store.report_plan(context, agent, proposal, report).await?;
    Ok(NoContent)
}
