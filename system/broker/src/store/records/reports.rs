//! Status of a stack as its agents report it.

use sindri_model::wire::AgentStackStatus;
use sindri_model::{GeneratorId, Sequence};

use super::revisions::NewestRevision;

/// Reports of all agents about one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackReports {
    /// Generator of the stack.
    pub generator: GeneratorId,
    /// The newest revision, if there is one.
    pub newest: Option<NewestRevision>,
    /// Reports of the agents that should have the stack or have to remove it, by name of the agent.
    pub agents: Vec<AgentReport>,
}

/// Report of one agent about a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    /// The last status that the agent reported.
    pub status: AgentStackStatus,
    /// Sequence of the removal that the agent has not confirmed.
    pub pending_removal: Option<Sequence>,
}
