//! The second step: decides every write of one pass. Pure: same inputs, same plan.
//!
//! Namespaces and definitions come first, deletes last. What is deleted is in the inventory, is there, and
//! is proved to be ours by its UID or by marks that are no copy.

use std::collections::BTreeMap;
use std::fmt;

use sindri_model::{ObjectKey, RevisionId};
use thiserror::Error;

use crate::cluster::{Applied, LiveObject};
use crate::inventory::{Entry, Inventory, Position};
use crate::observe::{Desired, DesiredObject, Goal, LiveSet};

/// What a pass left in the cluster: when all of it is still there unchanged, there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The revision that was applied.
    pub revision: RevisionId,
    /// Each object as the server gave it back.
    pub objects: BTreeMap<ObjectKey, Applied>,
}

/// The order in which objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Other objects live in them.
    Namespaces,
    /// Other objects are instances of them.
    Definitions,
    /// Everything else, in the order of the bundle.
    Rest,
}

/// One object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object.
    pub object: DesiredObject,
    /// When.
    pub stage: Stage,
}

/// One object to delete, with the identity that is the precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The object.
    pub entry: Entry,
    /// Its identity as it was seen.
    pub uid: String,
}

/// Every write of one pass, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The inventory before the first write.
    pub ahead: Inventory,
    /// What is applied, by stage.
    pub writes: Vec<Write>,
    /// What is deleted, after every write succeeded: instances before definitions before namespaces.
    pub deletes: Vec<Delete>,
    /// Already on their way out: waited for, not deleted again.
    pub leaving: Vec<ObjectKey>,
}

/// A plan that must not be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// An older revision than one that was begun here.
    #[error("revision {got} is older than revision {begun}, which was applied here before; it is not applied")]
    GoesBack {
        /// What the broker sent.
        got: Place,
        /// What was begun.
        begun: Place,
    },
    /// Objects that other stacks declare.
    #[error("{}", .0.join("; "))]
    OwnedByOthers(Vec<String>),
    /// Objects that are on their way out: what is applied to them now goes with them.
    #[error("{} objects are being deleted; they are applied again once they are gone", .0.len())]
    BeingDeleted(Vec<ObjectKey>),
}

/// A position, as people read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub Position);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of epoch {}", self.0.sequence, self.0.epoch)
    }
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deletes.is_empty() && self.leaving.is_empty()
    }
}

/// Decides every write of one pass.
pub fn plan(
    desired: &Desired,
    inventory: &Inventory,
    live: &LiveSet,
    settled: Option<&Settled>,
) -> Result<Plan, Refusal> {
    if let Some(begun) = inventory.begun.filter(|begun| *begun > desired.position) {
        return Err(Refusal::GoesBack { got: Place(desired.position), begun: Place(begun) });
    }
    let objects: &[DesiredObject] = match &desired.goal {
        Goal::Present(objects) => objects,
        Goal::Removed => &[],
    };
    refuse_what_others_own(desired, objects, live)?;
    refuse_what_is_leaving(objects, live)?;
    let settled = settled.filter(|settled| settled.revision == desired.revision);
    let mut writes: Vec<Write> = objects
        .iter()
        .filter(|object| !is_settled(settled, live.get(&object.key)))
        .map(|object| Write { stage: stage(&object.key), object: object.clone() })
        .collect();
    writes.sort_by_key(|write| write.stage);

    let mut ahead = inventory.clone();
    if !writes.is_empty() {
        ahead.begun = Some(desired.position);
    }
    for write in &writes {
        let known = ahead.get(&write.object.key);
        // A revision may declare the same object in another version.
        if known.is_none_or(|known| known.resource != write.object.resource) {
            let uid = known.and_then(|known| known.uid.clone());
            let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
            ahead.put(Entry { key, resource, uid });
        }
    }
    let mut plan = Plan { ahead, writes, deletes: Vec::new(), leaving: Vec::new() };
    decide_deletes(&mut plan, desired, objects, inventory, live);
    assert!(
        plan.deletes.iter().all(|delete| objects.iter().all(|object| object.key != delete.entry.key)),
        "a wanted object is never deleted"
    );
    Ok(plan)
}

fn refuse_what_others_own(desired: &Desired, objects: &[DesiredObject], live: &LiveSet) -> Result<(), Refusal> {
    let owned: Vec<String> = objects
        .iter()
        .filter_map(|object| {
            let owner = live.get(&object.key)?.marks.other_owner(desired.stack, &object.key)?;
            Some(format!("{} belongs to stack {owner}; one object cannot be declared by two stacks", object.key))
        })
        .collect();
    if owned.is_empty() { Ok(()) } else { Err(Refusal::OwnedByOthers(owned)) }
}

fn refuse_what_is_leaving(objects: &[DesiredObject], live: &LiveSet) -> Result<(), Refusal> {
    let leaving = |object: &&DesiredObject| live.get(&object.key).is_some_and(|live| live.deleting);
    let leaving: Vec<ObjectKey> = objects.iter().filter(leaving).map(|object| object.key.clone()).collect();
    if leaving.is_empty() { Ok(()) } else { Err(Refusal::BeingDeleted(leaving)) }
}

fn is_settled(settled: Option<&Settled>, live: Option<&LiveObject>) -> bool {
    let (Some(settled), Some(live)) = (settled, live) else { return false };
    let known = settled.objects.get(&live.key);
    known.is_some_and(|known| known.uid == live.uid && known.ours.is_some() && known.ours == live.ours)
}

/// The stage of a kind.
pub fn stage(key: &ObjectKey) -> Stage {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Namespace") => Stage::Namespaces,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Stage::Definitions,
        _ => Stage::Rest,
    }
}

fn decide_deletes(
    plan: &mut Plan,
    desired: &Desired,
    objects: &[DesiredObject],
    inventory: &Inventory,
    live: &LiveSet,
) {
    for entry in inventory.entries().filter(|entry| objects.iter().all(|object| object.key != entry.key)) {
        let Some(object) = live.get(&entry.key).filter(|object| is_ours(desired, entry, object)) else {
            plan.ahead.remove(&entry.key);
            continue;
        };
        if object.deleting {
            plan.leaving.push(entry.key.clone());
        } else {
            let entry = Entry { resource: object.resource.clone(), ..entry.clone() };
            plan.deletes.push(Delete { entry, uid: object.uid.clone() });
        }
    }
    plan.deletes.sort_by_key(|delete| std::cmp::Reverse(stage(&delete.entry.key)));
}

/// Whether a live object is the one that the entry means.
fn is_ours(desired: &Desired, entry: &Entry, object: &LiveObject) -> bool {
    let same = entry.uid.as_deref() == Some(object.uid.as_str());
    let moved = object.marks.other_owner(desired.stack, &entry.key).is_some();
    // An owned object is left to the garbage collector.
    !object.owned && !moved && (same || object.marks.prove(desired.stack, &entry.key))
}

#[cfg(test)]
mod tests;
