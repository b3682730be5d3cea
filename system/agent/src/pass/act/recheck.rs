//! Checks before each attempt to delete, replace or release an object: since the plan was made another client may have changed
//! it, another stack may have declared it, or the instruction may be outdated.

use sindri_model::StackId;

use super::result::DeleteError;
use crate::cluster::{Cluster, LiveObject};
use crate::pass::inventory::Entry;
use crate::pass::plan::is_owned;
use crate::target::instruction::Instruction;

/// Checks of one pass.
#[derive(Clone, Copy)]
pub struct Recheck<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Instruction that the pass executes.
    pub instruction: &'a Instruction<'a>,
}

impl Recheck<'_> {
    /// Reads the object of an entry, which must still belong to the stack. Returns `None` if it is gone, or if another client has
    /// created a new one: that is not an object of the stack.
    pub async fn read(&self, entry: &Entry, uid: &str) -> Result<Option<LiveObject>, DeleteError> {
        let live = self.cluster.get_metadata(&entry.resource, &entry.key).await?.filter(|live| live.uid == uid);
        match live {
            Some(live) if !is_owned(self.stack, entry, &live) => Err(DeleteError::Changed(entry.key.clone())),
            live => Ok(live),
        }
    }

    /// Checks that the instruction is current.
    pub fn check_current(&self, entry: &Entry) -> Result<(), DeleteError> {
        if self.instruction.is_current() { Ok(()) } else { Err(DeleteError::Interrupted(entry.key.clone())) }
    }

    /// Checks that the instruction is current, and that no other stack declares an object that this one drops.
    pub fn check_dropped(&self, entry: &Entry) -> Result<(), DeleteError> {
        if self.instruction.claims().other_claimant(self.stack, &entry.key).is_some() {
            return Err(DeleteError::Interrupted(entry.key.clone()));
        }
        self.check_current(entry)
    }
}
