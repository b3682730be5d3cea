//! Role and ClusterRole.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::object::fields::array_at;
use crate::strategy::Strategy;
use crate::strategy::checks::names::path_segment_name_errors;

/// Strategy of Role and ClusterRole.
pub(super) struct Role;

impl Strategy for Role {
    fn name_errors(&self, name: &str) -> Vec<String> {
        path_segment_name_errors(name)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, rule) in array_at(object, "/rules").iter().enumerate() {
            let required = [
                ("verbs", "verbs must contain at least one value"),
                ("apiGroups", "resource rules must supply at least one api group"),
                ("resources", "resource rules must supply at least one resource"),
            ];
            // A rule for non-resource URLs needs only verbs.
            let count = if array_at(rule, "/nonResourceURLs").is_empty() { required.len() } else { 1 };
            for (field, detail) in
                required.iter().take(count).filter(|(field, _)| array_at(rule, &format!("/{field}")).is_empty())
            {
                errors.push(FieldError::required(format!("rules[{index}].{field}"), detail));
            }
        }
        errors
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
