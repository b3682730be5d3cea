//! Service.

mod allocation;
pub(in crate::strategy) mod defaults;
mod validation;

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::storage::store::Store;
use crate::strategy::checks::names::label_1035_name_errors;
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

pub(super) struct Service;

impl Strategy for Service {
    /// Sets the default `ipMode` of load balancer addresses by the type in the request.
    fn set_request_defaults(&self, object: &mut Value) {
        defaults::set_ip_mode_defaults(object);
    }

    fn prepare_for_create(&self, context: &mut PrepareContext<'_>, object: &mut Value) {
        object["status"] = json!({"loadBalancer": {}});
        // A Service that is created by a write to its status has no addresses.
        if !context.is_status {
            allocation::allocate(context, None, object);
        }
    }

    fn prepare_for_update(
        &self,
        context: &mut PrepareContext<'_>,
        live: &Value,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        allocation::allocate(context, Some(live), object);
        allocation::repeated_node_port(object).map_or(Ok(()), |reason| Err(ApiError::unknown(reason)))
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        label_1035_name_errors(name)
    }

    fn validate_allocation(&self, store: &Store, object: &Value) -> Vec<FieldError> {
        allocation::allocation_errors(store, object)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validation::validate(object)
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        validation::validate_update(live, object)
    }

    fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        validation::validate_status(object)
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        validation::warnings(object)
    }

    fn warnings_on_update(&self, _live: &Value, object: &Value) -> Vec<String> {
        validation::warnings(object)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_create_by_status(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
