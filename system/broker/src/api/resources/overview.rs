//! Overview of stacks on clusters in one response. A generator gets its own stacks.

use std::collections::BTreeMap;

use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::policy::{PolicyValue, SUSPEND_ANNOTATION};
use sindri_model::wire::{
    Agent, AgentOverview, AgentStatus, AssignmentState, AssignmentStatus, StackOverview, StatusOverview,
};
use sindri_model::{AgentId, StackId};

use super::stack_state::{Newest, derive_reported};
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::QueryParams;
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::broker::Broker;
use crate::store::{AssignmentRecord, KeyHolder, OverviewFilter, OverviewRecords, OverviewStack, cut};

/// Characters of a message in an overview of several stacks.
const MESSAGE_CHARS_MAX: usize = 240;
/// Usual size of an assignment in the response.
const ASSIGNMENT_BYTES: usize = 120;

/// Filter of the overview.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct StackParam {
    /// Only this stack, and its agents.
    stack: Option<StackId>,
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    QueryParams(StackParam { stack }): QueryParams<StackParam>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<StatusOverview>, ErrorResponse> {
    let generator = match actor.holder {
        KeyHolder::Admin(_) => None,
        KeyHolder::Generator(generator) => Some(generator),
        KeyHolder::Agent(_) => return Err(Denial::GeneratorRequired.into()),
    };
    let filter = OverviewFilter { generator, stack, page: params.page() };
    let mut records = broker.store.read_overview(filter).await?;
    records.agents = records.agents.into_iter().map(|agent| broker.memory.heartbeats.apply_to(agent)).collect();
    let last = records.stacks.last().filter(|_| records.is_full).map(|last| last.stack.id);
    let text_bytes = records.assignments.len() * ASSIGNMENT_BYTES;
    let (now, offline_after) = (broker.clock.now(), broker.offline_after.map(|after| after.as_secs()));
    let build = move || build_overview(records, stack.is_some(), now, offline_after);
    permit.serialize_built(&broker, params.link_after(last), text_bytes, build).await
}

/// An agent of an overview, and its assignments by stack.
struct KnownAgent {
    overview: AgentOverview,
    is_listed: bool,
}

fn build_overview(
    records: OverviewRecords,
    is_one_stack: bool,
    now: Timestamp,
    offline_after_secs: Option<u64>,
) -> StatusOverview {
    let OverviewRecords { agents, stacks, mut assignments, .. } = records;
    let mut agents: Vec<KnownAgent> = agents
        .into_iter()
        .map(|agent| KnownAgent { overview: describe_agent(agent, now, offline_after_secs), is_listed: !is_one_stack })
        .collect();
    let positions: BTreeMap<AgentId, usize> =
        agents.iter().enumerate().map(|(position, agent)| (agent.overview.id, position)).collect();
    let mut by_stack: BTreeMap<StackId, Vec<(usize, AssignmentRecord)>> = BTreeMap::new();
    for assignment in assignments.drain(..) {
        // An assignment of a deleted agent is in the overview of the fleet.
        if let Some(position) = positions.get(&assignment.agent) {
            by_stack.entry(assignment.stack).or_default().push((*position, assignment));
        }
    }
    let chars_max = if is_one_stack { usize::MAX } else { MESSAGE_CHARS_MAX };
    let stacks = stacks.into_iter().map(|stack| {
        let mut assigned = by_stack.remove(&stack.stack.id).unwrap_or_default();
        assigned.sort_unstable_by_key(|(position, _)| *position);
        assigned.iter().for_each(|(position, _)| agents[*position].is_listed = true);
        let describe = |(position, assignment): (usize, AssignmentRecord)| {
            describe_assignment(&stack, &agents[position].overview, assignment, chars_max)
        };
        let assignments = assigned.into_iter().map(describe).collect();
        describe_stack(stack, assignments)
    });
    let stacks = stacks.collect();
    let listed = agents.into_iter().filter(|agent| agent.is_listed);
    StatusOverview { time: now, agents: listed.map(|agent| agent.overview).collect(), stacks }
}

/// Describes an agent, with its heartbeats at this time.
pub(super) fn describe_agent(agent: Agent, now: Timestamp, offline_after_secs: Option<u64>) -> AgentOverview {
    // The clocks of two brokers differ, and a clock may be set back: a negative age becomes 0.
    let age = agent.last_heartbeat.map(|time| now.duration_since(time).as_secs().max(0));
    let is_recent = |age: i64| offline_after_secs.is_none_or(|after| age.unsigned_abs() <= after);
    AgentOverview {
        id: agent.id,
        name: agent.name,
        cluster_name: agent.cluster_name,
        status: agent.status,
        is_online: age.is_some_and(is_recent),
        last_heartbeat: agent.last_heartbeat,
        heartbeat_age_seconds: age,
    }
}

fn describe_stack(stack: OverviewStack, assignments: Vec<AssignmentStatus>) -> StackOverview {
    let OverviewStack { stack, newest, .. } = stack;
    StackOverview {
        id: stack.id,
        name: stack.name,
        generator_id: stack.generator_id,
        deleted_at: stack.deleted_at,
        revision: newest,
        assignments,
    }
}

fn describe_assignment(
    stack: &OverviewStack,
    agent: &AgentOverview,
    assignment: AssignmentRecord,
    chars_max: usize,
) -> AssignmentStatus {
    let newest = stack
        .newest
        .map(|newest| Newest { sequence: newest.sequence_id, is_deletion_marker: newest.is_deletion_marker });
    let is_removal = assignment.reported.pending_removal.is_some();
    let derived = derive_reported(newest, &assignment.reported);
    let reported = derived.assignment_state(is_suspended(stack, &agent.name));
    let absent = match (agent.status, agent.is_online) {
        _ if reported == AssignmentState::Removed => None,
        (AgentStatus::Inactive, _) => Some((AssignmentState::Inactive, None, "AgentInactive")),
        (AgentStatus::Active, false) => Some((AssignmentState::Offline, agent.last_heartbeat, "NoHeartbeat")),
        (AgentStatus::Active, true) => None,
    };
    if let Some((state, since, reason)) = absent {
        let (last_reported, reason) = (Some(reported), Some(reason.to_owned()));
        return AssignmentStatus { agent_id: agent.id, state, is_removal, since, last_reported, reason, message: None };
    }
    AssignmentStatus {
        agent_id: agent.id,
        state: reported,
        is_removal,
        since: derived.since,
        last_reported: None,
        reason: derived.reason.map(str::to_owned),
        message: derived.message.map(|message| cut(message.to_owned(), chars_max)),
    }
}

/// Returns true if a policy suspends the stack on the cluster of this agent. An agent writes nothing of a stack with a value that it
/// cannot read.
fn is_suspended(stack: &OverviewStack, agent: &str) -> bool {
    let Some(value) = &stack.suspension else { return false };
    match PolicyValue::parse(SUSPEND_ANNOTATION, value) {
        Ok(Some(PolicyValue::Suspend(suspension))) => suspension.includes(agent),
        Ok(_) | Err(_) => true,
    }
}
