//! Stacks on clusters as the overview has them.

use jiff::Timestamp;
use sindri_model::wire::{Agent, RevisionOverview, Stack};
use sindri_model::{AgentId, GeneratorId, Sequence, StackId};

use super::condition_summary::ConditionSummary;
use super::paging::Page;

/// Stacks of an overview.
#[derive(Clone, Debug)]
pub struct OverviewFilter {
    /// Only stacks of this generator, and the agents that are registered with it or have one of them.
    pub generator: Option<GeneratorId>,
    /// Only this stack, and its agents.
    pub stack: Option<StackId>,
    /// Page of the stacks, by name.
    pub page: Page,
}

/// Content of an overview.
#[derive(Clone, Debug)]
pub struct OverviewRecords {
    /// Agents by name.
    pub agents: Vec<Agent>,
    /// Stacks by name.
    pub stacks: Vec<OverviewStack>,
    /// Assignments of these stacks to these agents, in no particular order.
    pub assignments: Vec<AssignmentRecord>,
    /// True if there are more stacks.
    pub is_full: bool,
}

/// Stack of an overview.
#[derive(Clone, Debug)]
pub struct OverviewStack {
    /// The stack, which may be deleted.
    pub stack: Stack,
    /// Its newest revision.
    pub newest: Option<RevisionOverview>,
    /// Value of the annotation that suspends it.
    pub suspension: Option<String>,
}

/// Stack that an agent should have or must remove.
#[derive(Clone, Debug)]
pub struct AssignmentRecord {
    /// The agent.
    pub agent: AgentId,
    /// The stack.
    pub stack: StackId,
    /// Report of the agent about it.
    pub reported: ReportedAssignment,
}

/// Reports of an agent about a stack, and the removal that it has to confirm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedAssignment {
    /// Sequence of the removal that the agent has not confirmed.
    pub pending_removal: Option<Sequence>,
    /// Last outcome.
    pub outcome: Option<ReportedOutcome>,
    /// Revision of the last report with conditions, and their summary.
    pub summary: Option<(Sequence, ConditionSummary)>,
}

/// Last outcome that an agent has reported for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedOutcome {
    /// Sequence of the revision.
    pub sequence: Sequence,
    /// True if it was applied.
    pub succeeded: bool,
    /// Time of the event.
    pub reported_at: Option<Timestamp>,
    /// Message of a failure.
    pub message: Option<String>,
}
