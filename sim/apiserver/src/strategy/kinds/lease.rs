//! Lease.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::strategy::Strategy;

pub(super) struct Lease;

impl Strategy for Lease {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let seconds = object.pointer("/spec/leaseDurationSeconds");
        let invalid = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds <= 0));
        invalid
            .map(|seconds| FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
            .into_iter()
            .collect()
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
