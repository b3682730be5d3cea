//! Event.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::strategy::Strategy;

/// Strategy of Event in both of its groups.
pub(super) struct Event;

impl Strategy for Event {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let (namespace, object_namespace) =
            (string_at(object, "/metadata/namespace"), string_at(object, "/involvedObject/namespace"));
        if object.get("involvedObject").is_none()
            || namespace == object_namespace
            || object_namespace.is_empty() && namespace == "default"
        {
            return Vec::new();
        }
        vec![FieldError::invalid(
            "involvedObject.namespace",
            &json!(object_namespace),
            "does not match event.namespace",
        )]
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
