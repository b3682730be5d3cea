//! Create: by POST, by applying an object that does not exist, or by PUT for some kinds.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use super::admit::{mutate_created, validate_write};
use super::body::DecodedBody;
use super::convert_by_webhook::convert_to_storage;
use super::normalize::{normalize, validate_object};
use super::resource_request::{Options, ResourceRequest, WriteResult};
use crate::admission::certificates::subject_violation;
use crate::admission::limit_range::apply_limit_ranges;
use crate::admission::namespace_lifecycle::{check_crd_not_terminating, check_namespace};
use crate::admission::pod_security::{enforce_level, level_warning};
use crate::admission::pods::{admit_pod, lacks_default_account};
use crate::admission::quota::quota_violation;
use crate::admission::storage_class::set_default_class;
use crate::admission::webhooks::mutating::MutatingRounds;
use crate::auth::escalation::RbacWrite;
use crate::http::error::ApiError;
use crate::object::fields::{is_deleting, metadata, string_at};
use crate::object::stored::Stored;
use crate::registry::conversion;
use crate::registry::types::encode;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;
use crate::storage::store::Store;
use crate::strategy::PrepareContext;
use crate::strategy::service_allocator::ServiceAllocator;
use crate::writes::commit::commit;
use crate::writes::namespace_defaults::await_default_objects;

/// Number of attempts to generate a free name.
const GENERATED_NAME_TRIES: usize = 8;

pub(crate) fn create_from_request(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
) -> Result<WriteResult, ApiError> {
    let options = request.options("CreateOptions")?;
    let DecodedBody { object, warnings } = request.body_object(&options)?;
    create(state, request, &options, object, Verb::Create, warnings.clone())
        .map_err(|error| error.with_warnings(&warnings))
}

/// Creates an object. An applied object has its managed fields already; any other belongs to its creator.
pub(crate) fn create(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    object: Value,
    verb: Verb,
    mut warnings: Vec<String>,
) -> Result<WriteResult, ApiError> {
    let mut notices = Vec::new();
    let created = create_admitted(state, request, options, object, verb, &mut notices);
    let object = created.map_err(|error| error.with_warnings(&notices))?;
    warnings.extend(notices);
    Ok(WriteResult { object, created: true, warnings })
}

/// Creates an object, and adds the warnings of its kind, of policies and of webhooks.
fn create_admitted(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    mut object: Value,
    verb: Verb,
    notices: &mut Vec<String>,
) -> Result<Arc<Stored>, ApiError> {
    let is_named = !string_at(&object, "/metadata/name").is_empty();
    let name = choose_name(state, request, &object);
    check_namespace(&state.store, &request.target.resource, request.namespace.as_deref(), &name)?;
    check_crd_not_terminating(&state.store, &request.target.resource, &name)?;
    set_system_metadata(state, request, &name, &mut object);
    let empty_values = normalize(request, &mut object);
    let mut object = track_creator(request, options, verb, object)?;
    let name = admit_mutations(state, request, options, (name, is_named), &mut object, notices)?;
    check_escalation(&state.store, request, &name, &object)?;
    prepare(state, request, options, &mut object);
    check_allocation(&state.store, request, &object)?;
    validate_object(request, None, &object, Vec::new(), &empty_values)?;
    notices.extend(request.strategy().creation_warnings(&object));
    notices.extend(admit_validation(&state.store, request, &name, &object)?);
    pass_uncalled(request, validate_write(state, request, options, None, &name, &object, notices))?;
    check_quotas(&state.store, request, &name, &object)?;
    if verb == Verb::Create && !options.dry_run {
        check_unset_version(&object)?;
    }
    check_absent(&state.store, request, &name)?;
    let object = convert_to_storage(&state.store, request, object)?;
    let object = if options.dry_run {
        Arc::new(Stored::new(object))
    } else {
        commit(state, request.now, &request.attribution(options, verb), request.key(&name), object)
    };
    let response = request.strategy().created_response(&object).map(|response| Arc::new(Stored::new(response)));
    Ok(response.unwrap_or(object))
}

/// Runs the admission that may change a new object, and returns its name: a webhook may choose one that would be generated.
fn admit_mutations(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    (name, is_named): (String, bool),
    object: &mut Value,
    notices: &mut Vec<String>,
) -> Result<String, ApiError> {
    let shown = if is_named { name.as_str() } else { "" };
    let mut rounds = MutatingRounds::default();
    loop {
        admit_new_pod(state, request, &name, object)?;
        set_default_class(&state.store, &request.target.resource, object);
        admit_limits(&state.store, request, &name, object)?;
        pass_uncalled(request, mutate_created(state, request, options, shown, object, &mut rounds, notices))?;
        if !rounds.begin_next() {
            break;
        }
    }
    if !rounds.has_changed() {
        return Ok(name);
    }
    admit_limits(&state.store, request, &name, object)?;
    reset_status(request, object);
    request.check_place(object)?;
    Ok(string_at(object, "/metadata/name").to_owned())
}

/// Lets a create by a controller pass whose webhooks would have to be called: controllers do not wait.
fn pass_uncalled(request: &ResourceRequest<'_>, admission: Result<(), ApiError>) -> Result<(), ApiError> {
    match admission {
        Err(ApiError::AwaitsWebhooks(_)) if request.controller.is_some() => Ok(()),
        result => result,
    }
}

/// Sets the metadata that the server decides, and removes the status, which a create cannot set.
fn set_system_metadata(state: &mut ServerState, request: &ResourceRequest<'_>, name: &str, object: &mut Value) {
    if let (true, Some(map)) = (request.target.version.status, object.as_object_mut()) {
        map.remove("status");
    }
    let fields = metadata(object);
    for server_owned in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        fields.remove(server_owned);
    }
    fields.insert("name".to_owned(), json!(name));
    match &request.namespace {
        Some(namespace) => drop(fields.insert("namespace".to_owned(), json!(namespace))),
        None => drop(fields.remove("namespace")),
    }
    fields.insert("uid".to_owned(), json!(state.ids.uid()));
    fields.insert("creationTimestamp".to_owned(), json!(request.timestamp()));
    if request.target.resource.generation {
        fields.insert("generation".to_owned(), json!(1));
    }
}

/// Gives the fields of a new object to its creator, unless it was applied.
fn track_creator(
    request: &ResourceRequest<'_>,
    options: &Options,
    verb: Verb,
    mut object: Value,
) -> Result<Value, ApiError> {
    let blank = unowned_fields(request, &object);
    reset_status(request, &mut object);
    if verb == Verb::Apply {
        return Ok(object);
    }
    let (api_version, now) = (request.target.api_version(), request.timestamp());
    let writer = Writer {
        manager: &options.manager,
        api_version: &api_version,
        subresource: request.subresource,
        now: &now,
        blank: &blank,
    };
    track_update(&request.target.version.shape, None, &object, &writer)
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Replaces the status of a new object by the one that every object of its kind has.
fn reset_status(request: &ResourceRequest<'_>, object: &mut Value) {
    if let (true, Some(map)) = (request.target.version.status, object.as_object_mut()) {
        match request.target.version.blank.get("status") {
            Some(status) => drop(map.insert("status".to_owned(), status.clone())),
            None => drop(map.remove("status")),
        }
    }
}

/// Returns the fields that the creator does not own: always present ones, and for a status write, or if nothing changes it
/// later, the spec.
fn unowned_fields<'a>(request: &'a ResourceRequest<'_>, object: &Value) -> Cow<'a, Value> {
    let blank = &request.target.version.blank;
    if !request.is_status() && !request.strategy().keeps_spec() {
        return Cow::Borrowed(blank);
    }
    let mut unowned = if blank.is_object() { blank.clone() } else { json!({}) };
    unowned["spec"] = object.get("spec").cloned().unwrap_or_default();
    Cow::Owned(unowned)
}

/// Applies the strategy of the kind.
fn prepare(state: &mut ServerState, request: &ResourceRequest<'_>, options: &Options, object: &mut Value) {
    let mut trial = ServiceAllocator::for_dry_run();
    let allocator = if options.dry_run { &mut trial } else { &mut state.allocator };
    let mut context = PrepareContext {
        now: request.started,
        is_status: request.is_status(),
        user: &request.user,
        allocator,
        store: &state.store,
    };
    request.strategy().prepare_for_create(&mut context, object);
    encode::normalize_stored(request.target.version.typed, object);
}

/// Runs the admission of a new pod.
fn admit_new_pod(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    name: &str,
    object: &mut Value,
) -> Result<(), ApiError> {
    let resource = &request.target.resource;
    if state.requires_service_accounts && lacks_default_account(&state.store, resource, object) {
        await_default_objects(state, request.now, request.namespace.as_deref().unwrap_or_default());
    }
    admit_pod(&state.store, &mut state.ids, state.requires_service_accounts, resource, object)
        .map_err(|reason| ApiError::forbidden(resource, name, &reason))
}

/// Runs the admission of a new object that only checks it, and returns its warnings.
fn admit_validation(
    store: &Store,
    request: &ResourceRequest<'_>,
    name: &str,
    object: &Value,
) -> Result<Vec<String>, ApiError> {
    let resource = &request.target.resource;
    match subject_violation(resource, object) {
        Some(reason) => Err(ApiError::forbidden(resource, name, reason)),
        None => admit_security(store, request, name, object),
    }
}

/// Checks the security level that the namespace enforces, and returns the warnings about another one.
pub(crate) fn admit_security(
    store: &Store,
    request: &ResourceRequest<'_>,
    name: &str,
    object: &Value,
) -> Result<Vec<String>, ApiError> {
    let (resource, namespace) = (&request.target.resource, request.namespace.as_deref());
    match enforce_level(store, resource, namespace, object) {
        Some(reason) => Err(ApiError::forbidden(resource, name, &reason)),
        None => Ok(level_warning(store, resource, namespace, object).into_iter().collect()),
    }
}

/// Returns an error if the user grants permissions that the user does not have.
pub(crate) fn check_escalation(
    store: &Store,
    request: &ResourceRequest<'_>,
    name: &str,
    object: &Value,
) -> Result<(), ApiError> {
    if request.controller.is_some() {
        return Ok(());
    }
    let write = RbacWrite {
        user: &request.user,
        resource: &request.target.resource,
        namespace: request.namespace.as_deref().unwrap_or_default(),
        requested_name: &request.name,
        name,
        object,
    };
    write.check_escalation(store)
}

/// Checks the quotas of the namespace.
fn check_quotas(store: &Store, request: &ResourceRequest<'_>, name: &str, object: &Value) -> Result<(), ApiError> {
    let (resource, namespace) = (&request.target.resource, request.namespace.as_deref().unwrap_or_default());
    let violation = quota_violation(store, namespace, resource, None, object);
    violation.map_or(Ok(()), |reason| Err(ApiError::forbidden(resource, name, &reason)))
}

/// Applies the limit ranges of the namespace.
fn admit_limits(store: &Store, request: &ResourceRequest<'_>, name: &str, object: &mut Value) -> Result<(), ApiError> {
    let (resource, namespace) = (&request.target.resource, request.namespace.as_deref().unwrap_or_default());
    let violation = apply_limit_ranges(store, namespace, resource, object);
    violation.map_or(Ok(()), |reason| Err(ApiError::forbidden(resource, name, &reason)))
}

/// Checks that a new object has no resourceVersion. A text that is no version counts as none.
fn check_unset_version(object: &Value) -> Result<(), ApiError> {
    match string_at(object, "/metadata/resourceVersion").parse::<u64>() {
        Ok(version) if version != 0 => {
            Err(ApiError::unknown("resourceVersion should not be set on objects to be created"))
        }
        _ => Ok(()),
    }
}

fn check_absent(store: &Store, request: &ResourceRequest<'_>, name: &str) -> Result<(), ApiError> {
    match find_existing(store, request, name) {
        Some(existing) => Err(ApiError::already_exists(&request.target.resource, name, is_deleting(existing))),
        None => Ok(()),
    }
}

/// Checks the values that must be free in the whole cluster, which the real server does before the other validation.
pub(crate) fn check_allocation(store: &Store, request: &ResourceRequest<'_>, object: &Value) -> Result<(), ApiError> {
    let errors = request.strategy().validate_allocation(store, object);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&request.target.resource, string_at(object, "/metadata/name"), &errors))
}

fn find_existing<'a>(store: &'a Store, request: &ResourceRequest<'_>, name: &str) -> Option<&'a Arc<Value>> {
    let resource = &request.target.resource;
    store.find(conversion::storage_group(resource), &resource.plural, request.namespace.as_deref(), name)
}

fn choose_name(state: &mut ServerState, request: &ResourceRequest<'_>, object: &Value) -> String {
    let (given, prefix) = (string_at(object, "/metadata/name"), string_at(object, "/metadata/generateName"));
    if !given.is_empty() || prefix.is_empty() {
        return given.to_owned();
    }
    let mut name = String::new();
    for _ in 0..GENERATED_NAME_TRIES {
        name = format!("{}{}", prefix.chars().take(58).collect::<String>(), state.ids.name_suffix());
        if find_existing(&state.store, request, &name).is_none() {
            break;
        }
    }
    name
}
