//! The second step: decides every write of one pass. Pure: same inputs, same plan.
//!
//! Namespaces and definitions come first, deletes last. What is deleted is in the inventory, is there, and
//! is proved to be ours by its UID or by marks that are no copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use sindri_model::{ObjectKey, RevisionId};
use thiserror::Error;

use crate::cluster::{Applied, LiveObject};
use crate::pass::inventory::{Entry, Inventory, Position};
use crate::pass::observe::{Desired, DesiredObject, Goal, LiveSet};
use crate::settings::DriftMode;
use crate::target::claims::Claims;

use super::stage::Stage;

/// What a pass left in the cluster: when all of it is still there unchanged, there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The revision that was applied.
    pub revision: RevisionId,
    /// Each object as the server gave it back.
    pub objects: BTreeMap<Arc<ObjectKey>, Applied>,
}

/// What a plan is made from, next to what is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What is ours.
    pub inventory: &'a Inventory,
    /// What is there.
    pub live: &'a LiveSet,
    /// What the last pass left.
    pub settled: Option<&'a Settled>,
    /// What other stacks declare.
    pub claims: &'a Claims,
    /// What to do about changes that nobody declared.
    pub drift: DriftMode,
}

/// One object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object.
    pub object: Arc<DesiredObject>,
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
    /// What is only compared: whether it has changed is not known, and it is not to be put right.
    pub checks: Vec<Write>,
    /// What is deleted, after every write succeeded, by stage the other way round.
    pub deletes: Vec<Delete>,
    /// Already on their way out: waited for, not deleted again.
    pub leaving: Vec<Arc<ObjectKey>>,
    /// What is no longer as this revision left it.
    pub drifted: Vec<Arc<ObjectKey>>,
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
    BeingDeleted(Vec<Arc<ObjectKey>>),
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
        self.writes.is_empty() && self.checks.is_empty() && self.deletes.is_empty() && self.leaving.is_empty()
    }

    /// What has to be there before the rest can be validated, and that rest.
    pub fn before_and_after_validation(&self) -> (&[Write], &[Write]) {
        self.writes.split_at(self.writes.partition_point(|write| write.stage.comes_before_validation()))
    }
}

/// Decides every write of one pass.
pub fn plan(desired: &Desired, observed: Observed<'_>) -> Result<Plan, Refusal> {
    let Observed { inventory, live, .. } = observed;
    if let Some(begun) = inventory.begun.filter(|begun| *begun > desired.position) {
        return Err(Refusal::GoesBack { got: Place(desired.position), begun: Place(begun) });
    }
    let objects: &[Arc<DesiredObject>] = match &desired.goal {
        Goal::Present(objects) => objects,
        Goal::Removed => &[],
    };
    refuse_what_others_own(desired, objects, observed)?;
    refuse_what_is_leaving(objects, live)?;
    let mut plan = decide_writes(desired, objects, observed);
    if !inventory.is_empty() {
        decide_deletes(&mut plan, desired, objects, observed);
    }
    if !plan.deletes.is_empty() {
        let wanted: BTreeSet<&ObjectKey> = objects.iter().map(|object| &*object.key).collect();
        assert!(
            plan.deletes.iter().all(|delete| !wanted.contains(&*delete.entry.key)),
            "a wanted object is never deleted"
        );
    }
    Ok(plan)
}

fn decide_writes(desired: &Desired, objects: &[Arc<DesiredObject>], observed: Observed<'_>) -> Plan {
    let Observed { inventory, live, drift, .. } = observed;
    let settled = observed.settled.filter(|settled| settled.revision == desired.revision);
    let is_applied = inventory.applied == Some(desired.position);
    let (mut writes, mut checks, mut drifted) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects {
        let (found, known) = (live.get(&object.key), settled.and_then(|settled| settled.objects.get(&object.key)));
        if is_settled(known, found) {
            continue;
        }
        let is_looked_at = drift != DriftMode::Off;
        let has_drifted = is_looked_at && is_applied && (found.is_none() || known.is_some());
        let write = Write { stage: Stage::of(&object.key), object: object.clone() };
        if has_drifted {
            drifted.push(object.key.clone());
        }
        match drift {
            DriftMode::Off | DriftMode::Detect if has_drifted => {}
            DriftMode::Off if is_applied => {}
            DriftMode::Detect if is_applied => checks.push(write),
            DriftMode::Off | DriftMode::Detect | DriftMode::Correct => writes.push(write),
        }
    }
    writes.sort_by_key(|write| write.stage);
    let ahead = written_ahead(inventory, desired, &writes);
    Plan { ahead, writes, checks, deletes: Vec::new(), leaving: Vec::new(), drifted }
}

fn written_ahead(inventory: &Inventory, desired: &Desired, writes: &[Write]) -> Inventory {
    let mut ahead = inventory.clone();
    if !writes.is_empty() {
        ahead.begun = Some(desired.position);
    }
    for write in writes {
        let known = ahead.get(&write.object.key);
        // A revision may declare the same object in another version.
        if known.is_none_or(|known| known.resource != write.object.resource) {
            let uid = known.and_then(|known| known.uid.clone());
            let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
            ahead.put(Entry { key, resource, uid });
        }
    }
    ahead
}

/// What carries the marks of another stack is refused, unless that stack has let go of it; of two stacks that declare
/// what nobody has yet, the earlier one gets it.
fn refuse_what_others_own(
    desired: &Desired,
    objects: &[Arc<DesiredObject>],
    observed: Observed<'_>,
) -> Result<(), Refusal> {
    let owner = |key: &ObjectKey| -> Option<String> {
        let live = observed.live.get(key);
        if live.is_some_and(|live| live.marks.prove(desired.stack, key)) {
            return None;
        }
        let marked = live.and_then(|live| live.marks.other_owner(desired.stack, key));
        let marked = marked.filter(|owner| observed.claims.may_want(owner, key)).map(str::to_owned);
        let earlier = || observed.claims.earlier(desired.stack, desired.position.sequence, key);
        marked.or_else(|| earlier().map(|stack| stack.to_string()))
    };
    let owned: Vec<String> = objects
        .iter()
        .filter_map(|object| {
            let owner = owner(&object.key)?;
            Some(format!("{} belongs to stack {owner}; one object cannot be declared by two stacks", object.key))
        })
        .collect();
    if owned.is_empty() { Ok(()) } else { Err(Refusal::OwnedByOthers(owned)) }
}

fn refuse_what_is_leaving(objects: &[Arc<DesiredObject>], live: &LiveSet) -> Result<(), Refusal> {
    let leaving = |object: &&Arc<DesiredObject>| live.get(&object.key).is_some_and(|live| live.deleting);
    let leaving: Vec<Arc<ObjectKey>> = objects.iter().filter(leaving).map(|object| object.key.clone()).collect();
    if leaving.is_empty() { Ok(()) } else { Err(Refusal::BeingDeleted(leaving)) }
}

fn is_settled(known: Option<&Applied>, live: Option<&LiveObject>) -> bool {
    let (Some(known), Some(live)) = (known, live) else { return false };
    known.live.uid == live.uid && known.live.ours.is_some() && known.live.ours == live.ours
}

fn decide_deletes(plan: &mut Plan, desired: &Desired, objects: &[Arc<DesiredObject>], observed: Observed<'_>) {
    let declared: BTreeSet<&ObjectKey> = objects.iter().map(|object| &*object.key).collect();
    for entry in observed.inventory.entries().filter(|entry| !declared.contains(&*entry.key)) {
        let found = observed.live.get(&entry.key).filter(|object| is_ours(desired, entry, object));
        let Some(object) = found else {
            plan.ahead.remove(&entry.key);
            continue;
        };
        if object.deleting {
            plan.leaving.push(entry.key.clone());
        } else if observed.claims.other(desired.stack, &entry.key).is_none() {
            let entry = Entry { resource: object.resource.clone(), ..entry.clone() };
            plan.deletes.push(Delete { entry, uid: object.uid.clone() });
        }
        // What another stack declares now stays, and stays known to us until it carries the marks of the other.
    }
    plan.deletes.sort_by_key(|delete| std::cmp::Reverse(Stage::of(&delete.entry.key)));
    assert!(
        plan.deletes.iter().all(|delete| !declared.contains(&*delete.entry.key)),
        "a wanted object is never deleted"
    );
}

/// Whether a live object is the one that the entry means.
fn is_ours(desired: &Desired, entry: &Entry, object: &LiveObject) -> bool {
    let same = entry.uid.as_deref() == Some(object.uid.as_str());
    let moved = object.marks.other_owner(desired.stack, &entry.key).is_some();
    // An owned object is left to the garbage collector.
    !object.owned && !moved && (same || object.marks.prove(desired.stack, &entry.key))
}
