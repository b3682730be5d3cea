//! Patches: server-side apply, merge patch, strategic merge patch and JSON patch.

use serde_json::{Value, json};
use sindri_merge::{ApplyError, Writer, apply, merge_patch, strategic_patch};

use super::call::{APPLY, Call, FieldValidation, Options, WriteResult};
use super::create::create;
use super::read::find_live;
use super::update::update;
use super::{json_patch, manager_versions};
use crate::auth::access::authorize;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::object::field_error::FieldError;
use crate::object::fields::{at, group_version, list, metadata, text, uid};
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

pub(crate) fn patch_from_request(state: &mut ServerState, call: &Call<'_>) -> Result<WriteResult, ApiError> {
    let media = media_of(call.request);
    check_media(media, call.target.resource.custom)?;
    let options = call.options("PatchOptions")?;
    let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", "PatchOptions", "", &[error]));
    if media == APPLY {
        if call.request.parameter("fieldManager").is_none() {
            return refuse(FieldError::required("fieldManager", "is required for apply patch"));
        }
        return apply_from_request(state, call, &options);
    }
    if call.request.parameter("force").is_some() {
        return refuse(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    let stored = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let patch = read_patch(media, &call.request.body)?;
    let live = convert(&call.target, &stored);
    let patched = patched(call, media, &live, &patch)?;
    let shown = || shown(media, &patch, &patched);
    if text(&patched, "/kind") != call.target.resource.kind {
        let (kind, expected) = (text(&patched, "/kind"), &call.target.resource.kind);
        let version = group_version(text(&patched, "/apiVersion")).1;
        // It is decoded as the kind that it names, before that kind is compared with the path.
        let group = group_version(text(&patched, "/apiVersion")).0;
        let of = types().find_kind(group, version, kind);
        let read = of.map(|of| decode::decode(of, &mut patched.clone(), &mut Vec::new()));
        let why = match read {
            Some(Err(why)) => why,
            _ => format!("Unable to decode {kind:?} in version {version:?} as {expected:?}"),
        };
        return Err(ApiError::invalid_patch(&shown(), &why));
    }
    let decoded = call.decode(patched.clone()).map_err(|why| {
        let why = if media == STRATEGIC { unrecognized(&why) } else { why };
        ApiError::invalid_patch(&shown(), &why)
    });
    let (object, unknown) = decoded?;
    let complaints: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    if options.validation == FieldValidation::Strict && !complaints.is_empty() {
        let why = format!("strict decoding error: {}", complaints.join(", "));
        return Err(ApiError::invalid_patch(&shown(), &why));
    }
    let warnings = if options.validation == FieldValidation::Warn { complaints } else { Vec::new() };
    let written = call.check_place(&object).and_then(|()| update(state, call, &options, &stored, object, Verb::Patch));
    let mut written = written.map_err(|error| error.with_warnings(&warnings))?;
    written.warnings.splice(0..0, warnings);
    Ok(written)
}

fn apply_from_request(state: &mut ServerState, call: &Call<'_>, options: &Options) -> Result<WriteResult, ApiError> {
    let (mut applied, twice) = read_applied(&call.request.body)?;
    let (version, kind) = (text(&applied, "/apiVersion"), text(&applied, "/kind"));
    if version != call.target.api_version() || *kind != call.target.resource.kind {
        let (group, version) = group_version(version);
        return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    check_typed_patch(call, &applied)?;
    if at(&applied, "/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    call.check_place(&applied)?;
    strip_other_part(call, &mut applied);
    let stored = find_live(&state.store, call).cloned();
    let live = stored.as_ref().map(|stored| convert(&call.target, stored));
    if !call.subresource.is_empty() && live.is_none() && !call.creates_by_status() {
        return Err(call.not_found());
    }
    if live.is_none() && !uid(&applied).is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            uid(&applied)
        );
        return Err(ApiError::conflict(&call.target.resource, &call.name, &why));
    }
    if live.is_none() {
        // Only here it is known that the apply would create an object.
        authorize(&state.store, &call.user, &call.to_authorization_request("create"))?;
    }
    let force = call.request.flag("force");
    let (api_version, now) = (call.target.api_version(), call.timestamp());
    let subresource = call.subresource;
    let blank = live.as_deref().filter(|live| !is_managed(live)).map(|live| blank_for(call, live)).unwrap_or_default();
    let writer = Writer { manager: &options.manager, api_version: &api_version, subresource, now: &now, blank: &blank };
    let asked = PRECONDITIONS.map(|name| applied["metadata"].get(name).cloned());
    let merged = apply(&call.target.version.shape, live.as_deref(), applied, &writer, force);
    let merged = merged.map_err(|error| match error {
        ApplyError::Conflicts(conflicts) => ApiError::apply_conflicts(&conflicts),
        ApplyError::Managers(error) => ApiError::bad_request(error.to_string()),
    })?;
    let mut merged = decode_merged(call, merged)?;
    if let Some(live) = &live {
        merged = manager_versions::reconcile_managers(call, live, merged);
    }
    let mut written = match &stored {
        None => {
            if let (true, [_, Some(version)]) = (options.dry_run, asked) {
                // A dry run keeps the resourceVersion, because nothing is stored.
                metadata(&mut merged).insert("resourceVersion".to_owned(), version);
            }
            create(state, call, options, merged, Verb::Apply, Vec::new())
        }
        Some(stored) => {
            // The preconditions come from the applied configuration; the merged object has the values of the live object.
            let asked = PRECONDITIONS.into_iter().zip(asked).filter_map(|(name, asked)| Some((name, asked?)));
            for (name, asked) in asked.filter(|(_, asked)| asked.is_string()) {
                metadata(&mut merged).insert(name.to_owned(), asked);
            }
            update(state, call, options, stored, merged, Verb::Apply)
        }
    }?;
    written.warnings.splice(0..0, twice);
    Ok(written)
}

/// True if an object has managed fields.
fn is_managed(object: &Value) -> bool {
    let managers = list(object, "/metadata/managedFields");
    managers.iter().any(|manager| manager.as_object().is_some_and(|manager| !manager.is_empty()))
}

/// Returns the fields that no manager owns before the first apply: always present ones, and those of other endpoints.
fn blank_for(call: &Call<'_>, live: &Value) -> Value {
    let mut blank = call.target.version.blank.clone();
    if !blank.is_object() {
        blank = json!({});
    }
    if let (true, Some(status)) = (call.target.version.status && !call.is_status(), live.get("status")) {
        blank["status"] = status.clone();
    }
    if let (true, Some(spec)) = (call.is_status(), live.get("spec")) {
        blank["spec"] = spec.clone();
        let labels = at(live, "/metadata/labels");
        if let (false, Some(labels)) = (call.strategy().status_changes_labels(), labels) {
            blank["metadata"] = json!({ "labels": labels });
        }
    }
    blank
}

/// Parses the body of a patch that is not an apply.
fn read_patch(media: &str, body: &[u8]) -> Result<Value, ApiError> {
    let refuse = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
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

fn patched(call: &Call<'_>, media: &str, live: &Value, patch: &Value) -> Result<Value, ApiError> {
    let mut patched = match media {
        JSON => json_patch::apply(live, patch).ok().filter(Value::is_object).ok_or_else(|| {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message, Some(json!({})))
        })?,
        MERGE => merge_patch(live, patch),
        _ => strategic_patch(&call.target.version.shape, live, patch).map_err(ApiError::unknown)?,
    };
    if !patched.is_object() {
        return Err(ApiError::bad_request("the patched document is not an object"));
    }
    if media != JSON {
        // Another version of the same kind is accepted and ignored.
        patched["apiVersion"] = json!(call.target.api_version());
    }
    if media == STRATEGIC && patched.get("kind").is_none() {
        // It is decoded in the version of the live object.
        patched["kind"] = json!(call.target.resource.kind);
    }
    Ok(patched)
}

/// Returns a patch for an error: the whole result, or a strategic patch as Go prints it.
fn shown(media: &str, patch: &Value, patched: &Value) -> String {
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
fn unrecognized(why: &str) -> String {
    why.rsplit_once("of type ").map_or_else(|| why.to_owned(), |(_, of)| format!("unrecognized type: {of}"))
}

/// Parses an applied configuration, and returns its repeated keys.
fn read_applied(body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let refuse = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let (applied, twice) =
        yaml::read_yaml_with_duplicates(body).map_err(|why| refuse(format!("error converting YAML to JSON: {why}")))?;
    match applied {
        Value::Null => Ok((json!({}), twice)),
        Value::Object(_) => Ok((applied, twice)),
        other => {
            let found = decode::json_type_name(&other);
            let go = "map[string]interface {}";
            let why = format!("json: cannot unmarshal {found} into Go value of type {go}");
            Err(refuse(format!("error unmarshaling JSON: while decoding JSON: {why}")))
        }
    }
}

/// Checks the types of an applied configuration; an error is a 500 without a reason in the real server.
fn check_typed_patch(call: &Call<'_>, applied: &Value) -> Result<(), ApiError> {
    let Some(typed) = call.target.version.typed.or(call.target.version.declared.as_ref()) else { return Ok(()) };
    let mistakes = typed_merge::find_errors(typed, applied);
    if mistakes.is_empty() {
        return Ok(());
    }
    let told = typed_merge::format_errors(&mistakes);
    Err(ApiError::unknown(format!("failed to create typed patch object ({}): {told}", described(call, applied))))
}

/// Returns the name of an object as in errors of the typed merge.
fn described(call: &Call<'_>, object: &Value) -> String {
    let (name, namespace) = (text(object, "/metadata/name"), text(object, "/metadata/namespace"));
    let (group, version, kind) = (&call.target.resource.group, &call.target.version.name, &call.target.resource.kind);
    format!("{namespace}/{name}; {group}/{version}, Kind={kind}")
}

/// Decodes the merged object by its type.
fn decode_merged(call: &Call<'_>, merged: Value) -> Result<Value, ApiError> {
    let (decoded, _) = call.decode(merged).map_err(|why| {
        let (group, version, kind) =
            (&call.target.resource.group, &call.target.version.name, &call.target.resource.kind);
        let described = format!("/{}; {group}/{version}, Kind={kind}", call.name);
        ApiError::unknown(format!(
            "failed to convert new object ({described}) to proper version: unable to convert unstructured object to {group}/{version}, Kind={kind}: {why}"
        ))
    })?;
    Ok(decoded)
}

/// Removes the fields that the endpoint ignores, so that the manager does not own them.
fn strip_other_part(call: &Call<'_>, applied: &mut Value) {
    let Some(map) = applied.as_object_mut() else {
        return;
    };
    if call.is_status() {
        map.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
        }
    } else if call.target.version.status {
        map.remove("status");
    }
}
