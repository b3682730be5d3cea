//! Patches: server-side apply, merge patch, strategic merge patch and JSON patch.

use serde_json::{Value, json};
use sindri_merge::{ApplyError, Conflicts, Writer, apply, merge_patch, strategic_patch};

use super::create::create;
use super::read::find_live;
use super::resource_request::{APPLY, FieldValidation, Options, ResourceRequest, WriteResult};
use super::update::update;
use super::{last_applied, manager_versions};
use crate::auth::access::authorize;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, group_version, metadata, string_at, uid, value_at};
use crate::object::json_patch;
use crate::printing::convert::convert;
use crate::registry::types::{decode, typed_merge, types};
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Metadata fields of an applied configuration that are preconditions.
const PRECONDITIONS: [&str; 2] = ["uid", "resourceVersion"];

/// Returns the content type of a patch.
pub(super) fn media_of(request: &Request) -> &str {
    request.headers.content_type.split(';').next().unwrap_or_default().trim()
}

/// Checks that the content type of a patch is supported.
pub(super) fn check_media(media: &str, is_custom: bool) -> Result<(), ApiError> {
    if matches!(media, APPLY | JSON | MERGE) || media == STRATEGIC && !is_custom {
        return Ok(());
    }
    Err(if is_custom { ApiError::unsupported_media(&[JSON, MERGE, APPLY]) } else { ApiError::unsupported_patch() })
}

pub(crate) fn patch_from_request(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
) -> Result<WriteResult, ApiError> {
    let media = media_of(request.http);
    check_media(media, request.target.resource.custom)?;
    let options = request.options("PatchOptions")?;
    let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", "PatchOptions", "", &[error]));
    if media == APPLY {
        if request.http.parameter("fieldManager").is_none() {
            return refuse(FieldError::required("fieldManager", "is required for apply patch"));
        }
        return apply_from_request(state, request, &options);
    }
    if request.http.parameter("force").is_some() {
        return refuse(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    let stored = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let patch = read_patch(media, &request.http.body)?;
    let live = convert(&request.target, &stored);
    let patched = patch_object(request, media, &live, &patch)?;
    let formatted = || format_for_error(media, &patch, &patched);
    if string_at(&patched, "/kind") != request.target.resource.kind {
        let (kind, expected) = (string_at(&patched, "/kind"), &request.target.resource.kind);
        let version = group_version(string_at(&patched, "/apiVersion")).1;
        // It is decoded as the kind that it names, before that kind is compared with the path.
        let group = group_version(string_at(&patched, "/apiVersion")).0;
        let of = types().find_kind(group, version, kind);
        let read = of.map(|of| decode::decode(of, &mut patched.clone(), &mut Vec::new()));
        let error = match read {
            Some(Err(error)) => error,
            _ => format!("Unable to decode {kind:?} in version {version:?} as {expected:?}"),
        };
        return Err(ApiError::invalid_patch(&formatted(), &error));
    }
    let decoded = request.decode(patched.clone()).map_err(|error| {
        let error = if media == STRATEGIC { shorten_strategic_error(&error) } else { error };
        ApiError::invalid_patch(&formatted(), &error)
    });
    let (object, unknown) = decoded?;
    let unknown_field_errors: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    if options.validation == FieldValidation::Strict && !unknown_field_errors.is_empty() {
        let reason = format!("strict decoding error: {}", unknown_field_errors.join(", "));
        return Err(ApiError::invalid_patch(&formatted(), &reason));
    }
    let warnings = if options.validation == FieldValidation::Warn { unknown_field_errors } else { Vec::new() };
    let written =
        request.check_place(&object).and_then(|()| update(state, request, &options, &stored, object, Verb::Patch));
    let mut written = written.map_err(|error| error.with_warnings(&warnings))?;
    written.warnings.splice(0..0, warnings);
    Ok(written)
}

fn apply_from_request(
    state: &mut ServerState,
    request: &ResourceRequest<'_>,
    options: &Options,
) -> Result<WriteResult, ApiError> {
    let (mut applied, duplicate_warnings) = read_applied(&request.http.body)?;
    let (version, kind) = (string_at(&applied, "/apiVersion"), string_at(&applied, "/kind"));
    if version != request.target.api_version() || *kind != request.target.resource.kind {
        let (group, version) = group_version(version);
        return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    check_typed_patch(request, &applied)?;
    if value_at(&applied, "/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    request.check_place(&applied)?;
    strip_other_part(request, &mut applied);
    let stored = find_live(&state.store, request).cloned();
    let live = stored.as_ref().map(|stored| convert(&request.target, stored));
    if !request.subresource.is_empty() && live.is_none() && !request.creates_by_status() {
        return Err(request.not_found());
    }
    if live.is_none() && !uid(&applied).is_empty() {
        let reason = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            uid(&applied)
        );
        return Err(ApiError::conflict(&request.target.resource, &request.name, &reason));
    }
    if live.is_none() {
        // Only here it is known that the apply would create an object.
        authorize(&state.store, &request.user, &request.to_authorization_request("create"))?;
    }
    let force = request.http.flag("force");
    let (api_version, now) = (request.target.api_version(), request.timestamp());
    let subresource = request.subresource;
    let blank =
        live.as_deref().filter(|live| !is_managed(live)).map(|live| blank_for(request, live)).unwrap_or_default();
    let writer = Writer { manager: &options.manager, api_version: &api_version, subresource, now: &now, blank: &blank };
    let requested = PRECONDITIONS.map(|name| applied["metadata"].get(name).cloned());
    let merged = merge_applied(request, live.as_deref(), &applied, &writer, force)?;
    let mut merged = decode_merged(request, merged)?;
    last_applied::update_annotation(&options.manager, &applied, &mut merged);
    if let Some(live) = &live {
        merged = manager_versions::reconcile_managers(request, live, merged);
    }
    let mut written = match &stored {
        None => {
            if let (true, [_, Some(version)]) = (options.dry_run, requested) {
                // A dry run keeps the resourceVersion, because nothing is stored.
                metadata(&mut merged).insert("resourceVersion".to_owned(), version);
            }
            create(state, request, options, merged, Verb::Apply, Vec::new())
        }
        Some(stored) => {
            // The preconditions come from the applied configuration; the merged object has the values of the live object.
            let requested =
                PRECONDITIONS.into_iter().zip(requested).filter_map(|(name, requested)| Some((name, requested?)));
            for (name, requested) in requested.filter(|(_, requested)| requested.is_string()) {
                metadata(&mut merged).insert(name.to_owned(), requested);
            }
            update(state, request, options, stored, merged, Verb::Apply)
        }
    }?;
    written.warnings.splice(0..0, duplicate_warnings);
    Ok(written)
}

/// Merges an applied configuration into the live object. Conflicts with client-side apply do not count for kubectl.
fn merge_applied(
    request: &ResourceRequest<'_>,
    live: Option<&Value>,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    let shape = &request.target.version.shape;
    let mut merged = apply(shape, live, applied.clone(), writer, force);
    if let Err(ApplyError::Conflicts(Conflicts(conflicts))) = merged {
        let unexplained = last_applied::unexplained_conflicts(request, writer.manager, live, conflicts);
        merged = if unexplained.is_empty() {
            apply(shape, live, applied.clone(), writer, true)
        } else {
            Err(ApplyError::Conflicts(Conflicts(unexplained)))
        };
    }
    merged.map_err(|error| match error {
        ApplyError::Conflicts(conflicts) => ApiError::apply_conflicts(&conflicts),
        ApplyError::Managers(error) => ApiError::bad_request(error.to_string()),
    })
}

/// True if an object has managed fields.
fn is_managed(object: &Value) -> bool {
    let managers = array_at(object, "/metadata/managedFields");
    managers.iter().any(|manager| manager.as_object().is_some_and(|manager| !manager.is_empty()))
}

/// Returns the fields that no manager owns before the first apply: always present ones, and those of other endpoints.
fn blank_for(request: &ResourceRequest<'_>, live: &Value) -> Value {
    let mut blank = request.target.version.blank.clone();
    if !blank.is_object() {
        blank = json!({});
    }
    if let (true, Some(status)) = (request.target.version.status && !request.is_status(), live.get("status")) {
        blank["status"] = status.clone();
    }
    if let (true, Some(spec)) = (request.is_status(), live.get("spec")) {
        blank["spec"] = spec.clone();
        let labels = value_at(live, "/metadata/labels");
        if let (false, Some(labels)) = (request.strategy().status_changes_labels(), labels) {
            blank["metadata"] = json!({ "labels": labels });
        }
    }
    blank
}

/// Parses the body of a patch that is not an apply.
fn read_patch(media: &str, body: &[u8]) -> Result<Value, ApiError> {
    let refuse = |reason: String| ApiError::bad_request(format!("error decoding patch: {reason}"));
    let patch = yaml::read_json(body).map_err(refuse)?;
    let (fits, go) = if media == JSON {
        (patch.is_array(), "[]handlers.jsonPatchOp")
    } else {
        (patch.is_object(), "map[string]interface {}")
    };
    if fits || patch.is_null() {
        return Ok(patch);
    }
    Err(refuse(format!("json: cannot unmarshal {} into Go value of type {go}", decode::json_type_name(&patch))))
}

/// Applies a patch that is not an apply to the live object.
fn patch_object(request: &ResourceRequest<'_>, media: &str, live: &Value, patch: &Value) -> Result<Value, ApiError> {
    let mut patched = match media {
        JSON => json_patch::apply(live, patch).ok().filter(Value::is_object).ok_or_else(|| {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message, Some(json!({})))
        })?,
        MERGE => merge_patch(live, patch),
        _ => strategic_patch(&request.target.version.shape, live, patch).map_err(ApiError::unknown)?,
    };
    if !patched.is_object() {
        return Err(ApiError::bad_request("the patched document is not an object"));
    }
    if media != JSON {
        // Another version of the same kind is accepted and ignored.
        patched["apiVersion"] = json!(request.target.api_version());
    }
    if media == STRATEGIC && patched.get("kind").is_none() {
        // It is decoded in the version of the live object.
        patched["kind"] = json!(request.target.resource.kind);
    }
    Ok(patched)
}

/// Returns a patch for an error: the whole result, or a strategic patch as Go prints it.
fn format_for_error(media: &str, patch: &Value, patched: &Value) -> String {
    if media == STRATEGIC { typed_merge::format_go(patch) } else { in_order_of_go(patched) }
}

/// Metadata fields in the order in which Go serializes them.
const METADATA_ORDER: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Serializes a patched object as in errors of the real server, with metadata in Go's order.
fn in_order_of_go(object: &Value) -> String {
    let sorted: std::collections::BTreeMap<&String, &Value> = object.as_object().into_iter().flatten().collect();
    let parts: Vec<String> = sorted
        .into_iter()
        .map(|(name, value)| {
            let text = match (name.as_str(), value) {
                ("metadata", Value::Object(fields)) => {
                    let field = |name: &&str| match (*name, fields.get(*name)?) {
                        ("managedFields", Value::Array(managers)) => {
                            let managers: Vec<String> = managers.iter().map(in_order_of_managers).collect();
                            Some(format!("{name:?}:[{}]", managers.join(",")))
                        }
                        (_, value) => Some(format!("{name:?}:{value}")),
                    };
                    format!("{{{}}}", METADATA_ORDER.iter().filter_map(field).collect::<Vec<_>>().join(","))
                }
                (_, value) => value.to_string(),
            };
            format!("{name:?}:{text}")
        })
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// Serializes an entry of managedFields in Go's order.
fn in_order_of_managers(manager: &Value) -> String {
    let order = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    let fields = order.iter().filter_map(|name| Some(format!("{name:?}:{}", manager.get(name)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Shortens an error for a strategic patch, which the real server converts field by field.
fn shorten_strategic_error(reason: &str) -> String {
    reason.rsplit_once("of type ").map_or_else(|| reason.to_owned(), |(_, of)| format!("unrecognized type: {of}"))
}

/// Parses an applied configuration, and returns its repeated keys.
fn read_applied(body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let refuse = |reason: String| ApiError::bad_request(format!("error decoding YAML: {reason}"));
    let (applied, duplicate_warnings) = yaml::read_yaml_with_duplicates(body)
        .map_err(|error| refuse(format!("error converting YAML to JSON: {error}")))?;
    match applied {
        Value::Null => Ok((json!({}), duplicate_warnings)),
        Value::Object(_) => Ok((applied, duplicate_warnings)),
        other => {
            let found = decode::json_type_name(&other);
            let go = "map[string]interface {}";
            let reason = format!("json: cannot unmarshal {found} into Go value of type {go}");
            Err(refuse(format!("error unmarshaling JSON: while decoding JSON: {reason}")))
        }
    }
}

/// Checks the types of an applied configuration; an error is a 500 without a reason in the real server.
fn check_typed_patch(request: &ResourceRequest<'_>, applied: &Value) -> Result<(), ApiError> {
    let Some(typed) = request.target.version.typed.or(request.target.version.declared.as_ref()) else { return Ok(()) };
    let errors = typed_merge::find_errors(typed, applied);
    if errors.is_empty() {
        return Ok(());
    }
    let errors = typed_merge::format_errors(&errors);
    Err(ApiError::unknown(format!(
        "failed to create typed patch object ({}): {errors}",
        describe_object(request, applied)
    )))
}

/// Returns the name of an object as in errors of the typed merge.
fn describe_object(request: &ResourceRequest<'_>, object: &Value) -> String {
    let (name, namespace) = (string_at(object, "/metadata/name"), string_at(object, "/metadata/namespace"));
    let (group, version, kind) =
        (&request.target.resource.group, &request.target.version.name, &request.target.resource.kind);
    format!("{namespace}/{name}; {group}/{version}, Kind={kind}")
}

/// Decodes the merged object by its type.
fn decode_merged(request: &ResourceRequest<'_>, merged: Value) -> Result<Value, ApiError> {
    let (decoded, _) = request.decode(merged).map_err(|error| {
        let (group, version, kind) =
            (&request.target.resource.group, &request.target.version.name, &request.target.resource.kind);
        let described = format!("/{}; {group}/{version}, Kind={kind}", request.name);
        ApiError::unknown(format!(
            "failed to convert new object ({described}) to proper version: unable to convert unstructured object to {group}/{version}, Kind={kind}: {error}"
        ))
    })?;
    Ok(decoded)
}

/// Removes the fields that the endpoint ignores, so that the manager does not own them.
fn strip_other_part(request: &ResourceRequest<'_>, applied: &mut Value) {
    let Some(map) = applied.as_object_mut() else {
        return;
    };
    if request.is_status() {
        map.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
        }
    } else if request.target.version.status {
        map.remove("status");
    }
}
