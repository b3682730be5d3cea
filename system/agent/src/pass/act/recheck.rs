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

    /// Checks that no other stack declares an object by now, and that the instruction is current.
    pub fn check_instruction(&self, entry: &Entry) -> Result<(), DeleteError> {
        let is_claimed = self.instruction.claims().other_claimant(self.stack, &entry.key).is_some();
        if is_claimed || !self.instruction.is_current() {
            return Err(DeleteError::Interrupted(entry.key.clone()));
        }
        Ok(())
    }

    /// Reads the object of an entry, and makes every check.
    pub async fn read_current(&self, entry: &Entry, uid: &str) -> Result<Option<LiveObject>, DeleteError> {
        let live = self.read(entry, uid).await?;
        self.check_instruction(entry)?;
        Ok(live)
    }
}
