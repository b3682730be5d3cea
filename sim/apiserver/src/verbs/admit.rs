//! Policies and webhooks of a write: what they see, and what becomes of the object that a webhook changed.

use serde_json::Value;

use super::body::decode_in_version;
use super::normalize::normalize;
use super::resource_request::{Options, ResourceRequest};
use crate::admission::attributes::{Attributes, Kind, Objects, Operation};
use crate::admission::policies::enforce_policies;
use crate::admission::webhooks::mutating::{MutatingRounds, review_delete};
use crate::admission::webhooks::validating::validate;
use crate::http::error::ApiError;
use crate::object::fields::metadata;
use crate::printing::convert::convert;
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::state::server_state::ServerState;

/// Metadata of a new object that the real server sets after mutating webhooks.
const LATER_METADATA: [&str; 3] = ["creationTimestamp", "generation", "uid"];

/// Calls the mutating webhooks of a create. `name` is empty if it is generated: then webhooks do not see it.
pub(super) fn mutate_created(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    name: &str,
    object: &mut Value,
    rounds: &mut MutatingRounds,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let hidden = LATER_METADATA.iter().chain(name.is_empty().then_some(&"name"));
    let hidden: Vec<(&str, Value)> =
        hidden.filter_map(|field| Some((*field, metadata(object).remove(*field)?))).collect();
    let operation_options = request.options_object("CreateOptions", options);
    let attributes = request.attributes(state, Operation::Create, name, &operation_options);
    let read = |target: &Target, changed: Value| read_changed(request, target, changed);
    let result = rounds.mutate(&attributes, object, None, &read, warnings);
    for (field, value) in hidden {
        // A webhook may name an object whose name would be generated.
        if field != "name" || !metadata(object).contains_key("name") {
            metadata(object).insert(field.to_owned(), value);
        }
    }
    result
}

/// Calls the mutating webhooks of an update, which do not see the metadata that the request lacks. Returns true if they changed
/// the object.
pub(super) fn mutate_updated(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    (live, absent): (&Value, &[&str]),
    object: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<bool, ApiError> {
    for field in absent {
        metadata(object).remove(*field);
    }
    let operation_options = request.options_object("UpdateOptions", options);
    let attributes = request.attributes(state, Operation::Update, &request.name, &operation_options);
    let read = |target: &Target, changed: Value| read_changed(request, target, changed);
    let mut rounds = MutatingRounds::default();
    loop {
        rounds.mutate(&attributes, object, Some(live), &read, warnings)?;
        if !rounds.begin_next() {
            break;
        }
    }
    for field in absent {
        if let Some(value) = live["metadata"].get(field) {
            metadata(object).insert((*field).to_owned(), value.clone());
        }
    }
    Ok(rounds.has_changed())
}

/// Enforces the policies, and calls the validating webhooks, of a create or an update.
pub(super) fn validate_write(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    live: Option<&Value>,
    name: &str,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let (operation, kind) = match live {
        None => (Operation::Create, "CreateOptions"),
        Some(_) => (Operation::Update, "UpdateOptions"),
    };
    let operation_options = request.options_object(kind, options);
    let attributes = request.attributes(state, operation, name, &operation_options);
    let objects = Objects { new: Some(object), old: live };
    enforce_policies(&attributes, objects)?;
    validate(&attributes, objects, warnings)
}

/// Enforces the policies, and calls the webhooks, of a delete. `name` is empty for a collection.
pub(super) fn admit_delete(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    delete_options: &Value,
    name: &str,
    live: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let attributes = request.attributes(state, Operation::Delete, name, delete_options);
    review_delete(&attributes, live, warnings)?;
    let objects = Objects { new: None, old: Some(live) };
    enforce_policies(&attributes, objects)?;
    validate(&attributes, objects, warnings)
}

/// Calls the webhooks, and enforces the policies, of a request for streams of a pod. Mutating webhooks change its options.
pub(super) fn admit_connect(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    kind: Kind,
    connect_options: &mut Value,
) -> Result<(), ApiError> {
    let attributes = request.attributes(state, Operation::Connect, &request.name, &Value::Null);
    let attributes = Attributes { kind, ..attributes };
    let mut warnings = Vec::new();
    let result = mutate_and_validate(&attributes, connect_options, &mut warnings);
    result.map_err(|error| error.with_warnings(&warnings))
}

fn mutate_and_validate(
    attributes: &Attributes<'_>,
    connect_options: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let mut rounds = MutatingRounds::default();
    loop {
        rounds.mutate(attributes, connect_options, None, &|_, changed| Ok(changed), warnings)?;
        if !rounds.begin_next() {
            break;
        }
    }
    let objects = Objects { new: Some(connect_options), old: None };
    enforce_policies(attributes, objects)?;
    validate(attributes, objects, warnings)
}

/// Reads an object that a webhook changed in the version of its review: decodes it, converts it to the version of the request,
/// and sets defaults.
fn read_changed(request: &ResourceRequest<'_>, target: &Target, changed: Value) -> Result<Value, String> {
    let (mut object, _unknown) = decode_in_version(target, changed)?;
    if target.api_version() != request.target.api_version() {
        object = if target.resource.custom {
            (*convert(&request.target, &object.into())).clone()
        } else {
            conversion::to_request_version(&request.target, &conversion::to_storage_version(target, object))
        };
    }
    normalize(request, &mut object);
    Ok(object)
}

/// Write to a subresource whose objects have a kind of their own, such as `scale`.
pub(super) struct SubresourceWrite<'a> {
    pub(super) state: &'a ServerState,
    pub(super) request: &'a ResourceRequest<'a>,
    pub(super) kind: Kind,
    pub(super) options: Value,
}

impl SubresourceWrite<'_> {
    fn attributes(&self, old: Option<&Value>) -> Attributes<'_> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let attributes = self.request.attributes(self.state, operation, &self.request.name, &self.options);
        Attributes { kind: self.kind.clone(), ..attributes }
    }

    /// Calls the mutating webhooks.
    pub(super) fn mutate(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let attributes = self.attributes(old);
        let mut rounds = MutatingRounds::default();
        loop {
            rounds.mutate(&attributes, object, old, &|_, changed| Ok(changed), warnings)?;
            if !rounds.begin_next() {
                return Ok(());
            }
        }
    }

    /// Enforces the policies, and calls the validating webhooks.
    pub(super) fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let (attributes, objects) = (self.attributes(old), Objects { new: Some(object), old });
        enforce_policies(&attributes, objects)?;
        validate(&attributes, objects, warnings)
    }
}
