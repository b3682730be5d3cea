//! Instruction of the broker that a pass executes. It may be outdated before the pass has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_model::{RevisionId, StackId};

use super::claims::Claims;
use super::revision::Revision;
use super::state::LatestTargetState;

/// Revision or removal of a stack, with the stack's annotations when the pass began.
pub struct Instruction<'a> {
    target: &'a LatestTargetState,
    stack: StackId,
    revision: RevisionId,
    annotations: BTreeMap<String, String>,
}

impl<'a> Instruction<'a> {
    /// Returns the instruction to apply this revision as the target state is now.
    pub fn new(target: &'a LatestTargetState, revision: &Revision) -> Self {
        let (stack, revision) = (revision.stack_id, revision.id);
        Self { target, stack, revision, annotations: target.annotations(stack) }
    }

    /// Returns true if the agent is active, and the stack still has this revision and these annotations.
    pub fn is_current(&self) -> bool {
        self.target.has_instruction(self.stack, self.revision, &self.annotations)
    }

    /// Returns the claims of all stacks as they are now: another stack may have changed since the pass began.
    pub fn claims(&self) -> Arc<Claims> {
        self.target.claims()
    }
}
