//! Delete, of one object or of a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::admit_delete;
use super::read::find_live;
use super::resource_request::{Options, ResourceRequest};
use crate::admission::namespace_lifecycle::check_namespace_deletable;
use crate::encoding::protobuf::ProtobufError;
use crate::encoding::{protobuf, yaml};
use crate::http::error::{ApiError, details};
use crate::http::response::Response;
use crate::object::field_error::FieldError;
use crate::object::fields::{
    array_at, finalizers, format_timestamp, is_deleting, metadata, name, resource_version, set_finalizers, string_at,
    uid,
};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::printing::convert::convert;
use crate::printing::render;
use crate::registry::conversion;
use crate::registry::resource::Resource;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::strategy::kinds::strategy_for;
use crate::writes::commit::{commit, remove};

/// Propagation policy of a delete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a delete, from the body or the query, or of an eviction.
pub(super) struct DeleteOptions {
    pub(super) options: Options,
    /// Requested propagation policy; `None` keeps that of an earlier delete.
    propagation: Option<Propagation>,
    /// Grace period of a pod in seconds.
    grace: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    /// The options as webhooks see them.
    object: Value,
}

pub(crate) fn delete_from_request(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
) -> Result<Response, ApiError> {
    let mut warnings = Vec::new();
    let response = delete_admitted(state, request, &mut warnings).map_err(|error| error.with_warnings(&warnings))?;
    Ok(with_warnings(response, &warnings))
}

fn with_warnings(response: Response, warnings: &[String]) -> Response {
    warnings.iter().fold(response, |response, warning| response.with_warning(warning))
}

fn default_propagation_warning(request: &ResourceRequest<'_>, options: &DeleteOptions) -> Option<String> {
    request.strategy().default_propagation_warning().filter(|_| options.propagation.is_none()).map(str::to_owned)
}

/// Deletes an object, and adds the warnings of webhooks.
fn delete_admitted(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    warnings: &mut Vec<String>,
) -> Result<Response, ApiError> {
    let delete_options = read_options(request)?;
    warnings.extend(default_propagation_warning(request, &delete_options));
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let (resource, strategy) = (&request.target.resource, request.strategy());
    check_namespace_deletable(resource, &request.name)?;
    check_preconditions(request, &request.name, &delete_options, &live)?;
    let served = convert(&request.target, &live);
    admit_delete(state, request, &delete_options.object, &request.name, &served, warnings)?;
    let (left, last) = delete_live(state, request, &delete_options, &request.key(&request.name), &live);
    Ok(match left {
        None if strategy.returns_deleted_object() => {
            let mut last = last.unwrap_or_else(|| Value::clone(&live));
            if strategy.is_deleted_gracefully() {
                metadata(&mut last).insert("deletionTimestamp".to_owned(), json!(format_timestamp(request.now)));
                metadata(&mut last).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            }
            Response::from_json(
                200,
                render::object(&request.target, request.format.representation, request.now, &Stored::new(last)),
            )
        }
        None => Response::json(200, &success_status(resource, &live)),
        Some(object) => Response::from_json(
            200,
            render::object(&request.target, request.format.representation, request.now, &object),
        ),
    })
}

/// Deletes an object as these options say, unless they only try it. Returns what is left of it, and the last state of an
/// object that is gone.
pub(super) fn delete_live(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    delete_options: &DeleteOptions,
    key: &StoredKey,
    live: &Arc<Stored>,
) -> (Option<Arc<Stored>>, Option<Value>) {
    let attribution = request.attribution(&delete_options.options, Verb::Delete);
    let dry_run = delete_options.options.dry_run;
    let resource = &request.target.resource;
    match decide_deletion(request.now, resource, live, delete_options.propagation, delete_options.grace) {
        Deletion::Gone if dry_run => (None, None),
        Deletion::Gone => {
            let marked = mark_and_remove(state, request, &attribution, key, live);
            let gone = remove(state, request.now, &attribution, key);
            (None, marked.or_else(|| gone.map(|gone| Value::clone(&gone))))
        }
        Deletion::Unchanged => (Some(live.clone()), None),
        Deletion::Marked(object) if dry_run => (Some(Arc::new(Stored::new(object))), None),
        Deletion::Marked(object) => (Some(commit(state, request.now, &attribution, key.clone(), object)), None),
    }
}

/// Stores an object with a deletion timestamp and removes it, so that its last state has the resourceVersion of the
/// removal. `None` if the kind does not require that.
fn mark_and_remove(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    attribution: &Attribution,
    key: &StoredKey,
    live: &Value,
) -> Option<Value> {
    if !request.strategy().is_marked_before_removal(live) || is_deleting(live) {
        return None;
    }
    let mut marked = live.clone();
    let fields = metadata(&mut marked);
    fields.insert("deletionTimestamp".to_owned(), json!(request.timestamp()));
    fields.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    let generation = live.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or_default();
    fields.insert("generation".to_owned(), json!(generation + 1));
    commit(state, request.now, attribution, key.clone(), marked);
    remove(state, request.now, attribution, key).map(|last| Value::clone(&last))
}

pub(crate) fn delete_collection(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let delete_options = read_options(request)?;
    let scope = super::read::scope(request)?;
    let resource = &request.target.resource;
    let collection = state.store.collection(conversion::storage_group(resource), &resource.plural);
    let selected = collection.into_iter().flat_map(|collection| collection.values());
    let selected = selected.filter(|entry| scope.selects(entry.key.namespace.as_deref(), &entry.object));
    let selected: Vec<(Arc<StoredKey>, Arc<Stored>)> =
        selected.map(|entry| (entry.key.clone(), entry.object.clone())).collect();
    let metadata = json!({ "resourceVersion": state.store.revision().to_string() });
    let mut warnings: Vec<String> = default_propagation_warning(request, &delete_options).into_iter().collect();
    for (key, live) in &selected {
        check_preconditions(request, &key.name, &delete_options, live)?;
        // The real server does not tell webhooks the names of the objects of a collection.
        let served = convert(&request.target, live);
        admit_delete(state, request, &delete_options.object, "", &served, &mut warnings)
            .map_err(|error| error.with_warnings(&warnings))?;
    }
    for (key, live) in &selected {
        delete_live(state, request, &delete_options, key, live);
    }
    let objects: Vec<Arc<Stored>> = selected.into_iter().map(|(_, object)| object).collect();
    let list = render::list(&request.target, request.format.representation, request.now, &objects, metadata);
    Ok(with_warnings(Response::from_json(200, list), &warnings))
}

/// Deletes a stored object, or marks it while it has finalizers.
pub(crate) fn delete_stored(
    state: &mut ServerState,
    now: jiff::Timestamp,
    attribution: &Attribution,
    key: &StoredKey,
    propagation: Propagation,
) {
    let Some(entry) = state.store.get(&key.group, &key.plural, key.namespace.as_deref(), &key.name) else {
        return;
    };
    let live = entry.object.clone();
    let Some(resource) = state.registry.resource(&key.group, &key.plural).cloned() else {
        // The kind is not served any more; only the CRD finalizer deletes such objects.
        remove(state, now, attribution, key);
        return;
    };
    match decide_deletion(now, &resource, &live, Some(propagation), None) {
        Deletion::Gone => drop(remove(state, now, attribution, key)),
        Deletion::Unchanged => {}
        Deletion::Marked(object) => drop(commit(state, now, attribution, key.clone(), object)),
    }
}

/// Decides the effect of a delete: removal, a deletion timestamp, or nothing.
fn decide_deletion(
    now: jiff::Timestamp,
    resource: &Resource,
    live: &Value,
    propagation: Option<Propagation>,
    grace: Option<i64>,
) -> Deletion {
    let mut waiting: Vec<&str> = finalizers(live);
    let has_policy = waiting.iter().any(|finalizer| [FOREGROUND, ORPHAN].contains(finalizer));
    let orphans = strategy_for(resource).orphans_dependents_by_default() && !has_policy;
    if let Some(propagation) = propagation.or(orphans.then_some(Propagation::Orphan)) {
        let policy = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        // A later policy replaces an earlier one.
        waiting.retain(|finalizer| ![FOREGROUND, ORPHAN].contains(finalizer) || policy == Some(*finalizer));
        waiting.extend(policy.filter(|policy| !waiting.contains(policy)));
    }
    let strategy = strategy_for(resource);
    if !is_deleting(live) {
        waiting.extend(strategy.finalizers_on_delete());
    }
    let has_finalizers_in_spec = strategy.has_finalizers_in_spec(live);
    let grace_seconds = strategy.grace_period_seconds(live, grace);
    if waiting.is_empty() && !has_finalizers_in_spec && grace_seconds == 0 {
        return Deletion::Gone;
    }
    if is_deleting(live) && has_finalizers_in_spec {
        return Deletion::Unchanged;
    }
    if is_deleting(live) {
        return decide_repeated_deletion(now, live, &waiting, grace_seconds);
    }
    let mut marked = live.clone();
    set_finalizers(&mut marked, &waiting);
    let fields = metadata(&mut marked);
    fields.insert("deletionTimestamp".to_owned(), json!(deletion_time(now, grace_seconds)));
    fields.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_seconds));
    if resource.generation {
        let generation = live.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or_default();
        fields.insert("generation".to_owned(), json!(generation + 1));
    }
    strategy.prepare_for_delete(now, live, &mut marked);
    Deletion::Marked(marked)
}

fn deletion_time(now: jiff::Timestamp, grace_seconds: i64) -> String {
    format_timestamp(crate::object::fields::add_duration(now, jiff::SignedDuration::from_secs(grace_seconds)))
}

/// Decides the effect of a repeated delete: it changes the policy, or shortens the grace period.
fn decide_repeated_deletion(now: jiff::Timestamp, live: &Value, waiting: &[&str], grace_seconds: i64) -> Deletion {
    let left = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    let shorter = grace_seconds < left;
    if !shorter && finalizers(live) == waiting {
        return Deletion::Unchanged;
    }
    let mut marked = live.clone();
    set_finalizers(&mut marked, waiting);
    if shorter {
        let fields = metadata(&mut marked);
        fields.insert("deletionTimestamp".to_owned(), json!(deletion_time(now, grace_seconds)));
        fields.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_seconds));
    }
    Deletion::Marked(marked)
}

enum Deletion {
    Gone,
    Unchanged,
    Marked(Value),
}

fn read_options(request: &ResourceRequest<'_>) -> Result<DeleteOptions, ApiError> {
    let mut options = request.options("DeleteOptions")?;
    let body = read_body(request)?;
    let has_body = !request.http.body.is_empty();
    if has_body {
        // With a body, the query is ignored.
        options.dry_run = is_dry_run(&body);
    }
    // The body takes precedence over the query.
    let in_body = Some(string_at(&body, "/propagationPolicy")).filter(|policy| !policy.is_empty());
    let requested = if has_body { in_body } else { request.http.parameter("propagationPolicy") };
    let grace = match request.http.parameter("gracePeriodSeconds").filter(|_| !has_body) {
        None => body.get("gracePeriodSeconds").and_then(Value::as_i64),
        Some(seconds) => {
            let invalid = |_| ApiError::bad_request(format!("strconv.ParseInt: parsing {seconds:?}: invalid syntax"));
            Some(seconds.parse().map_err(invalid)?)
        }
    };
    let object = options_object(request, &body, requested, &options);
    Ok(DeleteOptions { grace, object, ..parse_options(options, &body, requested)? })
}

fn is_dry_run(delete_options: &Value) -> bool {
    array_at(delete_options, "/dryRun").iter().any(|stage| stage == "All")
}

/// Returns the options of the delete by which an eviction is carried out.
pub(super) fn read_eviction_options(options: Options, eviction: &Value) -> Result<DeleteOptions, ApiError> {
    let body = eviction.get("deleteOptions").cloned().unwrap_or_default();
    let dry_run = options.dry_run || is_dry_run(&body);
    let requested = Some(string_at(&body, "/propagationPolicy")).filter(|policy| !policy.is_empty());
    parse_options(Options { dry_run, ..options }, &body, requested)
}

/// Parses the fields of `DeleteOptions`, with this propagation policy.
fn parse_options(options: Options, body: &Value, requested: Option<&str>) -> Result<DeleteOptions, ApiError> {
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);
    let policy = Some(string_at(body, "/propagationPolicy")).filter(|policy| !policy.is_empty());
    let invalid = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", "DeleteOptions", "", &[error]));
    if let (Some(_), Some(policy)) = (orphan, policy) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        return invalid(FieldError::invalid("propagationPolicy", &json!(policy), detail));
    }
    let propagation = match requested {
        None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let supported = ["\"Foreground\"", "\"Background\"", "\"Orphan\"", "\"nil\""].map(str::to_owned);
            return invalid(FieldError::unsupported("propagationPolicy", &json!(other), &supported));
        }
    };
    let precondition = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(DeleteOptions {
        options,
        propagation,
        grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
        uid: precondition("/preconditions/uid"),
        resource_version: precondition("/preconditions/resourceVersion"),
        object: body.clone(),
    })
}

/// Returns the options as webhooks see them: the body, or if there is none, the query.
fn options_object(request: &ResourceRequest<'_>, body: &Value, policy: Option<&str>, options: &Options) -> Value {
    let mut object = body.clone();
    object["kind"] = json!("DeleteOptions");
    object["apiVersion"] = json!("meta.k8s.io/v1");
    if let Some(policy) = policy {
        object["propagationPolicy"] = json!(policy);
    }
    if options.dry_run {
        object["dryRun"] = json!(["All"]);
    }
    let seconds = request.http.parameter("gracePeriodSeconds").filter(|_| request.http.body.is_empty());
    if let Some(seconds) = seconds.and_then(|seconds| seconds.parse::<i64>().ok()) {
        object["gracePeriodSeconds"] = json!(seconds);
    }
    object
}

fn read_body(request: &ResourceRequest<'_>) -> Result<Value, ApiError> {
    let body = &request.http.body;
    if body.is_empty() {
        return Ok(json!({}));
    }
    if protobuf::is_media(&request.http.headers.content_type) {
        // A valid Protobuf body was converted to JSON before.
        let error = protobuf::decode_as(body, ("v1", "DeleteOptions")).err();
        return Err(ApiError::bad_request(error.map(ProtobufError::into_message).unwrap_or_default()));
    }
    let read = yaml::read_yaml(body).ok().filter(Value::is_object).ok_or_else(|| {
        let error = yaml::read_json(body).err().unwrap_or_default();
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let (kind, version) = (string_at(&read, "/kind"), string_at(&read, "/apiVersion"));
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(read)
}

/// Checks the UID and the resourceVersion that the options expect.
pub(super) fn check_preconditions(
    request: &ResourceRequest<'_>,
    name: &str,
    delete_options: &DeleteOptions,
    live: &Value,
) -> Result<(), ApiError> {
    let refuse = |reason: &str| Err(ApiError::precondition(&request.target.resource, name, reason));
    if request.strategy().reports_preconditions_as_storage() {
        for (what, requested, found) in [
            ("UID", &delete_options.uid, uid(live)),
            ("ResourceVersion", &delete_options.resource_version, resource_version(live)),
        ] {
            if let Some(requested) = requested.as_deref().filter(|requested| *requested != found) {
                let reason =
                    format!("Precondition failed: {what} in precondition: {requested}, {what} in object meta: {found}");
                return Err(ApiError::conflict(&request.target.resource, name, &reason));
            }
        }
    }
    if let Some(requested) = delete_options.uid.as_deref().filter(|requested| *requested != uid(live)) {
        return refuse(&format!(
            "the UID in the precondition ({requested}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            uid(live)
        ));
    }
    if let Some(requested) =
        delete_options.resource_version.as_deref().filter(|requested| *requested != resource_version(live))
    {
        return refuse(&format!(
            "the ResourceVersion in the precondition ({requested}) does not match the ResourceVersion in record ({}). The object might have been modified",
            resource_version(live)
        ));
    }
    Ok(())
}

fn success_status(resource: &Resource, object: &Value) -> Value {
    let mut details = details(name(object), &resource.group, &resource.plural);
    details["uid"] = json!(uid(object));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
