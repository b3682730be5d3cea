//! RoleBinding and ClusterRoleBinding.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};
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
        let kind = text(object, "/roleRef/kind");
        if !matches!(kind, "Role" | "ClusterRole") {
            let supported = ["\"Role\"", "\"ClusterRole\""].map(str::to_owned);
            errors.push(FieldError::unsupported("roleRef.kind", &json!(kind), &supported));
        }
        if text(object, "/roleRef/name").is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        }
        for (index, subject) in list(object, "/subjects").iter().enumerate() {
            let kind = text(subject, "/kind");
            if !matches!(kind, "ServiceAccount" | "User" | "Group") {
                let supported = ["\"ServiceAccount\"", "\"User\"", "\"Group\""].map(str::to_owned);
                errors.push(FieldError::unsupported(format!("subjects[{index}].kind"), &json!(kind), &supported));
            }
            if text(subject, "/name").is_empty() {
                errors.push(FieldError::required(format!("subjects[{index}].name"), ""));
            }
        }
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        if live.get("roleRef") == object.get("roleRef") {
            return Vec::new();
        }
        let part = |name: &str| json!(text(object, &format!("/roleRef/{name}")));
        let formatted =
            format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", part("apiGroup"), part("kind"), part("name"));
        vec![FieldError::invalid_text("roleRef", &formatted, "cannot change roleRef")]
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
