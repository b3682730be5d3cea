//! What every written object goes through before it is compared with what is stored: its form, defaults, rules.

use serde_json::{Value, json};

use super::Call;
use crate::defaults;
use crate::error::{ApiError, FieldError};
use crate::pointer::{metadata, name};
use crate::types::encode;
use crate::validate::{self, schema};

/// Brings an object into the form in which it is given to its managers.
pub(super) fn complete(call: &Call<'_>, object: &mut Value) {
    let target = &call.target;
    if let Some(typed) = target.version.typed {
        encode::encode(typed, object);
        defaults::fill(typed, object);
    }
    object["apiVersion"] = json!(target.api_version());
    object["kind"] = json!(target.resource.kind);
    if let Some(rules) = &target.version.schema {
        schema::drop_nulls(rules, object);
        schema::fill_defaults(rules, object);
    }
    metadata(object).retain(|_, value| !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty));
}

/// Whether an object may be stored; `errors` is what is known to be wrong already.
pub(super) fn check(
    call: &Call<'_>,
    live: Option<&Value>,
    object: &Value,
    mut errors: Vec<FieldError>,
) -> Result<(), ApiError> {
    errors.extend(live.map(|live| validate::validate_change(&call.target, live, object)).unwrap_or_default());
    errors.extend(validate::validate(&call.target, live, object));
    if call.status() {
        errors.extend(validate::validate_status(&call.target, object));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&call.target.resource, name(object), &errors)) }
}
