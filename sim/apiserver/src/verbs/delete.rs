//! Delete, of one object or of a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::{Call, Options};
use super::read::find_live;
use crate::admission::namespace_lifecycle::check_namespace_deletable;
use crate::encoding::protobuf::ProtobufError;
use crate::encoding::{protobuf, yaml};
use crate::http::error::{ApiError, details};
use crate::http::response::Response;
use crate::object::field_error::FieldError;
use crate::object::fields::{
    finalizers, is_deleting, list, metadata, name, resource_version, set_finalizers, stamp, text, uid,
};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
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

/// Options of a delete, from the body or the query.
struct DeleteOptions {
    options: Options,
    /// Requested propagation policy; `None` keeps that of an earlier delete.
    propagation: Option<Propagation>,
    /// Grace period of a pod in seconds.
    grace: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
}

pub(crate) fn delete_from_request(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let asked = read_options(call)?;
    let live = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let (resource, strategy) = (&call.target.resource, call.strategy());
    check_namespace_deletable(resource, &call.name)?;
    check_preconditions(call, &call.name, &asked, &live)?;
    let key = call.key(&call.name);
    let attribution = call.attribution(&asked.options, Verb::Delete);
    let mut last = None;
    let left = match decide_deletion(call.now, resource, &live, asked.propagation, asked.grace) {
        Deletion::Gone => {
            if !asked.options.dry_run {
                last = mark_and_remove(state, call, &attribution, &live).or(last);
                let gone = remove(state, call.now, &attribution, &key);
                last = last.or_else(|| gone.map(|gone| Value::clone(&gone)));
            }
            None
        }
        Deletion::Unchanged => Some(live.clone()),
        Deletion::Marked(object) if asked.options.dry_run => Some(Arc::new(Stored::new(object))),
        Deletion::Marked(object) => Some(commit(state, call.now, &attribution, key, object)),
    };
    Ok(match left {
        None if strategy.returns_deleted_object() => {
            let mut last = last.unwrap_or_else(|| Value::clone(&live));
            if strategy.is_deleted_gracefully() {
                metadata(&mut last).insert("deletionTimestamp".to_owned(), json!(stamp(call.now)));
                metadata(&mut last).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            }
            Response::from_json(
                200,
                render::object(&call.target, call.format.representation, call.now, &Stored::new(last)),
            )
        }
        None => Response::json(200, &success(resource, &live)),
        Some(object) => {
            Response::from_json(200, render::object(&call.target, call.format.representation, call.now, &object))
        }
    })
}

/// Stores an object with a deletion timestamp and removes it, so that its last state has the resourceVersion of the
/// removal. `None` if the kind does not require that.
fn mark_and_remove(state: &mut ServerState, call: &Call<'_>, who: &Attribution, live: &Value) -> Option<Value> {
    if !call.strategy().is_marked_before_removal(live) || is_deleting(live) {
        return None;
    }
    let mut marked = live.clone();
    let fields = metadata(&mut marked);
    fields.insert("deletionTimestamp".to_owned(), json!(call.timestamp()));
    fields.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    let generation = live.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or_default();
    fields.insert("generation".to_owned(), json!(generation + 1));
    let key = call.key(&call.name);
    commit(state, call.now, who, key.clone(), marked);
    remove(state, call.now, who, &key).map(|last| Value::clone(&last))
}

pub(crate) fn delete_collection(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let asked = read_options(call)?;
    let scope = super::read::scope(call)?;
    let resource = &call.target.resource;
    let collection = state.store.collection(conversion::storage_group(resource), &resource.plural);
    let selected = collection.into_iter().flat_map(|collection| collection.values());
    let selected = selected.filter(|entry| scope.selects(entry.key.namespace.as_deref(), &entry.object));
    let selected: Vec<(Arc<StoredKey>, Arc<Stored>)> =
        selected.map(|entry| (entry.key.clone(), entry.object.clone())).collect();
    let attribution = call.attribution(&asked.options, Verb::Delete);
    let metadata = json!({ "resourceVersion": state.store.revision().to_string() });
    for (key, live) in &selected {
        check_preconditions(call, &key.name, &asked, live)?;
    }
    if !asked.options.dry_run {
        for (key, _) in &selected {
            delete_with_policy(state, call.now, &attribution, key, asked.propagation);
        }
    }
    let objects: Vec<Arc<Stored>> = selected.into_iter().map(|(_, object)| object).collect();
    Ok(Response::from_json(200, render::list(&call.target, call.format.representation, call.now, &objects, metadata)))
}

/// Deletes a stored object, or marks it while it has finalizers.
pub(crate) fn delete_stored(
    state: &mut ServerState,
    now: jiff::Timestamp,
    who: &Attribution,
    key: &StoredKey,
    propagation: Propagation,
) {
    delete_with_policy(state, now, who, key, Some(propagation));
}

/// Deletes a stored object; without a policy, that of an earlier delete applies.
fn delete_with_policy(
    state: &mut ServerState,
    now: jiff::Timestamp,
    who: &Attribution,
    key: &StoredKey,
    propagation: Option<Propagation>,
) {
    let Some(entry) = state.store.get(&key.group, &key.plural, key.namespace.as_deref(), &key.name) else {
        return;
    };
    let live = entry.object.clone();
    let Some(resource) = state.registry.resource(&key.group, &key.plural).cloned() else {
        // The kind is not served any more; only the CRD finalizer deletes such objects.
        remove(state, now, who, key);
        return;
    };
    match decide_deletion(now, &resource, &live, propagation, None) {
        Deletion::Gone => drop(remove(state, now, who, key)),
        Deletion::Unchanged => {}
        Deletion::Marked(object) => drop(commit(state, now, who, key.clone(), object)),
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
    if let Some(propagation) = propagation {
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
    stamp(crate::object::fields::later(now, jiff::SignedDuration::from_secs(grace_seconds)))
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

fn read_options(call: &Call<'_>) -> Result<DeleteOptions, ApiError> {
    let mut options = call.options("DeleteOptions")?;
    let body = read_body(call)?;
    if !call.request.body.is_empty() {
        // With a body, the query is ignored.
        options.dry_run = list(&body, "/dryRun").iter().any(|stage| stage == "All");
    }
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);
    let policy = Some(text(&body, "/propagationPolicy")).filter(|policy| !policy.is_empty());
    let invalid = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", "DeleteOptions", "", &[error]));
    if let (Some(_), Some(policy)) = (orphan, policy) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        return invalid(FieldError::invalid("propagationPolicy", &json!(policy), why));
    }
    // The body takes precedence over the query.
    let asked = if call.request.body.is_empty() { call.request.parameter("propagationPolicy") } else { policy };
    let propagation = match asked {
        None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let supported = ["\"Foreground\"", "\"Background\"", "\"Orphan\"", "\"nil\""].map(str::to_owned);
            return invalid(FieldError::unsupported("propagationPolicy", &json!(other), &supported));
        }
    };
    let grace =
        match call.request.parameter("gracePeriodSeconds").filter(|_| call.request.body.is_empty()) {
            None => body.get("gracePeriodSeconds").and_then(Value::as_i64),
            Some(seconds) => Some(seconds.parse().map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing {seconds:?}: invalid syntax"))
            })?),
        };
    let precondition = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(DeleteOptions {
        options,
        propagation,
        grace,
        uid: precondition("/preconditions/uid"),
        resource_version: precondition("/preconditions/resourceVersion"),
    })
}

fn read_body(call: &Call<'_>) -> Result<Value, ApiError> {
    let body = &call.request.body;
    if body.is_empty() {
        return Ok(json!({}));
    }
    if protobuf::is_media(&call.request.headers.content_type) {
        // A valid Protobuf body was converted to JSON before.
        let why = protobuf::decode_as(body, ("v1", "DeleteOptions")).err();
        return Err(ApiError::bad_request(why.map(ProtobufError::into_message).unwrap_or_default()));
    }
    let read = yaml::read_yaml(body).ok().filter(Value::is_object).ok_or_else(|| {
        let why = yaml::read_json(body).err().unwrap_or_default();
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    })?;
    let (kind, version) = (text(&read, "/kind"), text(&read, "/apiVersion"));
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(read)
}

fn check_preconditions(call: &Call<'_>, name: &str, asked: &DeleteOptions, live: &Value) -> Result<(), ApiError> {
    let refuse = |why: &str| Err(ApiError::precondition(&call.target.resource, name, why));
    if call.strategy().reports_preconditions_as_storage() {
        for (what, asked, found) in
            [("UID", &asked.uid, uid(live)), ("ResourceVersion", &asked.resource_version, resource_version(live))]
        {
            if let Some(asked) = asked.as_deref().filter(|asked| *asked != found) {
                let why =
                    format!("Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}");
                return Err(ApiError::conflict(&call.target.resource, name, &why));
            }
        }
    }
    if let Some(asked) = asked.uid.as_deref().filter(|asked| *asked != uid(live)) {
        return refuse(&format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            uid(live)
        ));
    }
    if let Some(asked) = asked.resource_version.as_deref().filter(|asked| *asked != resource_version(live)) {
        return refuse(&format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({}). The object might have been modified",
            resource_version(live)
        ));
    }
    Ok(())
}

fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = details(name(object), &resource.group, &resource.plural);
    details["uid"] = json!(uid(object));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
