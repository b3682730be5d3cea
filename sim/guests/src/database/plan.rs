//! What has to be done: a pure function of a declaration and of what was found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::children::{CHILDREN, Child, desired, is_owned_by, owners};
use super::compare::{covers, overlay};
use crate::client::{is_deleting, name, text};

/// The children that were found.
pub type Observed = BTreeMap<Child, Value>;

/// One write. It has no `Debug`: objects may hold a password.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// The child is missing.
    Create(Child, Value),
    /// The child differs; this is what was read with what is wanted over it, and the version that was read.
    Update(Child, Value),
}

/// Why a child cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// What has its name is on its way out; later there is room.
    Leaving(String),
    /// What has its name belongs to somebody else.
    Foreign(String),
}

/// What has to be done, in this order, and what stands in the way of the rest.
#[derive(Clone, PartialEq)]
pub struct Plan {
    /// The writes.
    pub steps: Vec<Step>,
    /// The first child that cannot be made.
    pub obstacle: Option<Obstacle>,
}

/// Plans. A declaration that is being deleted needs nothing: its children follow it by themselves.
pub fn plan(parent: &Value, observed: &Observed) -> Plan {
    let mut plan = Plan { steps: Vec::new(), obstacle: None };
    if is_deleting(parent) {
        return plan;
    }
    for child in CHILDREN {
        let Some(live) = observed.get(&child) else {
            plan.steps.push(Step::Create(child, desired(child, parent)));
            continue;
        };
        match obstacle(child, live, parent) {
            Some(obstacle) => plan.obstacle = plan.obstacle.or(Some(obstacle)),
            None => plan.steps.extend(update(child, live, parent)),
        }
    }
    plan
}

fn obstacle(child: Child, live: &Value, parent: &Value) -> Option<Obstacle> {
    let what = format!("{} {}", child.kind().kind, name(live));
    if is_deleting(live) {
        return Some(Obstacle::Leaving(format!("{what} is being deleted")));
    }
    if is_owned_by(live, parent) {
        return None;
    }
    // Of an earlier database of this name: the garbage collector takes it.
    if owners(live).any(|owner| text(owner, "/name") == name(parent)) {
        return Some(Obstacle::Leaving(format!("{what} belongs to an earlier database of this name")));
    }
    Some(Obstacle::Foreign(format!("{what} exists and does not belong to this database")))
}

fn update(child: Child, live: &Value, parent: &Value) -> Option<Step> {
    let mut wanted = desired(child, parent);
    // It is owned already, by this parent and perhaps by others; and its name may be one that the server chose.
    wanted["metadata"] = json!({"labels": wanted["metadata"]["labels"]});
    let has_password = child != Child::Secret || !text(live, "/data/password").is_empty();
    if covers(live, &wanted) && has_password {
        return None;
    }
    let mut object = live.clone();
    overlay(&mut object, &wanted);
    Some(Step::Update(child, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> Value {
        json!({
            "metadata": {"name": "shop", "namespace": "default", "uid": "1"},
            "spec": {"image": "db:1", "replicas": 1, "storage": "1Gi"},
        })
    }

    fn made() -> Observed {
        let mut observed: Observed = CHILDREN.map(|child| (child, desired(child, &parent()))).into();
        observed.get_mut(&Child::Secret).unwrap()["data"] = json!({"password": "eA=="});
        observed
    }

    #[test]
    fn what_is_missing_is_created_in_order_and_what_is_there_is_left() {
        let plan_of = |observed: &Observed| {
            let steps = plan(&parent(), observed).steps;
            steps.iter().map(|step| matches!(step, Step::Create(..))).collect::<Vec<bool>>()
        };
        assert_eq!(plan_of(&Observed::new()), [true, true, true]);
        assert!(plan_of(&made()).is_empty());
        let mut changed = made();
        changed.get_mut(&Child::Deployment).unwrap()["spec"]["replicas"] = json!(7);
        assert_eq!(plan_of(&changed), [false]);
    }

    #[test]
    fn what_belongs_to_others_is_in_the_way_and_what_leaves_is_waited_for() {
        let mut observed = made();
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"] = json!([]);
        assert!(matches!(plan(&parent(), &observed).obstacle, Some(Obstacle::Foreign(_))));
        let mut observed = made();
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("0");
        assert!(matches!(plan(&parent(), &observed).obstacle, Some(Obstacle::Leaving(_))));
        assert!(plan(&parent(), &observed).steps.is_empty());
    }
}
