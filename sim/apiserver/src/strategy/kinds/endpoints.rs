//! Endpoints and EndpointSlice.

use serde_json::{Value, json};

use crate::registry::types::SchemaType;
use crate::strategy::Strategy;
use crate::strategy::default_values::set_default;

pub(super) struct Endpoints;

impl Strategy for Endpoints {
    fn allows_create_on_update(&self) -> bool {
        true
    }
}

pub(super) struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let ports = object.get_mut("ports").and_then(Value::as_array_mut);
        ports.into_iter().flatten().for_each(|port| set_default(port, "name", json!("")));
    }
}
