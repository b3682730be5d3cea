//! ReplicaSet and ReplicationController.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{metadata, value_at};
use crate::registry::types::SchemaType;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::checks::workloads::{
    UNSELECTED_TEMPLATE, creation_warnings, template_warnings, validate_counts, validate_label_selector,
    validate_replica_counts, validate_template_spec,
};
use crate::strategy::default_values::{map_field, set_default};
use crate::strategy::{EmptyValue, Strategy};

pub(super) struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = validate_counts(object);
        errors.extend(validate_label_selector(object, "deployment", true));
        errors.extend(validate_template_spec(object, &[]));
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        check_immutable("spec.selector", "/spec/selector", live, object).into_iter().collect()
    }

    fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        validate_replica_counts(object)
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        creation_warnings(object, self.warnings(object))
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

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = validate_counts(object);
        let selector = value_at(object, "/spec/selector").and_then(Value::as_object);
        let selector = selector.filter(|selector| !selector.is_empty());
        if selector.is_none() {
            errors.push(FieldError::required("spec.selector", ""));
        }
        if value_at(object, "/spec/template").is_none_or(Value::is_null) {
            errors.push(FieldError::required("spec.template", ""));
            return errors;
        }
        let labels = value_at(object, "/spec/template/metadata/labels").cloned().unwrap_or_default();
        if selector.into_iter().flatten().any(|(key, value)| labels.get(key) != Some(value)) {
            errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, UNSELECTED_TEMPLATE));
        }
        errors.extend(validate_template_spec(object, &[]));
        errors
    }

    fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        validate_replica_counts(object)
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        creation_warnings(object, self.warnings(object))
    }

    /// Returns the map of labels of the spec as a label selector.
    fn scale_selector(&self, object: &Value) -> Option<Value> {
        Some(json!({ "matchLabels": object.pointer("/spec/selector") }))
    }

    fn orphans_dependents_by_default(&self) -> bool {
        true
    }
}
