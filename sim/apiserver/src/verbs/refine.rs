//! What every written object goes through before it is compared with what is stored: types, pruning, defaults, rules.

use serde_json::{Value, json};

use super::{Call, FieldValidation, Options};
use crate::defaults;
use crate::error::ApiError;
use crate::pointer::{metadata, name};
use crate::server::ApiServer;
use crate::validate::{self, schema};

impl ApiServer {
    /// Makes an object fit to be stored, and says what the client should be warned of.
    pub(super) fn refine(
        &mut self,
        call: &Call<'_>,
        options: &Options,
        live: Option<&Value>,
        object: &mut Value,
    ) -> Result<Vec<String>, ApiError> {
        let target = &call.target;
        object["apiVersion"] = json!(target.api_version());
        object["kind"] = json!(target.resource.kind);
        validate::types::check(&target.resource.kind, !target.resource.custom, object).map_err(|why| {
            let (kind, version) = (&target.resource.kind, &target.version.name);
            ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
        })?;
        let mut warnings = Vec::new();
        if let (true, Some(rules)) = (target.resource.custom, &target.version.schema) {
            let unknown = schema::prune(rules, object);
            if options.validation == FieldValidation::Strict && !unknown.is_empty() {
                let listed: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
                return Err(ApiError::bad_request(format!("strict decoding error: {}", listed.join(", "))));
            }
            if options.validation == FieldValidation::Warn {
                warnings = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
            }
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
        if errors.is_empty() { Ok(warnings) } else { Err(ApiError::invalid(&target.resource, name(object), &errors)) }
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
