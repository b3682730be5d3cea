//! Deployment.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::checks::workloads::{
    creation_warnings, template_warnings, validate_selecting_workload, validate_status_counts,
};
use crate::strategy::{EmptyValue, Strategy, is_changed};

pub(super) struct Deployment;

impl Strategy for Deployment {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = validate_selecting_workload(object, "deployment", true, &[]);
        let strategy = object.pointer("/spec/strategy").unwrap_or(&Value::Null);
        let has_rolling_update = strategy.get("rollingUpdate").is_some_and(|rolling| !rolling.is_null());
        if string_at(strategy, "/type") == "Recreate" && has_rolling_update {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", detail));
        }
        errors.extend(validate_status_counts(object));
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        check_immutable("spec.selector", "/spec/selector", live, object).into_iter().collect()
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        creation_warnings(object, self.warnings(object))
    }

    /// Annotations of a Deployment are copied to its replica sets, so that they are part of its desired state.
    fn changes_desired_state(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> bool {
        is_changed(live, object, "/spec") || is_changed(live, object, "/metadata/annotations")
    }

    fn status_changes_labels(&self) -> bool {
        false
    }
}
