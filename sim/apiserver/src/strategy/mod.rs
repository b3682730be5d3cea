//! Rules of each kind for writes: defaults, preparation, validation, warnings and deletion.
//!
//! [`Strategy`] has one implementation per kind, in `kinds/`; `kinds::strategy_for` returns it. Kinds without own rules
//! have the default methods.

pub(crate) mod checks;
mod default_values;
pub(crate) mod defaults;
pub(crate) mod kinds;
pub(crate) mod service_allocator;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use self::checks::names::subdomain_name_errors;
use self::service_allocator::ServiceAllocator;
use crate::auth::user::User;
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::value_at;
use crate::registry::types::SchemaType;
use crate::storage::store::Store;

/// Rules of one kind for writes of its objects.
pub(crate) trait Strategy: Sync {
    /// Sets the defaults of the request as it was decoded, before the server restores what the request cannot change.
    fn set_request_defaults(&self, _object: &mut Value) {}

    /// Sets the defaults of the whole kind, which its structs do not have in other kinds.
    fn set_defaults(&self, _schema_type: &SchemaType, _object: &mut Value) {}

    /// Prepares a new object after its fields were given to their managers: its first status, its finalizers, its
    /// addresses. No field manager owns them.
    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, _object: &mut Value) {}

    /// Prepares an object that replaces a live one.
    fn prepare_for_update(
        &self,
        _context: &mut PrepareContext<'_>,
        _live: &Value,
        _object: &mut Value,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns the errors of an object's name.
    fn name_errors(&self, name: &str) -> Vec<String> {
        subdomain_name_errors(name)
    }

    /// Returns the errors in values that must be free in the whole cluster, which are reported before all others.
    fn validate_allocation(&self, _store: &Store, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Returns the errors of an object.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Returns the errors of a change, such as those of immutable fields.
    fn validate_update(&self, _live: &Value, _object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        Vec::new()
    }

    /// Returns the errors of a write to `/approval`.
    fn validate_approval(&self, _live: &Value, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Returns the errors of a write to `/status`.
    fn validate_status(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Returns the warnings for a new or changed object.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Returns the warnings for a new object.
    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        self.warnings(object)
    }

    /// Returns the warnings for an update.
    fn warnings_on_update(&self, live: &Value, object: &Value) -> Vec<String> {
        let has_new_generation = value_at(live, "/metadata/generation") != value_at(object, "/metadata/generation");
        if has_new_generation { self.warnings(object) } else { Vec::new() }
    }

    /// True if an update changes the desired state, so that `metadata.generation` increases.
    fn changes_desired_state(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> bool {
        is_changed(live, object, "/spec")
    }

    /// Returns a new object as the response shows it, if that differs from the stored object.
    fn created_response(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// True if nothing changes the spec after the creation, and its creator does not own it.
    fn keeps_spec(&self) -> bool {
        false
    }

    /// True if a PUT creates an object that does not exist.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// True if a write to `/status` creates an object that does not exist.
    fn allows_create_by_status(&self) -> bool {
        false
    }

    /// True if a PUT need not have a resourceVersion.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// True if a write to `/status` changes labels, too.
    fn status_changes_labels(&self) -> bool {
        true
    }

    /// True if the first update after the creation is stored even if it changes nothing.
    fn stores_first_update(&self) -> bool {
        false
    }

    /// Returns the selector that the `scale` subresource shows.
    fn scale_selector(&self, object: &Value) -> Option<Value> {
        value_at(object, "/spec/selector").cloned()
    }

    /// Returns the grace period of a delete in seconds.
    fn grace_period_seconds(&self, _live: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// True if the last state of a removed object has a deletion timestamp and a grace period.
    fn is_deleted_gracefully(&self) -> bool {
        false
    }

    /// True if an object is stored with a deletion timestamp before it is removed at once.
    fn is_marked_before_removal(&self, _live: &Value) -> bool {
        false
    }

    /// Returns the finalizers that a delete adds.
    fn finalizers_on_delete(&self) -> &'static [&'static str] {
        &[]
    }

    /// True if an object has finalizers in its spec, which keep it like those in its metadata.
    fn has_finalizers_in_spec(&self, _object: &Value) -> bool {
        false
    }

    /// True if a delete without a propagation policy leaves the dependents.
    fn orphans_dependents_by_default(&self) -> bool {
        false
    }

    /// Returns the warning for a delete without a propagation policy.
    fn default_propagation_warning(&self) -> Option<&'static str> {
        None
    }

    /// Prepares an object that gets a deletion timestamp.
    fn prepare_for_delete(&self, _now: Timestamp, _live: &Value, _object: &mut Value) {}

    /// True if a failed precondition of a delete is reported as a conflict with the text of the storage layer.
    fn reports_preconditions_as_storage(&self) -> bool {
        false
    }

    /// True if the response to a delete is the object and not a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }
}

/// Inputs of a preparation other than the object.
pub(crate) struct PrepareContext<'a> {
    pub(crate) now: Timestamp,
    /// True for a write to `/status`.
    pub(crate) is_status: bool,
    /// User of the request.
    pub(crate) user: &'a User,
    pub(crate) allocator: &'a mut ServiceAllocator,
    pub(crate) store: &'a Store,
}

/// An empty map or list of a request, which normalization omits.
pub(crate) struct EmptyValue {
    /// JSON pointer of the value.
    pub(crate) pointer: &'static str,
    /// Field in errors about the value.
    pub(crate) field: &'static str,
    /// The value in JSON.
    pub(crate) json: &'static str,
}

/// True if a value differs between two states of an object; an absent one is null.
pub(crate) fn is_changed(live: &Value, object: &Value, pointer: &str) -> bool {
    value_at(live, pointer).unwrap_or(&Value::Null) != value_at(object, pointer).unwrap_or(&Value::Null)
}
