//! Plan of one pass: its writes and deletes, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_model::ObjectKey;

use crate::pass::desired::DesiredObject;
use crate::pass::inventory::{Entry, Inventory};
use crate::pass::order::Turn;
use crate::pass::stage::{DeleteOrder, Stage};

/// Object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Declared object.
    pub object: Arc<DesiredObject>,
    /// Stage in which it is applied.
    pub stage: Stage,
    /// UID of the live object, if there is one.
    pub uid: Option<String>,
}

impl Write {
    /// Returns the key of an object that is applied once and does not exist yet.
    pub fn created_once(&self) -> Option<&ObjectKey> {
        (self.object.once.is_some() && self.uid.is_none()).then_some(&*self.object.key)
    }
}

/// Object to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Inventory entry of the object.
    pub entry: Entry,
    /// UID of the live object, the precondition of the delete.
    pub uid: String,
    /// Place in the order of deletion.
    pub order: DeleteOrder,
}

/// Turn whose objects are not ready yet, so that later ones wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTurn {
    /// Turn of the objects.
    pub turn: Turn,
    /// Objects that are not ready, or not applied yet.
    pub objects: Vec<Arc<ObjectKey>>,
}

/// Every write of one pass, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Inventory to store before the first write.
    pub inventory_ahead: Inventory,
    /// Objects to apply, by stage.
    pub writes: Vec<Write>,
    /// Objects to compare by a dry run only: it is not known if they changed, and drift is not corrected.
    pub checks: Vec<Write>,
    /// Objects to delete after every write succeeded, in the order of deletion.
    pub deletes: Vec<Delete>,
    /// Objects to delete once no turn waits any more.
    pub later_deletes: Vec<Arc<ObjectKey>>,
    /// Objects that are no longer declared and are kept: they lose their ownership label and annotations.
    pub releases: Vec<Delete>,
    /// Objects that are no longer declared and are already being deleted: waited for, not deleted again.
    pub terminating: Vec<Arc<ObjectKey>>,
    /// Objects that are no longer declared here, and that another stack declares: kept until it owns them.
    pub claimed: Vec<Arc<ObjectKey>>,
    /// Declared objects that are being deleted: applied once they are gone.
    pub delayed: Vec<Arc<ObjectKey>>,
    /// Objects that are no longer declared, and are not deleted before every kind can be read.
    pub unread: Vec<Arc<ObjectKey>>,
    /// Objects that differ from what this revision applied.
    pub drifted: Vec<Arc<ObjectKey>>,
    /// True if declared objects are left to a later pass, because they are being deleted, cannot be read, or wait.
    pub is_partial: bool,
    /// Objects among the writes that belong to stacks that are not in the target state, with the ids of these stacks. Another
    /// broker may manage them.
    pub adoptions: BTreeMap<Arc<ObjectKey>, String>,
    /// Turn for which later objects wait.
    pub waiting: Option<WaitingTurn>,
}

impl Plan {
    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let is_complete = self.terminating.is_empty() && self.delayed.is_empty() && self.releases.is_empty();
        self.writes.is_empty() && self.checks.is_empty() && self.deletes.is_empty() && is_complete
    }

    /// Returns the objects that this pass or a later one of the same revision deletes: those that cannot be read now too.
    pub fn all_deletes(&self) -> impl Iterator<Item = &Arc<ObjectKey>> {
        self.deletes.iter().map(|delete| &delete.entry.key).chain(&self.unread).chain(&self.later_deletes)
    }

    /// Returns the writes that must be done before the others can be validated, and the others.
    pub fn split_at_validation(&self) -> (&[Write], &[Write]) {
        self.writes.split_at(self.writes.partition_point(|write| write.stage.precedes_validation()))
    }
}
