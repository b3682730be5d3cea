//! Brake: deletions that wait for an approval, because there are many of them or because they would delete more than the
//! object itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};

use super::planner::{PlanInputs, is_owned};
use super::steps::Plan;
use crate::pass::desired::{DesiredStack, Goal};
use crate::pass::inventory::Entry;
use crate::pass::stage::Stage;
use crate::settings::Brake;

/// Foreign objects that would be deleted with a namespace or a CRD, by the key of the latter.
pub type ForeignObjects = BTreeMap<Arc<ObjectKey>, Vec<Arc<ObjectKey>>>;

/// Number of foreign objects that are named in a message.
const NAMED_MAX: usize = 10;

/// Characters of an owner that is not the id of a stack.
const OWNER_CHARS_MAX: usize = 64;

/// Deletion that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The whole revision, because it would delete most of its stack.
    TooMany {
        /// Objects that it would delete.
        objects: Vec<Arc<ObjectKey>>,
        /// Number of objects of the stack.
        total: usize,
    },
    /// The whole revision, because it declares objects of stacks that are not in the target state.
    Adoption {
        /// Ids of these stacks.
        owners: BTreeSet<String>,
        /// Objects.
        objects: Vec<Arc<ObjectKey>>,
    },
    /// One delete, because data would be deleted with it.
    Data {
        /// Key of the PersistentVolumeClaim.
        key: Arc<ObjectKey>,
        /// Its UID.
        uid: String,
    },
    /// One delete, because foreign objects would be deleted with it.
    Foreign {
        /// Key of the namespace or the CRD.
        key: Arc<ObjectKey>,
        /// Its UID.
        uid: String,
        /// Foreign objects.
        objects: Vec<Arc<ObjectKey>>,
    },
}

impl Hold {
    /// Returns the object that is not deleted; `None` if the whole revision waits.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::TooMany { .. } | Self::Adoption { .. } => None,
            Self::Data { key, .. } | Self::Foreign { key, .. } => Some(key),
        }
    }

    /// Returns the objects that it is about: those that would be deleted or taken over.
    pub fn objects(&self) -> &[Arc<ObjectKey>] {
        match self {
            Self::TooMany { objects, .. } | Self::Adoption { objects, .. } => objects,
            Self::Data { key, .. } | Self::Foreign { key, .. } => std::slice::from_ref(key),
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { objects, total } => {
                write!(f, "the revision would delete {} of {total} objects", objects.len())
            }
            Self::Adoption { owners, objects } => {
                let named = owners.iter().take(NAMED_MAX).map(|owner| describe_owner(owner));
                let more = owners.len().checked_sub(NAMED_MAX).filter(|more| *more > 0);
                let owners: Vec<String> = named.chain(more.map(|more| format!("and {more} more"))).collect();
                let (objects, owners) = (list_objects(objects), owners.join(", "));
                write!(
                    f,
                    "the revision would take over {objects} of stack {owners}, which this broker does not have here"
                )
            }
            Self::Data { key, .. } => write!(f, "{key} is kept: its data would be deleted with it"),
            Self::Foreign { key, objects, .. } => {
                let objects = list_objects(objects);
                write!(f, "{key} is kept: it contains {objects}, which does not belong to this stack")
            }
        }
    }
}

/// Returns the id of a stack as it is in an annotation, which any client may have set: a text that is no id is quoted and cut.
pub fn describe_owner(owner: &str) -> String {
    if owner.parse::<StackId>().is_ok() {
        return owner.to_owned();
    }
    let cut: String = owner.chars().take(OWNER_CHARS_MAX).collect();
    if cut.len() < owner.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

/// Lists the first objects and the number of the others.
fn list_objects(objects: &[Arc<ObjectKey>]) -> String {
    let named: Vec<String> = objects.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    match objects.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Returns the hold of a whole revision that declares objects of stacks that are not in the target state.
pub fn find_adoption(plan: &Plan) -> Option<Hold> {
    let (objects, owners): (Vec<_>, BTreeSet<_>) =
        plan.adoptions.iter().map(|(key, owner)| (key.clone(), owner.clone())).unzip();
    (!objects.is_empty()).then_some(Hold::Adoption { owners, objects })
}

/// Returns the hold of a whole revision that would delete too much of its stack. A removal is itself the approval to delete
/// many objects. Objects that do not exist, such as those of a revision that was never applied, do not count as the stack.
pub fn find_excess(plan: &Plan, inputs: PlanInputs<'_>, desired: &DesiredStack, brake: &Brake) -> Option<Hold> {
    let PlanInputs { inventory, live, unreadable, .. } = inputs;
    if !brake.is_on || desired.goal == Goal::Removed || plan.all_deletes().count() <= brake.objects {
        return None;
    }
    let exists = |entry: &&Entry| {
        unreadable.contains(&entry.key)
            || live.get(&entry.key).is_some_and(|object| is_owned(desired.stack, entry, object))
    };
    let total = inventory.entries().filter(exists).count();
    let objects: Vec<Arc<ObjectKey>> = plan.all_deletes().cloned().collect();
    let is_approved = || objects.iter().all(|key| inventory.is_delete_approved(desired.revision, key));
    let is_held = objects.len() * 100 > total * usize::from(brake.percent) && !is_approved();
    is_held.then_some(Hold::TooMany { objects, total })
}

/// Returns the holds of single deletes of a plan.
pub fn find_single_holds(plan: &Plan, foreign: &ForeignObjects, brake: &Brake) -> Vec<Hold> {
    if !brake.is_on {
        return Vec::new();
    }
    let volume_claims: Vec<&Arc<ObjectKey>> =
        plan.deletes.iter().map(|delete| &delete.entry.key).filter(|key| is_volume_claim(key)).collect();
    let single = plan.deletes.iter().filter_map(|delete| {
        let (key, uid) = (delete.entry.key.clone(), delete.uid.clone());
        if is_volume_claim(&key) {
            return Some(Hold::Data { key, uid });
        }
        let mut objects = foreign.get(&key).cloned().unwrap_or_default();
        if Stage::from_key(&key) == Stage::Namespaces {
            // A PersistentVolumeClaim that waits keeps its namespace.
            let inside = volume_claims.iter().filter(|claim| claim.namespace.as_ref() == Some(&key.name));
            objects.extend(inside.map(|claim| (*claim).clone()));
            objects.sort_unstable();
            objects.dedup();
        }
        (!objects.is_empty()).then_some(Hold::Foreign { key, uid, objects })
    });
    single.collect()
}

fn is_volume_claim(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "PersistentVolumeClaim"
}
