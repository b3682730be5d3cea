//! Proposals: texts for stacks that are not submitted, and the plans of agents for them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{BUNDLE_CHARS_MAX, PLAN_BYTES_MAX};
use crate::{AgentId, ProposalId, StackId};

/// Header of a response to a poll with the number of the newest proposal for the agent, and of a poll with the newest one that
/// the agent has seen. The broker responds without waiting only to a poll that has seen an older one.
pub const PROPOSALS_HEADER: &str = "sindri-proposals";

/// Request for the plans of a text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposalRequest {
    /// Bundle.
    #[cfg_attr(feature = "schema", schemars(length(max = BUNDLE_CHARS_MAX)))]
    pub yaml_content: String,
}

/// A proposal that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedProposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time after which the proposal does not exist any more.
    pub expires_at: Timestamp,
    /// Ids of the agents that should have the stack.
    pub agents: Vec<AgentId>,
}

/// A proposal with the plans of the agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time after which the proposal does not exist any more.
    pub expires_at: Timestamp,
    /// The agents that should have the stack, by cluster.
    pub agents: Vec<ProposedPlan>,
}

/// Progress of an agent with a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PlanStatus {
    /// The agent has not answered.
    Waiting,
    /// The agent has made a plan.
    Planned,
    /// A pass with this text would fail, or the agent has made no plan; the plan says why.
    Failed,
    /// The agent has not answered, and sends no heartbeats.
    Offline,
    /// The agent has not answered, and is inactive.
    Inactive,
}

/// Plan of one agent for a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposedPlan {
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Name of its cluster.
    pub cluster_name: String,
    /// Progress of the agent.
    pub status: PlanStatus,
    /// True if the text would change the cluster; absent without a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// Human-readable plan; absent before the agent has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A proposal as an agent gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentProposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Name of the stack.
    pub stack_name: String,
    /// Annotations of the stack that begin with `sindri.dev/`, which set its policy. A stack without a revision is not in the
    /// target state, and so its policy is not either.
    pub annotations: BTreeMap<String, String>,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Bundle.
    pub yaml_content: String,
}

/// Plan of an agent, as it reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanReport {
    /// True if a pass with the text would fail, or if there is no plan.
    pub failed: bool,
    /// True if the text would change the cluster.
    pub changes: bool,
    /// Human-readable plan; at most 64 KiB.
    #[cfg_attr(feature = "schema", schemars(length(max = PLAN_BYTES_MAX)))]
    pub plan: String,
}

/// Cuts a plan to about so many bytes, at the end of a line. The last line says so.
pub fn cut_plan(mut plan: String, bytes_max: usize) -> String {
    if plan.len() <= bytes_max {
        return plan;
    }
    let note = format!("… the plan has {} bytes, and the rest is not shown\n", plan.len());
    let end = plan.floor_char_boundary(bytes_max.saturating_sub(note.len()));
    plan.truncate(plan[..end].rfind('\n').map_or(0, |newline| newline + 1));
    plan + &note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_cut_at_the_end_of_a_line_and_says_so() {
        let plan = "+ ConfigMap b/ä\n".repeat(100);
        assert_eq!(cut_plan(plan.clone(), plan.len()), plan);
        for bytes_max in 100..200 {
            let cut = cut_plan(plan.clone(), bytes_max);
            let lines: Vec<&str> = cut.lines().collect();
            let (last, rest) = lines.split_last().unwrap();
            assert!(cut.len() <= bytes_max && last.contains("1700 bytes, and the rest is not shown"), "{cut}");
            assert!(rest.iter().all(|line| *line == "+ ConfigMap b/ä"), "{cut}");
        }
        assert_eq!(cut_plan("no line".repeat(20), 100), "… the plan has 140 bytes, and the rest is not shown\n");
    }
}
