//! One object: whose opinion counts, in this order: its deletion, the rule that it carries, what is known of its kind.

use serde_json::Value;

use crate::health::Health;
use crate::kinds;
use crate::object::Object;
use crate::rule;

/// How a live object is doing, as far as it shows itself.
pub fn assess(object: &Value) -> Health {
    let object = Object(object);
    if object.kind().is_empty() {
        return Health::unknown("NotAnObject", "it has no kind");
    }
    if object.is_being_deleted() {
        return terminating(object);
    }
    rule::assess(object).unwrap_or_else(|| kinds::assess(object))
}

/// It is on its way out; what it waits for is in its finalizers, and for a namespace in its conditions.
fn terminating(object: Object<'_>) -> Health {
    let finalizers: Vec<&str> = object
        .list(&["metadata", "finalizers"])
        .iter()
        .chain(object.list(&["spec", "finalizers"]))
        .filter_map(Value::as_str)
        .collect();
    let mut words = vec!["being deleted".to_owned()];
    if !finalizers.is_empty() {
        words.push(format!("waits for {}", finalizers.join(", ")));
    }
    if object.kind() == "Namespace" {
        let told = object.conditions().filter(|condition| condition.is_true() && !condition.message.is_empty());
        words.extend(told.map(|condition| condition.message.to_owned()));
    }
    Health::progressing("Terminating", words.join("; "))
}
