//! Revisions, and the target state of an agent that consists of them.

use sindri_model::wire::{AgentStatus, DeploymentObject, SubmittingRequest, TargetVersion};
use sindri_model::{AgentId, Epoch, GeneratorId, RevisionId, Sequence, StackId};

use super::error::StoreError;

/// A revision before it has its sequence.
#[derive(Clone, Debug)]
pub struct NewRevision {
    /// Its id.
    pub id: RevisionId,
    /// The stack.
    pub stack: StackId,
    /// The bundle.
    pub yaml_content: String,
    /// True if it instructs agents to remove the stack.
    pub is_deletion_marker: bool,
}

/// Function that returns the new stored text of a bundle, or nothing to keep the one that it has.
pub type RewriteBundle = Box<dyn Fn(RevisionId, &str) -> Result<Option<String>, StoreError> + Send>;

/// A revision as stored, with the data that decides who may read it.
#[derive(Clone, Debug)]
pub struct StoredRevision {
    /// The revision as a wire type.
    pub revision: DeploymentObject,
    /// The agent for which the revision is meant. None: for all agents that have the stack.
    pub only_for: Option<AgentId>,
    /// Generator of the stack.
    pub generator: GeneratorId,
}

/// The newest revision of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestRevision {
    /// Its id.
    pub id: RevisionId,
    /// Its sequence.
    pub sequence: Sequence,
    /// True if it instructs agents to remove the stack.
    pub is_deletion_marker: bool,
}

/// Target state of one agent: per stack its newest revision or a removal.
#[derive(Clone, Debug)]
pub struct TargetState {
    /// Epoch of the database.
    pub epoch: Epoch,
    /// Version of the target state; it rises with every change.
    pub version: Sequence,
    /// Version of the last change that the target state does not show but that needs a new pass: of a policy
    /// annotation, or the decision on an approval.
    pub recheck_version: Sequence,
    /// Status of the agent: an inactive agent must not act.
    pub status: AgentStatus,
    /// Number of the newest proposal that the agent has not answered.
    pub proposals: Option<Sequence>,
    /// One revision or removal per stack, ascending by sequence.
    pub revisions: Vec<TargetRevision>,
}

impl TargetState {
    /// Returns the version for agents.
    pub(crate) fn target_version(&self) -> TargetVersion {
        TargetVersion { state: self.version, recheck: self.recheck_version }
    }
}

/// One revision or removal of a target state.
#[derive(Clone, Debug)]
pub struct TargetRevision {
    /// The revision as a wire type.
    pub revision: DeploymentObject,
    /// True if the last outcome that the agent reported for it is a success.
    pub is_applied: bool,
    /// Request that submitted it.
    pub request: Option<SubmittingRequest>,
}
