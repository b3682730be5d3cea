//! What is held back until somebody approves it: a plan that would delete a lot, and deletes that take more along than
//! they name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::planner::Plan;
use super::stage::Stage;
use crate::pass::inventory::Inventory;
use crate::pass::observe::Goal;
use crate::settings::Brake;

/// What of others would go with a namespace or a definition.
pub type Strangers = BTreeMap<Arc<ObjectKey>, Vec<Arc<ObjectKey>>>;

/// So many of them are named.
const NAMED_MAX: usize = 10;

/// Something that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The whole revision: it drops most of its stack.
    TooMany {
        /// How many objects it would delete.
        deletes: usize,
        /// How many there are.
        of: usize,
    },
    /// One delete: the data goes with it.
    Data {
        /// The claim.
        key: Arc<ObjectKey>,
        /// Its identity.
        uid: String,
    },
    /// One delete: objects of others go with it.
    Others {
        /// The namespace or the definition.
        key: Arc<ObjectKey>,
        /// Its identity.
        uid: String,
        /// What else would go.
        held: Vec<Arc<ObjectKey>>,
    },
}

impl Hold {
    /// The object that is not deleted; none if the whole revision waits.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::TooMany { .. } => None,
            Self::Data { key, .. } | Self::Others { key, .. } => Some(key),
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { deletes, of } => write!(f, "the revision would delete {deletes} of {of} objects"),
            Self::Data { key, .. } => write!(f, "{key} is kept: its data would go with it"),
            Self::Others { key, held, .. } => {
                let named: Vec<String> = held.iter().take(NAMED_MAX).map(ToString::to_string).collect();
                let more = held.len().saturating_sub(NAMED_MAX);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                write!(f, "{key} is kept: it holds {}{more}, which is not of this stack", named.join(", "))
            }
        }
    }
}

/// What of a plan waits for an approval. A deletion marker is itself the approval for what is only much.
pub fn holds(plan: &Plan, inventory: &Inventory, goal: &Goal, strangers: &Strangers, brake: &Brake) -> Vec<Hold> {
    if !brake.is_on {
        return Vec::new();
    }
    let (deletes, of) = (plan.deletes.len(), inventory.entries().count());
    let is_much = deletes > brake.objects && deletes * 100 > of * usize::from(brake.percent);
    let too_many = (matches!(goal, Goal::Present(_)) && is_much).then_some(Hold::TooMany { deletes, of });
    let claims: Vec<&Arc<ObjectKey>> =
        plan.deletes.iter().map(|delete| &delete.entry.key).filter(|key| is_data(key)).collect();
    let single = plan.deletes.iter().filter_map(|delete| {
        let (key, uid) = (delete.entry.key.clone(), delete.uid.clone());
        if is_data(&key) {
            return Some(Hold::Data { key, uid });
        }
        let mut held = strangers.get(&key).cloned().unwrap_or_default();
        if Stage::of(&key) == Stage::Namespaces {
            // A claim that waits keeps its namespace.
            let inside = claims.iter().filter(|claim| claim.namespace.as_ref() == Some(&key.name));
            held.extend(inside.map(|claim| (*claim).clone()));
        }
        (!held.is_empty()).then_some(Hold::Others { key, uid, held })
    });
    too_many.into_iter().chain(single).collect()
}

fn is_data(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "PersistentVolumeClaim"
}
