//! ControllerRevision.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::object::fields::value_at;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::{EmptyValue, Strategy};

pub(super) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let has_data = value_at(object, "/data").is_some_and(|data| !data.is_null());
        (!has_data).then(|| FieldError::required("data", "data is mandatory")).into_iter().collect()
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        check_immutable("data", "/data", live, object).into_iter().collect()
    }
}
