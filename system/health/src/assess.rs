//! Health of one object. In order of precedence: its deletion, its readiness rule, the rules for its kind.

use serde_json::Value;

use crate::conditions::Conditions;
use crate::health::Health;
use crate::kinds;
use crate::object::Object;
use crate::rule;

/// Determines the health of a live object from the object alone.
pub fn assess(object: &Value) -> Health {
    let object = Object(object);
    if object.kind().is_empty() {
        return Health::unknown("NotAnObject", "it has no kind");
    }
    if object.is_being_deleted() {
        return assess_terminating(object);
    }
    assess_content(object)
}

/// Determines the health of an object that is being deleted as if it were not; `None` for any other object.
pub fn assess_before_deletion(object: &Value) -> Option<Health> {
    let object = Object(object);
    object.is_being_deleted().then(|| assess_content(object))
}

fn assess_content(object: Object<'_>) -> Health {
    rule::assess(object).unwrap_or_else(|| kinds::assess(object))
}

/// Describes an object that is being deleted: its finalizers, and for a namespace its conditions.
fn assess_terminating(object: Object<'_>) -> Health {
    let finalizers: Vec<&str> = object
        .list(&["metadata", "finalizers"])
        .iter()
        .chain(object.list(&["spec", "finalizers"]))
        .filter_map(Value::as_str)
        .collect();
    let mut parts = vec!["being deleted".to_owned()];
    if !finalizers.is_empty() {
        parts.push(format!("waits for {}", finalizers.join(", ")));
    }
    if object.kind() == "Namespace" {
        let reported = object.conditions().filter(|condition| condition.is_true() && !condition.message.is_empty());
        parts.extend(reported.map(|condition| condition.message.to_owned()));
    }
    Health::progressing("Terminating", parts.join("; "))
}
