//! Proposals, with the plans of agents for them.

use jiff::Timestamp;
use sindri_model::wire::{Agent, PlanReport};
use sindri_model::{ProposalId, StackId};

/// A proposal before it is stored.
#[derive(Clone, Debug)]
pub struct NewProposal {
    /// Its id.
    pub id: ProposalId,
    /// The stack.
    pub stack: StackId,
    /// The bundle.
    pub yaml_content: String,
    /// Time after which it does not exist any more.
    pub expires_at: Timestamp,
}

/// A proposal as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposalRecord {
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time after which it does not exist any more.
    pub expires_at: Timestamp,
    /// The agents that should have the stack, by cluster, with the plans of those that have answered.
    pub agents: Vec<(Agent, Option<PlanReport>)>,
}
