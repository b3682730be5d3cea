//! The second step of a pass: decides every write. Pure: same inputs, same plan.
//!
//! Namespaces and CRDs are written first, deletes come last. An object is deleted only if it is in the inventory, exists,
//! and is proved to belong to the stack by its UID or by ownership annotations that are not a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sindri_model::policy::DriftMode;
use sindri_model::{ObjectKey, RevisionId, StackId};
use thiserror::Error;

use super::steps::{Delete, Plan, WaitingTurn, Write};
use crate::cluster::{AppliedObject, LiveObject};
use crate::pass::creation::{Creation, CreationResult};
use crate::pass::desired::{DesiredObject, DesiredStack, Goal};
use crate::pass::inventory::{Entry, Inventory, RevisionPosition};
use crate::pass::observe::{LiveSet, UnreadableKinds};
use crate::pass::order::ReadyObjects;
use crate::pass::stage::{DeleteOrder, Stage};
use crate::target::claims::Claims;

/// Result of the last pass. An object that is unchanged since then need not be applied again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedState {
    /// Revision that was applied.
    pub revision: RevisionId,
    /// Objects as the server returned them.
    pub objects: BTreeMap<Arc<ObjectKey>, AppliedObject>,
}

/// Inputs of a plan besides the desired state.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs<'a> {
    /// Inventory of the stack.
    pub inventory: &'a Inventory,
    /// Live objects.
    pub live: &'a LiveSet,
    /// Kinds of which nothing is known, and whose objects are left alone.
    pub unreadable: &'a UnreadableKinds,
    /// Result of the last pass of this process.
    pub last_applied: Option<&'a AppliedState>,
    /// Claims of all stacks.
    pub claims: &'a Claims,
    /// Treatment of drift.
    pub drift: DriftMode,
    /// True if a removal keeps every object, without its ownership label and annotations.
    pub releases_all: bool,
    /// True if the stack is written as a ServiceAccount.
    pub is_impersonated: bool,
    /// Ready objects, for which later turns wait; `None` for a plan of all turns.
    pub ready: Option<&'a ReadyObjects>,
}

/// Reason why nothing of a revision may be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// The revision is older than one whose writes began here.
    #[error(
        "revision {got} is older than revision {begun}, which was applied here before; it is not applied: submit the stack again"
    )]
    OlderRevision {
        /// Revision of the target state.
        got: RevisionPosition,
        /// Newest revision whose writes began.
        begun: RevisionPosition,
    },
    /// Objects that belong to other stacks, each with the reason.
    #[error("{}", .0.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>().join("; "))]
    OwnedByOtherStacks(Vec<(ObjectKey, String)>),
}

/// Decides every write of one pass.
pub fn make_plan(desired: &DesiredStack, inputs: PlanInputs<'_>) -> Result<Plan, PlanError> {
    let PlanInputs { inventory, live, .. } = inputs;
    // Nothing newer began since a revision was applied, unless it began and ended as the same one.
    let is_applied = inventory.applied == Some(desired.position);
    let outdated = inventory.begun.filter(|begun| *begun > desired.position && !is_applied);
    // The revision of a stack that was targeted again is older than the removal that this cancelled; the target state is not.
    // That of a restored database is newer, and still does not know what was begun.
    let version = inputs.claims.version().map(RevisionPosition::from_sequence);
    let instructed = version.filter(|version| outdated.is_some_and(|begun| knows(*version, begun)));
    if let (Some(begun), None) = (outdated, instructed) {
        return Err(PlanError::OlderRevision { got: desired.position, begun });
    }
    let objects = desired.goal.objects();
    let adoptions = find_adoptions(desired, objects, inputs)?;
    let terminating = find_terminating(objects, live);
    let mut plan = decide_writes(desired, objects, &terminating, inputs);
    (plan.delayed, plan.adoptions) = (terminating.objects, adoptions);
    if !inventory.is_empty() && plan.waiting.is_none() {
        decide_deletes(&mut plan, desired, objects, inputs);
    } else if !inventory.is_empty() {
        // An object that is no longer declared is deleted when everything that may replace it is applied. The brake counts it
        // from the first pass on: later ones have more objects in the inventory.
        let mut later = Plan { inventory_ahead: inventory.clone(), ..Plan::default() };
        decide_deletes(&mut later, desired, objects, inputs);
        plan.later_deletes = later.all_deletes().cloned().collect();
    }
    let has_steps = !plan.writes.is_empty() || !plan.deletes.is_empty() || !plan.releases.is_empty();
    if has_steps {
        plan.inventory_ahead.begun = instructed.or(Some(desired.position)).max(inventory.begun);
        // From here on the cluster may have a part of another revision.
        plan.inventory_ahead.applied = inventory.applied.filter(|applied| *applied == desired.position);
    }
    Ok(plan)
}

/// Returns true if a target state of this version follows an instruction of the same database.
fn knows(version: RevisionPosition, begun: RevisionPosition) -> bool {
    version.epoch == begun.epoch && version >= begun
}

fn decide_writes(
    desired: &DesiredStack,
    objects: &[Arc<DesiredObject>],
    terminating: &Terminating,
    inputs: PlanInputs<'_>,
) -> Plan {
    let PlanInputs { inventory, live, unreadable, drift, .. } = inputs;
    let last_applied = inputs.last_applied.filter(|last| last.revision == desired.revision);
    let is_applied = inventory.applied == Some(desired.position);
    let (mut writes, mut checks, mut drifted) = (Vec::new(), Vec::new(), Vec::new());
    let waiting = inputs.ready.and_then(|ready| find_waiting(desired, objects, inputs, ready));
    let mut is_partial = waiting.is_some();
    for object in objects {
        let is_later = waiting.as_ref().is_some_and(|waiting| object.turn > waiting.turn);
        if is_later || find_done(object, inventory, live, unreadable).is_some() {
            continue;
        }
        if unreadable.contains(&object.key) || terminating.delays(object) {
            is_partial = true;
            continue;
        }
        let (found, known) = (live.get(&object.key), last_applied.and_then(|last| last.objects.get(&object.key)));
        if is_unchanged(known, found) {
            continue;
        }
        let has_drifted = drift != DriftMode::Off && is_applied && (found.is_none() || known.is_some());
        let uid = found.map(|live| live.uid.clone());
        let write = Write { stage: Stage::from_key(&object.key), object: object.clone(), uid };
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
    let inventory_ahead = add_writes(inventory, &writes);
    Plan { inventory_ahead, writes, checks, drifted, is_partial, waiting, ..Plan::default() }
}

/// Finds the first turn of a revision that is not applied and ready, if there are later ones.
fn find_waiting(
    desired: &DesiredStack,
    objects: &[Arc<DesiredObject>],
    inputs: PlanInputs<'_>,
    ready: &ReadyObjects,
) -> Option<WaitingTurn> {
    if inputs.inventory.applied == Some(desired.position) {
        return None;
    }
    let last = objects.iter().map(|object| object.turn).max()?;
    let applied = inputs.last_applied.filter(|applied| applied.revision == desired.revision);
    let is_settled = |object: &DesiredObject| {
        let known = applied.and_then(|applied| applied.objects.get(&object.key));
        match find_done(object, inputs.inventory, inputs.live, inputs.unreadable) {
            Some(creation) => creation.result == CreationResult::Completed,
            None => ready.contains(&object.key) && is_unchanged(known, inputs.live.get(&object.key)),
        }
    };
    let unsettled = || objects.iter().filter(|object| !is_settled(object));
    let turn = unsettled().map(|object| object.turn).min().filter(|turn| *turn < last)?;
    let objects = unsettled().filter(|object| object.turn == turn).map(|object| object.key.clone()).collect();
    Some(WaitingTurn { turn, objects })
}

/// Returns the creation of an object that is applied once, was created as it is declared, and is gone.
pub fn find_done<'a>(
    object: &DesiredObject,
    inventory: &'a Inventory,
    live: &LiveSet,
    unreadable: &UnreadableKinds,
) -> Option<&'a Creation> {
    let manifest = object.once.as_ref()?;
    let creation = inventory.get(&object.key)?.once.as_ref().filter(|creation| creation.manifest == *manifest)?;
    (!unreadable.contains(&object.key) && live.get(&object.key).is_none()).then_some(creation)
}

/// Returns the inventory with the keys of all writes.
fn add_writes(inventory: &Inventory, writes: &[Write]) -> Inventory {
    let mut ahead = inventory.clone();
    for write in writes {
        let known = ahead.get(&write.object.key);
        // A revision may declare the same object in another API version.
        if known.is_none_or(|known| known.resource != write.object.resource) {
            let (uid, once) = known.map_or((None, None), |known| (known.uid.clone(), known.once.clone()));
            let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
            ahead.insert(Entry { uid, once, ..Entry::new(key, resource) });
        }
    }
    ahead
}

/// Rejects objects that belong to another stack, unless that stack does not declare them any more. Of two stacks that
/// declare an object that has no owner yet, the one with the earlier sequence gets it. Returns the objects whose annotations
/// name a stack that is not in the target state, with its id.
fn find_adoptions(
    desired: &DesiredStack,
    objects: &[Arc<DesiredObject>],
    inputs: PlanInputs<'_>,
) -> Result<BTreeMap<Arc<ObjectKey>, String>, PlanError> {
    let mut adoptions = BTreeMap::new();
    for object in objects {
        let ownership = inputs.live.get(&object.key).map(|live| &live.ownership);
        let owner = ownership.and_then(|ownership| ownership.annotated_owner(desired.stack, &object.key));
        let is_known = |owner: &str| owner.parse().is_ok_and(|owner| inputs.claims.has_stack(owner));
        if let Some(owner) = owner.filter(|owner| !is_known(owner)) {
            adoptions.insert(object.key.clone(), owner.to_owned());
        }
    }
    let owner = |key: &ObjectKey| -> Option<StackId> {
        let live = inputs.live.get(key);
        if live.is_some_and(|live| live.ownership.proves_owner(desired.stack, key)) || adoptions.contains_key(key) {
            return None;
        }
        // One that is not an id is not in the target state, and its objects are adopted.
        let annotated = live.and_then(|live| live.ownership.other_owner(desired.stack, key)?.parse().ok());
        let is_other = |owner: &StackId| *owner != desired.stack && inputs.claims.may_declare(*owner, key);
        let annotated = annotated.filter(is_other);
        annotated.or_else(|| inputs.claims.earlier_claimant(desired.stack, desired.position.sequence, key))
    };
    let owned: Vec<(ObjectKey, String)> = objects
        .iter()
        .filter_map(|object| {
            let (key, owner) = (&*object.key, inputs.claims.name(owner(&object.key)?));
            let reason = format!("{key} belongs to stack {owner}; one object cannot be declared by two stacks");
            Some((key.clone(), reason))
        })
        .collect();
    if owned.is_empty() { Ok(adoptions) } else { Err(PlanError::OwnedByOtherStacks(owned)) }
}

/// Declared objects that are being deleted: a change applied now would be lost with them.
struct Terminating {
    objects: Vec<Arc<ObjectKey>>,
    /// Names of the namespaces among them, in which nothing can be created.
    namespaces: BTreeSet<String>,
    /// Names of the CRDs among them, of which no custom resource can be created.
    crds: BTreeSet<String>,
}

impl Terminating {
    /// Returns true if an object cannot be applied before one of these is gone.
    fn delays(&self, object: &DesiredObject) -> bool {
        let (key, resource) = (&object.key, &object.resource);
        let is_inside = || {
            key.namespace.as_ref().is_some_and(|namespace| self.namespaces.contains(namespace))
                || !self.crds.is_empty() && self.crds.contains(&format!("{}.{}", resource.plural, resource.group))
        };
        !self.objects.is_empty() && (is_inside() || self.objects.contains(key))
    }
}

fn find_terminating(objects: &[Arc<DesiredObject>], live: &LiveSet) -> Terminating {
    let is_terminating = |object: &&Arc<DesiredObject>| live.get(&object.key).is_some_and(|live| live.is_terminating);
    let objects: Vec<_> = objects.iter().filter(is_terminating).map(|object| object.key.clone()).collect();
    let names = |stage| objects.iter().filter(move |key| Stage::from_key(key) == stage).map(|key| key.name.clone());
    let (namespaces, crds) = (names(Stage::Namespaces).collect(), names(Stage::Crds).collect());
    Terminating { namespaces, crds, objects }
}

/// Returns true if a live object is the one that was applied, and no other client changed an applied field.
fn is_unchanged(applied: Option<&AppliedObject>, live: Option<&LiveObject>) -> bool {
    let (Some(applied), Some(live)) = (applied, live) else { return false };
    let fields = applied.live.applied_fields;
    applied.live.uid == live.uid && fields.is_some() && fields == live.applied_fields
}

fn decide_deletes(plan: &mut Plan, desired: &DesiredStack, objects: &[Arc<DesiredObject>], inputs: PlanInputs<'_>) {
    let declared: BTreeSet<&ObjectKey> = objects.iter().map(|object| &*object.key).collect();
    let find_order = if inputs.is_impersonated { DeleteOrder::from_impersonated_key } else { DeleteOrder::from_key };
    let declared_live: BTreeSet<[&str; 3]> =
        objects.iter().filter_map(|object| inputs.live.get(&object.key)).map(identity).collect();
    for entry in inputs.inventory.entries().filter(|entry| !declared.contains(&*entry.key)) {
        if inputs.unreadable.contains(&entry.key) {
            plan.unread.push(entry.key.clone());
            continue;
        }
        let found = inputs.live.get(&entry.key).filter(|object| is_owned(desired.stack, entry, object));
        // Some kinds are served by two API groups, such as Events: the same object may be declared in the other one.
        let Some(object) = found.filter(|object| !declared_live.contains(&identity(object))) else {
            plan.inventory_ahead.remove(&entry.key);
            continue;
        };
        if object.is_terminating {
            plan.terminating.push(entry.key.clone());
        } else if inputs.claims.other_claimant(desired.stack, &entry.key).is_some() {
            // It stays in the inventory until the other stack owns it.
            plan.claimed.push(entry.key.clone());
        } else {
            let entry = Entry { resource: object.resource.clone(), ..entry.clone() };
            let (order, uid) = (find_order(&entry.key), object.uid.clone());
            let delete = Delete { entry, uid, order };
            let is_released = object.is_prune_disabled || inputs.releases_all && desired.goal == Goal::Removed;
            if is_released { plan.releases.push(delete) } else { plan.deletes.push(delete) }
        }
    }
    plan.deletes.sort_by_key(|delete| delete.order);
    // An object that could not be read may be inside a namespace, or needs its operator, or the permissions of the ServiceAccount.
    let has_unread_custom = plan.unread.iter().any(|key| DeleteOrder::from_key(key) == DeleteOrder::CustomResource);
    let may_delete = |order: DeleteOrder| match order {
        DeleteOrder::CustomResource => true,
        DeleteOrder::Permissions => inputs.unreadable.is_empty(),
        DeleteOrder::Stage(_) => !has_unread_custom && (!order.has_content() || inputs.unreadable.is_empty()),
    };
    let later: Vec<Delete> = plan.deletes.extract_if(.., |delete| !may_delete(delete.order)).collect();
    plan.unread.extend(later.into_iter().map(|delete| delete.entry.key));
    assert!(
        plan.deletes.iter().all(|delete| !declared.contains(&*delete.entry.key)),
        "a declared object is never deleted"
    );
}

/// Returns the kind, name and UID of an object, which are the same in every API group that serves it.
fn identity(object: &LiveObject) -> [&str; 3] {
    [&object.key.kind, &object.key.name, &object.uid]
}

/// Returns true if a live object is proved to belong to the stack: it is the one of the inventory entry, or its annotations
/// are the stack's and not a copy.
pub fn is_owned(stack: StackId, entry: &Entry, object: &LiveObject) -> bool {
    let has_other_owner = object.ownership.other_owner(stack, &entry.key).is_some();
    // An object with an owner reference is left to the garbage collector.
    object.owners.is_empty() && !has_other_owner && is_proved(stack, entry, object)
}

/// Returns true if a live object is the one of an inventory entry: by its UID, or by annotations of the stack.
pub fn is_proved(stack: StackId, entry: &Entry, object: &LiveObject) -> bool {
    entry.uid.as_deref() == Some(object.uid.as_str()) || object.ownership.proves_owner(stack, &entry.key)
}
