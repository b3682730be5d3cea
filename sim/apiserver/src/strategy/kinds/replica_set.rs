//! ReplicaSet and ReplicationController.

use serde_json::{Value, json};

use crate::object::fields::metadata;
use crate::registry::types::SchemaType;
use crate::strategy::Strategy;
use crate::strategy::checks::workloads::template_warnings;
use crate::strategy::default_values::{map_field, set_default};

pub(super) struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }
}

pub(super) struct ReplicationController;

impl Strategy for ReplicationController {
    /// Sets the default selector and labels from the labels of the pod template.
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let labels = object.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
        let Some(labels) = labels else { return };
        if let Some(spec) = map_field(object, "spec") {
            set_default(spec, "selector", labels.clone());
        }
        let own = metadata(object).entry("labels").or_insert(Value::Null);
        if own.is_null() {
            *own = labels;
        }
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }

    /// Returns the map of labels of the spec as a label selector.
    fn scale_selector(&self, object: &Value) -> Option<Value> {
        Some(json!({ "matchLabels": object.pointer("/spec/selector") }))
    }
}
