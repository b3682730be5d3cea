//! What every written object goes through before it is compared with what is stored: its form, defaults, rules.

use serde_json::{Value, json};

use super::Call;
use crate::defaults;
use crate::error::ApiError;
use crate::pointer::{metadata, name};
use crate::server::ApiServer;
use crate::types::encode;
use crate::validate::{self, schema};

impl ApiServer {
    /// Makes an object fit to be stored.
    pub(super) fn refine(&mut self, call: &Call<'_>, live: Option<&Value>, object: &mut Value) -> Result<(), ApiError> {
        let target = &call.target;
        if let Some(typed) = target.version.typed {
            encode::encode(typed, object);
        }
        object["apiVersion"] = json!(target.api_version());
        object["kind"] = json!(target.resource.kind);
        if let Some(rules) = &target.version.schema {
            schema::fill_defaults(rules, object);
        }
        if !target.resource.custom {
            defaults::fill(&target.resource.kind, live, object);
            if target.resource.is("", "services") {
                self.give_address(object);
            }
        }
        metadata(object)
            .retain(|_, value| !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty));
        let mut errors = validate::validate(target, object);
        if let Some(live) = live {
            errors.extend(validate::validate_change(target, live, object));
        }
        if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&target.resource, name(object), &errors)) }
    }

    fn give_address(&mut self, service: &mut Value) {
        let kind = crate::pointer::text(service, "/spec/type");
        let wants = kind != "ExternalName" && crate::pointer::text(service, "/spec/clusterIP").is_empty();
        if wants && service.get("spec").is_some_and(Value::is_object) {
            let address = self.next_address();
            service["spec"]["clusterIPs"] = json!([address.clone()]);
            service["spec"]["clusterIP"] = address;
        }
    }
}

/// An object of the kind before anything was said about it: what nobody comes to own by creating it.
pub(super) fn skeleton(call: &Call<'_>) -> Value {
    call.target.version.typed.map_or_else(|| json!({}), encode::skeleton)
}
