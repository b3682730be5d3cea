//! ConfigMap.

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::strategy::checks::data::validate_data;
use crate::strategy::checks::immutability::check_immutable_data;
use crate::strategy::{EmptyValue, Strategy};

pub(super) struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_data(object)
    }

    fn validate_update(&self, live: &Value, object: &Value, empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let emptied = empty_values.iter().map(|empty| empty.field).find(|field| *field == "binaryData");
        check_immutable_data(live, object, emptied)
    }
}
