//! Node.

use serde_json::{Value, json};

use crate::strategy::{PrepareContext, Strategy};

pub(super) struct Node;

impl Strategy for Node {
    /// Adds the taint of a node that is not ready.
    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        let taint = json!({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"});
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            let taints = spec.entry("taints").or_insert_with(|| json!([]));
            taints.as_array_mut().into_iter().for_each(|taints| taints.push(taint.clone()));
        }
    }
}
