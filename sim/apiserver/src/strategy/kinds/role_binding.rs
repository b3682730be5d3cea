//! RoleBinding and ClusterRoleBinding.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use crate::strategy::checks::names::path_segment_name_errors;
use crate::strategy::{EmptyValue, Strategy};

/// Strategy of RoleBinding and ClusterRoleBinding.
pub(super) struct RoleBinding;

impl Strategy for RoleBinding {
    fn name_errors(&self, name: &str) -> Vec<String> {
        path_segment_name_errors(name)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let kind = string_at(object, "/roleRef/kind");
        if !matches!(kind, "Role" | "ClusterRole") {
            let supported = ["\"Role\"", "\"ClusterRole\""].map(str::to_owned);
            errors.push(FieldError::unsupported("roleRef.kind", &json!(kind), &supported));
        }
        if string_at(object, "/roleRef/name").is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        }
        for (index, subject) in array_at(object, "/subjects").iter().enumerate() {
            let kind = string_at(subject, "/kind");
            if !matches!(kind, "ServiceAccount" | "User" | "Group") {
                let supported = ["\"ServiceAccount\"", "\"User\"", "\"Group\""].map(str::to_owned);
                errors.push(FieldError::unsupported(format!("subjects[{index}].kind"), &json!(kind), &supported));
            }
            if string_at(subject, "/name").is_empty() {
                errors.push(FieldError::required(format!("subjects[{index}].name"), ""));
            }
        }
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        if live.get("roleRef") == object.get("roleRef") {
            return Vec::new();
        }
        let part = |name: &str| json!(string_at(object, &format!("/roleRef/{name}")));
        let formatted =
            format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", part("apiGroup"), part("kind"), part("name"));
        vec![FieldError::invalid_text("roleRef", &formatted, "cannot change roleRef")]
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
