//! Health of objects, pods, rules and stacks.

mod hostile_rules;
mod kinds;
mod messages;
mod pods;
mod random;
mod rules;
mod summaries;

use serde_json::{Value, json};

/// An object with a readiness rule.
fn with_rule(rule: &str, status: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": { "name": "a", "namespace": "shop", "annotations": { sindri_health::READY_ANNOTATION: rule } },
        "status": status,
    })
}
