//! StatefulSet.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use crate::strategy::checks::names::label_name_errors;
use crate::strategy::checks::workloads::{template_warnings, validate_selecting_workload, validate_status_counts};
use crate::strategy::{EmptyValue, Strategy};

/// Mutable fields of a StatefulSet's spec.
const MUTABLE_FIELDS: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) struct StatefulSet;

impl Strategy for StatefulSet {
    fn name_errors(&self, name: &str) -> Vec<String> {
        label_name_errors(name)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let claims: Vec<&str> = array_at(object, "/spec/volumeClaimTemplates")
            .iter()
            .map(|claim| string_at(claim, "/metadata/name"))
            .collect();
        let mut errors = validate_selecting_workload(object, "statefulset", true, &claims);
        errors.extend(validate_status_counts(object));
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let immutable_spec = |set: &Value| {
            let mut spec = set.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
            spec.retain(|name, _| !MUTABLE_FIELDS.contains(&name.as_str()));
            spec
        };
        if immutable_spec(live) == immutable_spec(object) {
            return Vec::new();
        }
        let quoted: Vec<String> = MUTABLE_FIELDS.iter().map(|field| format!("'{field}'")).collect();
        let (last, others) =
            quoted.split_last().map(|(last, others)| (last.clone(), others.join(", "))).unwrap_or_default();
        let detail = format!("updates to statefulset spec for fields other than {others} and {last} are forbidden");
        vec![FieldError::forbidden("spec", &detail)]
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }
}
