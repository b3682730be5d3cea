//! The `scale` subresource: desired replicas, current replicas, and their selector.

use serde_json::{Value, json};
use sindri_merge::{ApplyError, Writer, apply, merge_patch, track_update};

use super::admit::SubresourceWrite;
use super::convert_by_webhook::convert_to_storage;
use super::normalize::validate_object;
use super::read::find_live;
use super::resource_request::{Options, ResourceRequest};
use crate::admission::attributes::Kind;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, group_version, metadata, resource_version, string_at};
use crate::object::stored::Stored;
use crate::printing::convert::convert;
use crate::printing::format::selector;
use crate::printing::table::at_path;
use crate::schema::custom_resource;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;
use crate::writes::commit::commit;

const API_VERSION: &str = "autoscaling/v1";
const APPLY: &str = "application/apply-patch+yaml";

pub(crate) fn handle_scale(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let stored = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    if request.http.method == http::Method::GET {
        let live = convert(&request.target, &stored);
        check_replicas(request, &live)?;
        return Ok(Response::json(200, &build_scale(request, &live)));
    }
    let patching = request.http.method == http::Method::PATCH;
    let options = request.options(if patching { "PatchOptions" } else { "UpdateOptions" })?;
    let live = convert(&request.target, &stored);
    let media = request.http.headers.content_type.split(';').next().unwrap_or_default().trim();
    let (mut object, verb) = if patching && media == APPLY {
        (apply_scale(request, &options, &live)?, Verb::Apply)
    } else {
        (change_scale(request, &options, &live, patching)?, if patching { Verb::Patch } else { Verb::Update })
    };
    let desired = at_path(&object, &path_of(request, "specReplicasPath", ".spec.replicas"));
    if desired.as_i64().is_some_and(|replicas| replicas < 0) {
        let error = FieldError::invalid("spec.replicas", &desired, "must be greater than or equal to 0");
        return Err(ApiError::invalid_kind("autoscaling", "Scale", &request.name, &[error]));
    }
    let mut admission_warnings = Vec::new();
    let desired = admit_scale(state, request, &options, &live, &mut object, &mut admission_warnings)
        .map_err(|error| error.with_warnings(&admission_warnings))?
        .unwrap_or(desired);
    if desired != at_path(&live, &path_of(request, "specReplicasPath", ".spec.replicas")) {
        let generation = live.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or_default();
        metadata(&mut object).insert("generation".to_owned(), json!(generation + 1));
    }
    // CEL rules are evaluated on the scaled object before it is defaulted.
    validate_object(request, Some(&live), &object, Vec::new(), &[])?;
    if let Some(rules) = &request.target.version.schema {
        custom_resource::fill_defaults(rules, &mut object);
    }
    let object = convert_to_storage(&state.store, request, object)?;
    if object == ***stored {
        return Ok(Response::json(200, &build_scale(request, &live)));
    }
    let mut warnings = admission_warnings;
    warnings.extend(request.strategy().warnings_on_update(&live, &object));
    let written = if options.dry_run {
        std::sync::Arc::new(Stored::new(object))
    } else {
        commit(state, request.now, &request.attribution(&options, verb), request.key(&request.name), object)
    };
    let response = Response::json(200, &build_scale(request, &convert(&request.target, &written)));
    Ok(warnings.iter().fold(response, |response, warning| response.with_warning(warning)))
}

/// Runs policies and webhooks, and returns the replicas if a webhook changed them.
fn admit_scale(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
    live: &Value,
    object: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, ApiError> {
    let kind = Kind { group: "autoscaling".to_owned(), version: "v1".to_owned(), kind: "Scale".to_owned() };
    let write = SubresourceWrite { state, request, kind, options: request.options_object("UpdateOptions", options) };
    let (old, path) = (build_scale(request, live), path_of(request, "specReplicasPath", ".spec.replicas"));
    let mut scale = requested_scale(request, options, object, &path);
    let requested = scale.pointer("/spec/replicas").cloned();
    write.mutate(&mut scale, Some(&with_managers(old.clone(), scale_managers(live, &path))), warnings)?;
    let changed = scale.pointer("/spec/replicas").cloned().filter(|changed| Some(changed) != requested.as_ref());
    if let Some(desired) = &changed {
        set(object, &path, desired.clone());
    }
    write.validate(&build_scale(request, object), Some(&old), warnings)?;
    Ok(changed)
}

/// Returns the requested scale as mutating webhooks see it: that of a PUT has only the fields of its body.
fn requested_scale(request: &ResourceRequest<'_>, options: &Options, object: &Value, path: &str) -> Value {
    let mut scale = build_scale(request, object);
    let body = yaml::read_json(&request.http.body).unwrap_or_default();
    if request.http.method == http::Method::PUT {
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            if body["metadata"].get(field).is_none() {
                metadata(&mut scale).remove(field);
            }
        }
        scale["status"] = body.get("status").cloned().unwrap_or_else(|| json!({"replicas": 0}));
    }
    let mut managers = scale_managers(object, path);
    for manager in managers.iter_mut().filter(|manager| manager["manager"] == json!(options.manager)) {
        manager["time"] = json!(request.timestamp());
    }
    with_managers(scale, managers)
}

fn with_managers(mut scale: Value, managers: Vec<Value>) -> Value {
    if !managers.is_empty() {
        metadata(&mut scale).insert("managedFields".to_owned(), json!(managers));
    }
    scale
}

/// Returns the managers of the replicas of an object as managers of its scale.
fn scale_managers(object: &Value, path: &str) -> Vec<Value> {
    let pointer: String = path.split('.').filter(|part| !part.is_empty()).map(|part| format!("/f:{part}")).collect();
    let owners = array_at(object, "/metadata/managedFields").iter();
    let owners = owners.filter(|manager| manager["fieldsV1"].pointer(&pointer).is_some());
    let convert = |manager: &Value| {
        let mut manager = manager.clone();
        manager["apiVersion"] = json!(API_VERSION);
        manager["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
        manager
    };
    owners.map(convert).collect()
}

/// Checks that a custom resource has a value at `specReplicasPath`; without it there is no scale.
fn check_replicas(request: &ResourceRequest<'_>, live: &Value) -> Result<(), ApiError> {
    let path = path_of(request, "specReplicasPath", ".spec.replicas");
    if request.target.version.scale.is_none() || !at_path(live, &path).is_null() {
        return Ok(());
    }
    let message = format!("Internal error occurred: the spec replicas field {path:?} does not exist");
    let causes = json!({"causes": [{"message": format!("the spec replicas field {path:?} does not exist")}]});
    Err(ApiError::new(500, "InternalError", message, Some(causes)))
}

/// Returns a path of the scale in a CRD.
fn path_of(request: &ResourceRequest<'_>, field: &str, otherwise: &str) -> String {
    let declared = request.target.version.scale.as_ref().map(|scale| string_at(scale, &format!("/{field}")));
    declared.filter(|path| !path.is_empty()).unwrap_or(otherwise).to_owned()
}

fn build_scale(request: &ResourceRequest<'_>, object: &Value) -> Value {
    let or_zero = |value: Value| if value.is_null() { json!(0) } else { value };
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    let selected = match &request.target.version.scale {
        Some(_) => at_path(object, &path_of(request, "labelSelectorPath", "")),
        None => json!(selector(request.strategy().scale_selector(object).as_ref())),
    };
    let mut status =
        json!({"replicas": or_zero(at_path(object, &path_of(request, "statusReplicasPath", ".status.replicas")))});
    if selected.as_str().is_some_and(|selected| !selected.is_empty()) {
        status["selector"] = selected;
    }
    let desired = or_zero(at_path(object, &path_of(request, "specReplicasPath", ".spec.replicas")));
    let spec = if desired == 0 { json!({}) } else { json!({ "replicas": desired }) };
    json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": kept, "spec": spec, "status": status})
}

/// Sets a value at a plain path such as `.spec.replicas`.
fn set(object: &mut Value, path: &str, value: Value) {
    let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    let mut place = object;
    for part in parts {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

/// Returns the object after an update or a patch of its scale.
fn change_scale(
    request: &ResourceRequest<'_>,
    options: &Options,
    live: &Value,
    patching: bool,
) -> Result<Value, ApiError> {
    let before = build_scale(request, live);
    let body = yaml::read_json(&request.http.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    let scale = if patching { merge_patch(&before, &body) } else { body };
    let (version, kind) = (string_at(&scale, "/apiVersion"), string_at(&scale, "/kind"));
    if (version, kind) != (API_VERSION, "Scale") && !(version.is_empty() && kind.is_empty()) {
        let short = group_version(version).1;
        return Err(ApiError::bad_request(format!(
            "{kind} in version {short:?} cannot be handled as a Scale: converting ({short}.{kind}) to (autoscaling.Scale): unknown conversion"
        )));
    }
    let requested = resource_version(&scale);
    if !requested.is_empty() && requested != resource_version(live) {
        return Err(ApiError::modified(&request.target.resource, &request.name));
    }
    let mut object = live.clone();
    let desired = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(0));
    set(&mut object, &path_of(request, "specReplicasPath", ".spec.replicas"), desired);
    let path = path_of(request, "specReplicasPath", ".spec.replicas");
    if !is_owned(live, &path) {
        // A scale without managers gets none.
        return Ok(object);
    }
    if at_path(live, &path) == at_path(&object, &path) {
        separate_scale_managers(&mut object, &path);
        return Ok(object);
    }
    let (api_version, blank) = (request.target.api_version(), &request.target.version.blank);
    let writer = Writer { manager: &options.manager, api_version: &api_version, subresource: "scale", now: "", blank };
    let track = |object: &Value| {
        track_update(&request.target.version.shape, Some(live), object, &writer)
            .map_err(|error| ApiError::bad_request(error.to_string()))
    };
    if at_path(&object, &path) != 0 {
        return track(&object);
    }
    // A scale of 0 has no such field, so that no manager owns it.
    let mut without = object.clone();
    unset(&mut without, &path);
    let tracked = track(&without)?;
    object["metadata"] = tracked["metadata"].clone();
    Ok(object)
}

/// Moves the ownership of the replicas to the entry of the scale subresource, without a time.
fn separate_scale_managers(object: &mut Value, path: &str) {
    let parts: Vec<String> = path.split('.').filter(|part| !part.is_empty()).map(|part| format!("f:{part}")).collect();
    let pointer: String = parts.iter().map(|part| format!("/{part}")).collect();
    let Some(managers) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) else { return };
    let mut apart = Vec::new();
    let owns = |manager: &Value| manager["operation"] == "Update" && manager["fieldsV1"].pointer(&pointer).is_some();
    let only = parts.iter().rev().fold(json!({}), |below, part| json!({ part.as_str(): below }));
    let is_apart = |manager: &Value| manager.get("time").is_none() && manager["fieldsV1"] == only;
    for manager in managers.iter_mut().filter(|manager| owns(manager) && !is_apart(manager)) {
        let mut own = manager.clone();
        own["fieldsV1"] = only.clone();
        own.as_object_mut().map(|own| own.remove("time"));
        apart.push(own);
        if let Some(fields) = manager.get_mut("fieldsV1") {
            remove_from_field_set(fields, &parts);
        }
    }
    managers.retain(|manager| manager["fieldsV1"].as_object().is_none_or(|fields| !fields.is_empty()));
    managers.splice(0..0, apart);
}

/// Removes a field from a field set, with the parents that become empty.
fn remove_from_field_set(fields: &mut Value, parts: &[String]) {
    let (Some((first, rest)), Some(map)) = (parts.split_first(), fields.as_object_mut()) else { return };
    if let Some(below) = map.get_mut(first) {
        remove_from_field_set(below, rest);
        if rest.is_empty() || below.as_object().is_some_and(serde_json::Map::is_empty) {
            map.remove(first);
        }
    }
}

/// Removes the value at a simple path.
fn unset(object: &mut Value, path: &str) {
    let Some((above, last)) = path.rsplit_once('.') else { return };
    let holder = object.pointer_mut(&above.replace('.', "/")).and_then(Value::as_object_mut);
    holder.map(|holder| holder.remove(last));
}

/// True if a manager of an object owns a field.
fn is_owned(object: &Value, path: &str) -> bool {
    let pointer: String = path.split('.').filter(|part| !part.is_empty()).map(|part| format!("/f:{part}")).collect();
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    managers.into_iter().flatten().any(|manager| manager["fieldsV1"].pointer(&pointer).is_some())
}

/// Returns the object after a server-side apply of its scale.
fn apply_scale(request: &ResourceRequest<'_>, options: &Options, live: &Value) -> Result<Value, ApiError> {
    let declared = yaml::read_yaml(&request.http.body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    let (version, kind) = (string_at(&declared, "/apiVersion"), string_at(&declared, "/kind"));
    if (version, kind) != (API_VERSION, "Scale") {
        let (group, version) = group_version(version);
        return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    let mut wanted = json!({"apiVersion": request.target.api_version(), "kind": request.target.resource.kind,
        "metadata": {"name": request.name}});
    if let Some(desired) = declared.pointer("/spec/replicas") {
        set(&mut wanted, &path_of(request, "specReplicasPath", ".spec.replicas"), desired.clone());
    }
    let (api_version, blank) = (request.target.api_version(), &request.target.version.blank);
    let writer = Writer { manager: &options.manager, api_version: &api_version, subresource: "scale", now: "", blank };
    let merged = apply(&request.target.version.shape, Some(live), wanted, &writer, request.http.flag("force"));
    merged.map_err(|error| match error {
        ApplyError::Conflicts(conflicts) => ApiError::apply_conflicts(&conflicts),
        ApplyError::Managers(error) => ApiError::bad_request(error.to_string()),
    })
}
