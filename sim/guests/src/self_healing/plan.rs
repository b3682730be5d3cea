//! Decides the writes of one reconciliation: a pure function of an agent, its references and its observed children.

use std::collections::BTreeMap;

use serde_json::Value;

use super::children::{CHILDREN, Child, desired_child};
use super::crd::AGENT;
use super::references::References;
use super::variant::Variant;
use crate::compare::{covers, overlay};
use crate::object::{is_deleting, name, text};
use crate::owners::{has_owner, owner_references};

/// The objects that have the names of children.
pub type ObservedChildren = BTreeMap<Child, Value>;

/// One write. It has no `Debug`, because objects may contain a key.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// The child is missing.
    Create(Child, Value),
    /// The child differs: the live object, including its resourceVersion, with the desired fields.
    Update(Child, Value),
    /// The agent no longer declares the child: the live object.
    Delete(Child, Value),
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
#[derive(Clone, Default, PartialEq)]
pub struct Plan {
    /// The writes.
    pub steps: Vec<Step>,
    /// Obstacle of the first child that has one.
    pub obstacle: Option<Obstacle>,
}

/// Plans the writes. An agent that is being deleted needs none: the garbage collector deletes its children. Without its
/// references nothing is known about its children, so that nothing is written either.
pub fn plan(agent: &Value, references: &References, observed: &ObservedChildren, variant: Variant) -> Plan {
    let mut plan = Plan::default();
    let config = match references {
        References::Complete(config) => Some(config),
        References::Missing(_) => None,
    };
    if is_deleting(agent) || (config.is_none() && variant != Variant::DeletesWithoutReferences) {
        return plan;
    }
    for child in CHILDREN {
        let mut desired = config.and_then(|config| desired_child(child, agent, config));
        desired.iter_mut().for_each(|desired| variant.alter_child(child, desired));
        match (desired, observed.get(&child)) {
            (Some(desired), None) => plan.steps.push(Step::Create(child, desired)),
            (Some(desired), Some(live)) => match find_obstacle(child, live, agent, variant) {
                Some(obstacle) => plan.obstacle = plan.obstacle.or(Some(obstacle)),
                None => plan.steps.extend(plan_update(child, live, desired, variant)),
            },
            (None, Some(live)) if is_surplus(live, agent, variant) => {
                plan.steps.push(Step::Delete(child, live.clone()));
            }
            (None, _) => {}
        }
    }
    plan
}

fn is_own(live: &Value, agent: &Value, variant: Variant) -> bool {
    has_owner(live, AGENT, agent) || (variant == Variant::IgnoresUid && has_owner_of_this_name(live, agent))
}

fn has_owner_of_this_name(live: &Value, agent: &Value) -> bool {
    owner_references(live, AGENT).any(|owner| text(owner, "/name") == name(agent))
}

fn is_surplus(live: &Value, agent: &Value, variant: Variant) -> bool {
    is_own(live, agent, variant) && !is_deleting(live) && variant != Variant::KeepsUndeclaredChildren
}

fn find_obstacle(child: Child, live: &Value, agent: &Value, variant: Variant) -> Option<Obstacle> {
    let child_name = format!("{} {}", child.kind().kind, name(live));
    if is_deleting(live) {
        return Some(Obstacle::Terminating(format!("{child_name} is being deleted")));
    }
    let is_unmarked = variant == Variant::OmitsOwnerReference && child == Child::Secret;
    if is_own(live, agent, variant) || is_unmarked || variant == Variant::AdoptsForeignObjects {
        return None;
    }
    // The child of an earlier agent of this name, which the garbage collector will delete.
    if has_owner_of_this_name(live, agent) {
        return Some(Obstacle::Terminating(format!("{child_name} belongs to an earlier agent of this name")));
    }
    Some(Obstacle::Foreign(format!("{child_name} exists and does not belong to this agent")))
}

fn plan_update(child: Child, live: &Value, mut desired: Value, variant: Variant) -> Option<Step> {
    if variant != Variant::AdoptsForeignObjects
        && let Some(metadata) = desired["metadata"].as_object_mut()
    {
        // It was compared before.
        metadata.remove("ownerReferences");
    }
    if covers(live, &desired) {
        return None;
    }
    let mut object = live.clone();
    overlay(&mut object, &desired);
    Some(Step::Update(child, object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::children::Config;
    use super::*;

    fn agent() -> Value {
        json!({
            "metadata": {"name": "bot", "namespace": "default", "uid": "1"},
            "spec": {"image": "bot:1", "replicas": 3, "port": 80, "modelConfig": "small"},
        })
    }

    fn references() -> References {
        References::Complete(Config { model: "model-1".to_owned(), key: "eA==".to_owned() })
    }

    fn existing() -> ObservedChildren {
        let References::Complete(config) = references() else { panic!("they are complete") };
        CHILDREN.into_iter().filter_map(|child| Some((child, desired_child(child, &agent(), &config)?))).collect()
    }

    fn plan_correctly(agent: &Value, observed: &ObservedChildren) -> Plan {
        plan(agent, &references(), observed, Variant::Correct)
    }

    #[test]
    fn missing_children_are_created_and_equal_ones_are_not_written() {
        assert_eq!(plan_correctly(&agent(), &ObservedChildren::new()).steps.len(), CHILDREN.len());
        assert!(plan_correctly(&agent(), &existing()).steps.is_empty());
    }

    #[test]
    fn a_child_that_is_no_longer_declared_is_deleted_only_if_it_is_owned() {
        let mut without_port = agent();
        without_port["spec"].as_object_mut().unwrap().remove("port");
        let mut observed = existing();
        assert!(matches!(plan_correctly(&without_port, &observed).steps.as_slice(), [Step::Delete(Child::Service, _)]));
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("0");
        assert!(plan_correctly(&without_port, &observed).steps.is_empty());
    }

    #[test]
    fn nothing_is_written_without_references_or_during_a_deletion() {
        let missing = References::Missing("ModelConfig small does not exist".to_owned());
        assert!(plan(&agent(), &missing, &existing(), Variant::Correct).steps.is_empty());
        assert_eq!(plan(&agent(), &missing, &existing(), Variant::DeletesWithoutReferences).steps.len(), 4);
        let mut deleted = agent();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(plan_correctly(&deleted, &ObservedChildren::new()).steps.is_empty());
    }

    #[test]
    fn a_foreign_object_blocks_and_a_child_of_an_earlier_agent_is_waited_for() {
        let mut observed = existing();
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("0");
        assert!(matches!(plan_correctly(&agent(), &observed).obstacle, Some(Obstacle::Terminating(_))));
        observed.get_mut(&Child::Service).unwrap()["metadata"]["ownerReferences"] = json!([]);
        assert!(matches!(plan_correctly(&agent(), &observed).obstacle, Some(Obstacle::Foreign(_))));
    }
}
