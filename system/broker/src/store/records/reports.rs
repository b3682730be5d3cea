//! Status of a stack as its agents report it.

use jiff::Timestamp;
use sindri_model::wire::AgentStackStatus;
use sindri_model::{AgentId, GeneratorId, StackId};

use super::overview::ReportedAssignment;
use super::revisions::NewestRevision;

/// Reports of all agents about one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackReports {
    /// Generator of the stack.
    pub generator: GeneratorId,
    /// The newest revision, if there is one.
    pub newest: Option<NewestRevision>,
    /// Reports of all agents that should have the stack or have to remove it, in short and in no particular order.
    pub assignments: Vec<ReportedAssignment>,
    /// Page of the last statuses that these agents reported, by name of the agent.
    pub agents: Vec<AgentStackStatus>,
}

/// Filter of events: an event must match every field that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Generator of the stack.
    pub generator: Option<GeneratorId>,
    /// The stack.
    pub stack: Option<StackId>,
    /// The agent.
    pub agent: Option<AgentId>,
    /// Earliest time.
    pub since: Option<Timestamp>,
    /// Order of the list.
    pub order: EventOrder,
}

/// Order of a list of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// By their positions. A page is complete: no event with a lower position follows.
    #[default]
    OldestFirst,
    /// By their positions, descending.
    NewestFirst,
}
