//! PodDisruptionBudget.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::strategy::Strategy;

pub(super) struct PodDisruptionBudget;

impl Strategy for PodDisruptionBudget {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let field = |name: &str| object["spec"].get(name).filter(|value| !value.is_null());
        let (Some(min_available), Some(max_unavailable)) = (field("minAvailable"), field("maxUnavailable")) else {
            return Vec::new();
        };
        let formatted = format!(
            "{{\"MinAvailable\":{min_available},\"Selector\":{},\"MaxUnavailable\":{max_unavailable},\"UnhealthyPodEvictionPolicy\":{}}}",
            field("selector").unwrap_or(&Value::Null),
            field("unhealthyPodEvictionPolicy").unwrap_or(&Value::Null)
        );
        vec![FieldError::invalid_text("spec", &formatted, "minAvailable and maxUnavailable cannot be both set")]
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
