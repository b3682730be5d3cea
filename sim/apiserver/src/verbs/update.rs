//! Update: PUT, and the stages that PUT, patches and server-side apply share once the new object is known.

use std::sync::Arc;

use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use super::admit::{mutate_updated, validate_write};
use super::body::DecodedBody;
use super::convert_by_webhook::convert_to_storage;
use super::create::{admit_security, check_allocation, check_escalation, create};
use super::normalize::{normalize, validate_object};
use super::read::find_live;
use super::resource_request::{Options, ResourceRequest, WriteResult};
use super::{manager_versions, object_parts};
use crate::admission::certificates::may_use_signer;
use crate::admission::limit_range::limit_violation;
use crate::admission::pod_security::is_significant_update;
use crate::admission::pods::admit_changed_pod;
use crate::admission::quota::quota_violation;
use crate::admission::volume_resize::resize_violation;
use crate::auth::rbac::GROUP as RBAC_GROUP;
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{finalizers, is_deleting, metadata, name, resource_version, string_at, uid, value_at};
use crate::object::stored::Stored;
use crate::printing::convert::convert;
use crate::registry::conversion;
use crate::registry::types::encode;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;
use crate::storage::store::Store;
use crate::strategy::service_allocator::ServiceAllocator;
use crate::strategy::{EmptyValue, PrepareContext, validation};
use crate::writes::commit::{commit, remove};

/// Metadata that an update cannot change.
const KEPT_METADATA: [&str; 7] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "name", "namespace", "uid"];

pub(crate) fn update_from_request(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
) -> Result<WriteResult, ApiError> {
    let options = request.options("UpdateOptions")?;
    let DecodedBody { object, warnings } = request.body_object(&options)?;
    replace_or_create(state, request, &options, object, &warnings).map_err(|error| error.with_warnings(&warnings))
}

fn replace_or_create(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    mut object: Value,
    warnings: &[String],
) -> Result<WriteResult, ApiError> {
    let Some(live) = find_live(&state.store, request).cloned() else {
        if !request.strategy().allows_create_on_update()
            || !request.creates_by_status() && !request.subresource.is_empty()
        {
            return Err(request.not_found());
        }
        check_stored_uid(request, &object, "")?;
        metadata(&mut object).remove("resourceVersion");
        return create(state, request, options, object, Verb::Update, warnings.to_vec());
    };
    check_stored_uid(request, &object, uid(&live))?;
    let mut written = update(state, request, options, &live, object, Verb::Update)?;
    written.warnings.splice(0..0, warnings.iter().cloned());
    Ok(written)
}

fn is_unchanged_since_creation(store: &Store, request: &ResourceRequest<'_>) -> bool {
    let resource = &request.target.resource;
    let entry =
        store.get(conversion::storage_group(resource), &resource.plural, request.namespace.as_deref(), &request.name);
    entry.is_some_and(|entry| entry.is_new)
}

/// Metadata fields with their values.
type MetadataFields = Vec<(&'static str, Option<Value>)>;

/// Replaces a live object. An applied object has its managed fields already; otherwise the writer owns its changes.
pub(crate) fn update(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    stored: &Arc<Stored>,
    object: Value,
    verb: Verb,
) -> Result<WriteResult, ApiError> {
    let mut warnings = Vec::new();
    let updated = update_admitted(state, request, options, stored, object, verb, &mut warnings);
    let object = updated.map_err(|error| error.with_warnings(&warnings))?;
    Ok(WriteResult { object, created: false, warnings })
}

/// Replaces a live object, and adds the warnings of webhooks and of its kind.
fn update_admitted(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    stored: &Arc<Stored>,
    mut object: Value,
    verb: Verb,
    warnings: &mut Vec<String>,
) -> Result<Arc<Stored>, ApiError> {
    let live = convert(&request.target, stored);
    check_resource_version(request, &live, &object)?;
    let immutable = changed_identity(&live, &object);
    let resets_managers = asks_for_reset(&object);
    let ignored = ignored_metadata(request, verb, &live, &object);
    let absent = absent_metadata(verb, &object);
    restore_server_fields(request, &live, &mut object);
    let empty_values = normalize(request, &mut object);
    if resets_managers {
        metadata(&mut object).insert("managedFields".to_owned(), json!([]));
    }
    let mut object = if verb == Verb::Apply { object } else { track_writer(request, options, &live, ignored, object)? };
    if request.subresource.is_empty() {
        admit_changed_pod(&request.target.resource, &live, &mut object);
    }
    if mutate_updated(state, request, options, (&live, &absent), &mut object, warnings)? {
        request.check_place(&object)?;
        restore_server_fields(request, &live, &mut object);
    }
    if request.target.resource.group == RBAC_GROUP && !changes_only_garbage_collection(&live, &object) {
        check_escalation(&state.store, request, &request.name, &object)?;
    }
    prepare(state, request, options, &live, &mut object)?;
    increment_generation(request, &live, &empty_values, &mut object);
    encode::normalize_stored(request.target.version.typed, &mut object);
    check_allocation(&state.store, request, &object)?;
    let known_violations = validation::unchanged_violation_warnings(&request.target, &live, &object);
    validate_object(request, Some(&live), &object, immutable, &empty_values)
        .map_err(|error| error.with_warnings(&known_violations))?;
    warnings.extend(update_warnings(request, &live, &object, known_violations));
    admit(state, request, options, &live, &object, warnings)?;
    let object = to_storage_version(&state.store, request, stored, object)?;
    Ok(store_update(state, request, options, verb, stored, object))
}

/// True if an update changes nothing but what decides about the removal of the object.
fn changes_only_garbage_collection(live: &Value, object: &Value) -> bool {
    const REMOVAL: [&str; 3] = ["finalizers", "managedFields", "ownerReferences"];
    are_equal_but(live, object, &["metadata"]) && are_equal_but(&live["metadata"], &object["metadata"], &REMOVAL)
}

/// Returns the metadata of the request that the server ignores, but whose ownership the writer takes.
fn ignored_metadata(request: &ResourceRequest<'_>, verb: Verb, live: &Value, object: &Value) -> MetadataFields {
    let mut ignored = ignored_by_status(request, object);
    if verb == Verb::Update && is_deleting(live) {
        // A PUT without these fields takes their ownership away, although the server keeps their values.
        let requested = |field: &'static str| (field, object["metadata"].get(field).cloned());
        ignored.extend(["deletionTimestamp", "deletionGracePeriodSeconds"].map(requested));
    }
    ignored
}

/// Returns the metadata that a PUT lacks, which mutating webhooks therefore do not see.
fn absent_metadata(verb: Verb, object: &Value) -> Vec<&'static str> {
    let fields = ["creationTimestamp", "deletionTimestamp", "resourceVersion", "uid"].into_iter();
    fields.filter(|field| verb == Verb::Update && object["metadata"].get(field).is_none()).collect()
}

/// Restores the parts of the live object that this request cannot change.
fn restore_server_fields(request: &ResourceRequest<'_>, live: &Value, object: &mut Value) {
    request.strategy().set_request_defaults(object);
    restore_other_part(request, live, object);
    let fields = metadata(object);
    for kept in KEPT_METADATA.iter().chain(&["resourceVersion"]) {
        match live["metadata"].get(kept) {
            Some(value) => drop(fields.insert((*kept).to_owned(), value.clone())),
            None => drop(fields.remove(*kept)),
        }
    }
}

/// Gives the changed fields to the writer.
fn track_writer(
    request: &ResourceRequest<'_>,
    options: &Options,
    live: &Value,
    ignored: MetadataFields,
    mut object: Value,
) -> Result<Value, ApiError> {
    let (api_version, now) = (request.target.api_version(), request.timestamp());
    let subresource = request.subresource;
    let blank = Value::Null;
    let writer = Writer { manager: &options.manager, api_version: &api_version, subresource, now: &now, blank: &blank };
    let current = current_metadata(&object, &ignored);
    set_metadata(&mut object, ignored);
    object = track_update(&request.target.version.shape, Some(live), &object, &writer)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    set_metadata(&mut object, current);
    Ok(manager_versions::reconcile_managers(request, live, object))
}

/// Applies the strategy of the kind.
fn prepare(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    live: &Value,
    object: &mut Value,
) -> Result<(), ApiError> {
    let mut trial = ServiceAllocator::for_dry_run();
    let allocator = if options.dry_run { &mut trial } else { &mut state.allocator };
    let mut context = PrepareContext {
        now: request.started,
        is_status: request.is_status(),
        user: &request.user,
        allocator,
        store: &state.store,
    };
    request.strategy().prepare_for_update(&mut context, live, object)
}

/// Increments the generation if the desired state changed.
fn increment_generation(request: &ResourceRequest<'_>, live: &Value, empty_values: &[EmptyValue], object: &mut Value) {
    let tracks_generation = request.target.resource.generation && !request.is_status();
    if tracks_generation && changes_desired_state(request, live, object, empty_values) {
        let generation = value_at(live, "/metadata/generation").and_then(Value::as_u64).unwrap_or_default();
        metadata(object).insert("generation".to_owned(), json!(generation + 1));
    }
}

/// Runs the admission of a write that changes nothing more.
fn admit(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    live: &Value,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let (resource, store) = (&request.target.resource, &state.store);
    let is_whole = request.subresource.is_empty();
    if let Some(reason) = resize_violation(store, resource, live, object).filter(|_| is_whole) {
        return Err(ApiError::forbidden(resource, &request.name, reason));
    }
    if let Some(reason) = approval_violation(store, request, live) {
        return Err(ApiError::forbidden(resource, &request.name, &reason));
    }
    if let Some(reason) = bound_violation(store, request, live, object) {
        return Err(ApiError::forbidden(resource, &request.name, &reason));
    }
    if needs_security_check(request, live, object) {
        warnings.extend(admit_security(store, request, &request.name, object)?);
    }
    validate_write(state, request, options, Some(live), &request.name, object, warnings)?;
    if !is_whole {
        return Ok(());
    }
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let violation = quota_violation(store, namespace, resource, Some(live), object);
    violation.map_or(Ok(()), |reason| Err(ApiError::forbidden(resource, &request.name, &reason)))
}

/// Returns the violation of a limit range by an update. Those of pods count only for their resize.
fn bound_violation(store: &Store, request: &ResourceRequest<'_>, live: &Value, object: &Value) -> Option<String> {
    let resource = &request.target.resource;
    let is_bounded =
        if resource.is("", "pods") { request.subresource == "resize" } else { request.subresource.is_empty() };
    let namespace = request.namespace.as_deref().filter(|_| is_bounded && !is_deleting(live))?;
    limit_violation(store, namespace, resource, object)
}

/// True if Pod Security evaluates an update: of containers of a pod, or of an object with a pod template.
fn needs_security_check(request: &ResourceRequest<'_>, live: &Value, object: &Value) -> bool {
    if request.target.resource.is("", "pods") {
        !request.is_status() && is_significant_update(live, object)
    } else {
        request.subresource.is_empty()
    }
}

/// Returns the reason for which the user may not approve a certificate signing request.
fn approval_violation(store: &Store, request: &ResourceRequest<'_>, live: &Value) -> Option<String> {
    let signer = string_at(live, "/spec/signerName");
    let is_forbidden = request.subresource == "approval" && !may_use_signer(store, &request.user, "approve", signer);
    is_forbidden.then(|| format!("user not permitted to approve requests with signerName {signer:?}"))
}

fn update_warnings(
    request: &ResourceRequest<'_>,
    live: &Value,
    object: &Value,
    known_violations: Vec<String>,
) -> Vec<String> {
    let strategy = request.strategy();
    let mut warnings = if request.is_status() { Vec::new() } else { strategy.warnings_on_update(live, object) };
    warnings.extend(known_violations);
    warnings
}

/// Converts an object to its storage version, in which some fields are immutable.
fn to_storage_version(
    store: &Store,
    request: &ResourceRequest<'_>,
    stored: &Stored,
    object: Value,
) -> Result<Value, ApiError> {
    let object = convert_to_storage(store, request, object)?;
    let errors = conversion::immutable_field_errors(&request.target, stored, &object);
    if errors.is_empty() {
        return Ok(object);
    }
    Err(ApiError::invalid_kind("", &request.target.resource.kind, name(&object), &errors))
}

/// Stores a changed object, or removes it if its last finalizer is gone. Returns the object of the response.
fn store_update(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    verb: Verb,
    stored: &Arc<Stored>,
    object: Value,
) -> Arc<Stored> {
    let strategy = request.strategy();
    let always_writes = strategy.stores_first_update() && is_unchanged_since_creation(&state.store, request);
    if differs_in_times_only(stored, &object) && !always_writes {
        return stored.clone();
    }
    if options.dry_run {
        return Arc::new(Stored::new(object));
    }
    let attribution = request.attribution(options, verb);
    let key = request.key(&request.name);
    if is_deleting(&object) && finalizers(&object).is_empty() && !strategy.has_finalizers_in_spec(&object) {
        // The response is the object as it would have been stored, with the previous resourceVersion.
        remove(state, request.now, &attribution, &key);
        return Arc::new(Stored::new(object));
    }
    commit(state, request.now, &attribution, key, object)
}

/// Metadata that a status write of a custom resource ignores, but whose ownership it takes, as in the real server.
fn ignored_by_status(request: &ResourceRequest<'_>, object: &Value) -> MetadataFields {
    if !request.target.resource.custom || !request.is_status() {
        return Vec::new();
    }
    ["annotations", "finalizers", "labels", "ownerReferences"]
        .map(|field| (field, object["metadata"].get(field).cloned()))
        .to_vec()
}

/// Replaces metadata fields of an object.
fn set_metadata(object: &mut Value, fields: MetadataFields) {
    for (field, value) in fields {
        match value {
            Some(value) => drop(metadata(object).insert(field.to_owned(), value)),
            None => drop(metadata(object).remove(field)),
        }
    }
}

/// Returns the current values of metadata fields.
fn current_metadata(object: &Value, fields: &[(&'static str, Option<Value>)]) -> MetadataFields {
    fields.iter().map(|(field, _)| (*field, object["metadata"].get(*field).cloned())).collect()
}

/// True if the request resets managedFields.
fn asks_for_reset(object: &Value) -> bool {
    let managers = value_at(object, "/metadata/managedFields").and_then(Value::as_array);
    managers.is_some_and(|list| list.iter().all(|entry| entry.as_object().is_some_and(serde_json::Map::is_empty)))
}

/// Returns the errors for changed immutable metadata. The real server validates twice, and reports each error twice.
fn changed_identity(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["uid", "deletionTimestamp"] {
        let (known, requested) = (live["metadata"].get(field), object["metadata"].get(field));
        if let Some(requested) =
            requested.filter(|requested| requested.is_string() && *requested != "" && Some(*requested) != known)
        {
            let error = FieldError::invalid(format!("metadata.{field}"), requested, "field is immutable");
            errors.extend([error.clone(), error]);
        }
    }
    errors
}

/// True if at most the times of managedFields differ: defaults and normalization undo some changes only after the
/// managedFields were updated.
fn differs_in_times_only(stored: &Value, object: &Value) -> bool {
    are_equal(stored, object, |name, stored, object| match name {
        "metadata" => are_equal(stored, object, |name, stored, object| match (name, stored, object) {
            ("managedFields", Value::Array(stored), Value::Array(object)) => {
                let mut managers = stored.iter().zip(object);
                stored.len() == object.len()
                    && managers.all(|(stored, object)| are_equal_but(stored, object, &["time"]))
            }
            _ => stored == object,
        }),
        _ => stored == object,
    })
}

/// Compares two values; the fields of maps are compared by a rule.
fn are_equal(one: &Value, other: &Value, rule: impl Fn(&str, &Value, &Value) -> bool) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let mut pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.all(|((name, one), (same, other))| name == same && rule(name, one, other))
}

/// Compares two values, without some fields of maps.
fn are_equal_but(one: &Value, other: &Value, ignored: &[&str]) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let counts = |(name, _): &(&String, &Value)| !ignored.contains(&name.as_str());
    one.iter().filter(counts).eq(other.iter().filter(counts))
}

/// Checks the resourceVersion that a write expects.
pub(super) fn check_resource_version(
    request: &ResourceRequest<'_>,
    live: &Value,
    object: &Value,
) -> Result<(), ApiError> {
    let resource = &request.target.resource;
    let requested = resource_version(object);
    if requested.parse::<u64>().is_err() && !requested.is_empty() {
        return Err(ApiError::unknown(format!("strconv.ParseUint: parsing {requested:?}: invalid syntax")));
    }
    if !requested.is_empty() && requested != "0" && requested != resource_version(live) {
        return Err(ApiError::modified(resource, name(live)));
    }
    // Patches start from the live object, so that only a PUT can lack a resourceVersion.
    let replaces = request.http.method == http::Method::PUT;
    if matches!(requested, "" | "0") && replaces && !request.strategy().allows_unconditional_update() {
        let error = FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        return Err(ApiError::invalid_kind(&resource.group, &resource.plural, name(live), &[error]));
    }
    Ok(())
}

/// Checks the UID of a PUT, which the real server compares in its storage.
fn check_stored_uid(request: &ResourceRequest<'_>, object: &Value, found: &str) -> Result<(), ApiError> {
    let requested = uid(object);
    if requested.is_empty() || requested == found {
        return Ok(());
    }
    let resource = &request.target.resource;
    let group = if resource.custom { format!("{}/", resource.group) } else { String::new() };
    let namespace = request.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let key = format!("/registry/{group}{}/{namespace}{}", resource.storage_prefix(), request.name);
    let reason = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {requested}, UID in object meta: {found}"
    );
    Err(ApiError::conflict(resource, &request.name, &reason))
}

/// Restores the live status, or for a write to `/status` everything else.
fn restore_other_part(request: &ResourceRequest<'_>, live: &Value, object: &mut Value) {
    if object_parts::is_part(request.subresource) {
        *object = object_parts::take_part(request.subresource, live, object);
        return;
    }
    if !request.target.version.status {
        return;
    }
    let (status, mut kept) = if request.is_status() {
        let mut kept = live.clone();
        let custom = request.target.resource.custom;
        // A status write of a built-in kind changes metadata, too.
        let labels = !custom && request.strategy().status_changes_labels();
        let taken = [
            ("managedFields", true),
            ("annotations", !custom),
            ("finalizers", !custom),
            ("ownerReferences", !custom),
            ("labels", labels),
        ];
        for (field, _) in taken.into_iter().filter(|(_, taken)| *taken) {
            match object["metadata"].get(field).cloned() {
                Some(value) => drop(metadata(&mut kept).insert(field.to_owned(), value)),
                None if field == "managedFields" => {}
                None => drop(metadata(&mut kept).remove(field)),
            }
        }
        (object.get("status").cloned(), kept)
    } else {
        let mut kept = object.take();
        if request.strategy().keeps_spec() {
            kept["spec"] = live["spec"].clone();
        }
        (live.get("status").cloned(), kept)
    };
    if let Some(map) = kept.as_object_mut() {
        match status {
            Some(status) => drop(map.insert("status".to_owned(), status)),
            None => drop(map.remove("status")),
        }
    }
    *object = kept;
}

/// True if an update changes the desired state.
fn changes_desired_state(
    request: &ResourceRequest<'_>,
    live: &Value,
    object: &Value,
    empty_values: &[EmptyValue],
) -> bool {
    if request.target.resource.custom {
        let with_status: &[&str] = &["metadata", "apiVersion", "status"];
        let ignored = if request.target.version.status { with_status } else { &with_status[..2] };
        return !are_equal_but(live, object, ignored);
    }
    request.strategy().changes_desired_state(live, object, empty_values)
}
