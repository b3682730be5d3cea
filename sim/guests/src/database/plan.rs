//! Decides the writes of one reconciliation: a pure function of a database and its observed children.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::children::{CHILDREN, Child, desired_child, is_owned_by};
use super::crd::DATABASE;
use super::variant::Comparison;
use crate::compare::{covers, overlay};
use crate::object::{is_deleting, name, text};
use crate::owners::owner_references;

/// The children that exist.
pub type ObservedChildren = BTreeMap<Child, Value>;

/// One write. It has no `Debug`, because objects may contain a password.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// The child is missing.
    Create(Child, Value),
    /// The child differs: the live object, including its resourceVersion, with the desired fields.
    Update(Child, Value),
}

/// Reason why a child cannot be created or updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// An object with its name is being deleted; a later attempt can succeed.
    Terminating(String),
    /// An object with its name belongs to another owner.
    Foreign(String),
}

/// The writes in their order, and the reason why some are missing.
#[derive(Clone, PartialEq)]
pub struct Plan {
    /// The writes.
    pub steps: Vec<Step>,
    /// Obstacle of the first child that has one.
    pub obstacle: Option<Obstacle>,
}

/// Plans the writes. A database that is being deleted needs none: the garbage collector deletes its children.
pub fn plan(parent: &Value, observed: &ObservedChildren, comparison: Comparison) -> Plan {
    let mut plan = Plan { steps: Vec::new(), obstacle: None };
    if is_deleting(parent) {
        return plan;
    }
    for child in CHILDREN {
        let Some(live) = observed.get(&child) else {
            plan.steps.push(Step::Create(child, desired_child(child, parent)));
            continue;
        };
        match find_obstacle(child, live, parent) {
            Some(obstacle) => plan.obstacle = plan.obstacle.or(Some(obstacle)),
            None => plan.steps.extend(plan_update(child, live, parent, comparison)),
        }
    }
    plan
}

fn find_obstacle(child: Child, live: &Value, parent: &Value) -> Option<Obstacle> {
    let child_name = format!("{} {}", child.kind().kind, name(live));
    if is_deleting(live) {
        return Some(Obstacle::Terminating(format!("{child_name} is being deleted")));
    }
    if is_owned_by(live, parent) {
        return None;
    }
    // The child of an earlier database of this name, which the garbage collector will delete.
    if owner_references(live, DATABASE).any(|owner| text(owner, "/name") == name(parent)) {
        return Some(Obstacle::Terminating(format!("{child_name} belongs to an earlier database of this name")));
    }
    Some(Obstacle::Foreign(format!("{child_name} exists and does not belong to this database")))
}

fn plan_update(child: Child, live: &Value, parent: &Value, comparison: Comparison) -> Option<Step> {
    let mut desired = desired_child(child, parent);
    // Only the labels: the owner reference exists already, and the name may be one that the server generated.
    desired["metadata"] = json!({"labels": desired["metadata"]["labels"]});
    let has_password = child != Child::Secret || !text(live, "/data/password").is_empty();
    let is_equal = match comparison {
        Comparison::Desired => covers(live, &desired),
        Comparison::Whole => covers(live, &desired) && live.get("spec") == desired.get("spec"),
    };
    if is_equal && has_password {
        return None;
    }
    let mut object = live.clone();
    overlay(&mut object, &desired);
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

    fn existing() -> ObservedChildren {
        let mut observed: ObservedChildren = CHILDREN.map(|child| (child, desired_child(child, &parent()))).into();
        observed.get_mut(&Child::Secret).unwrap()["data"] = json!({"password": "eA=="});
        observed
    }

    fn plan_desired(observed: &ObservedChildren) -> Plan {
        plan(&parent(), observed, Comparison::Desired)
    }

    #[test]
    fn missing_children_are_created_in_order_and_equal_ones_are_not_written() {
        let creates = |observed: &ObservedChildren| {
            let steps = plan_desired(observed).steps;
            steps.iter().map(|step| matches!(step, Step::Create(..))).collect::<Vec<bool>>()
        };
        assert_eq!(creates(&ObservedChildren::new()), [true, true, true]);
        assert!(creates(&existing()).is_empty());
        let mut changed = existing();
        changed.get_mut(&Child::StatefulSet).unwrap()["spec"]["replicas"] = json!(7);
        assert_eq!(creates(&changed), [false]);
    }

    #[test]
    fn a_foreign_child_blocks_and_a_terminating_one_is_waited_for() {
        let mut observed = existing();
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"] = json!([]);
        assert!(matches!(plan_desired(&observed).obstacle, Some(Obstacle::Foreign(_))));
        let mut observed = existing();
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("0");
        assert!(matches!(plan_desired(&observed).obstacle, Some(Obstacle::Terminating(_))));
        assert!(plan_desired(&observed).steps.is_empty());
    }
}
