//! Patches: server-side apply, merge patch, strategic merge patch and JSON patch.

use std::sync::Arc;

use serde_json::{Value, json};
use sindri_merge::{ApplyError, Writer, apply, merge_patch, strategic_patch};

use super::{Call, Options, Written, json_patch};
use crate::error::{ApiError, FieldError};
use crate::journal::Verb;
use crate::pointer::{metadata, text, uid};
use crate::render::convert;
use crate::server::ApiServer;
use crate::{validate, yaml};

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl ApiServer {
    pub(super) fn patch(&mut self, call: &Call<'_>) -> Result<Written, ApiError> {
        let media = call.request.headers.content_type.split(';').next().unwrap_or_default().trim();
        let custom = call.target.resource.custom;
        let options = call.options("PatchOptions")?;
        let refuse = |error: FieldError| Err(ApiError::invalid_kind("meta.k8s.io", "PatchOptions", "", &[error]));
        if media == APPLY {
            if call.request.parameter("fieldManager").is_none() {
                return refuse(FieldError::required("fieldManager", "is required for apply patch"));
            }
            return self.apply(call, &options);
        }
        if call.request.parameter("force").is_some() {
            return refuse(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        if !matches!(media, JSON | MERGE) && (media != STRATEGIC || custom) {
            let accepted: &[&str] = if custom { &[JSON, MERGE, APPLY] } else { &[JSON, MERGE, STRATEGIC, APPLY] };
            return Err(ApiError::unsupported_media(accepted));
        }
        let stored = self.live(call).cloned().ok_or_else(|| call.not_found())?;
        let live = convert(&call.target, &stored);
        let patch = yaml::read_json(&call.request.body)
            .map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
        let mut patched = match media {
            JSON => json_patch::apply(&live, &patch).map_err(|why| ApiError::new(422, "Invalid", why, None))?,
            MERGE => merge_patch(&live, &patch),
            _ => strategic_patch(&call.target.version.shape, &live, &patch),
        };
        if !patched.is_object() {
            return Err(ApiError::bad_request("the patched document is not an object"));
        }
        call.check_type(&patched)?;
        if patch.pointer("/metadata/resourceVersion").is_none() && media != JSON {
            // What the live object says about itself is no precondition of the client.
            metadata(&mut patched).remove("resourceVersion");
            let version = live["metadata"]["resourceVersion"].clone();
            metadata(&mut patched).insert("resourceVersion".to_owned(), version);
        }
        self.update(call, &options, &stored, patched, Verb::Patch)
    }

    fn apply(&mut self, call: &Call<'_>, options: &Options) -> Result<Written, ApiError> {
        let mut applied = yaml::read_yaml(&call.request.body)
            .map_err(|why| ApiError::bad_request(format!("error decoding YAML: {why}")))?;
        if !applied.is_object() {
            return Err(ApiError::bad_request("error decoding YAML: the body is not an object"));
        }
        if text(&applied, "/kind").is_empty() || text(&applied, "/apiVersion").is_empty() {
            let part = if text(&applied, "/kind").is_empty() { "Kind" } else { "apiVersion" };
            return Err(ApiError::bad_request(format!("Object '{part}' is missing in '{applied}'")));
        }
        call.check_type(&applied)?;
        if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        self.check_typed_patch(call, &applied)?;
        strip_the_other_part(call, &mut applied);
        metadata(&mut applied).insert("name".to_owned(), json!(call.name));
        let stored = self.live(call).cloned();
        let live = stored.as_ref().map(|stored| convert(&call.target, stored));
        if call.status && live.is_none() {
            return Err(call.not_found());
        }
        if live.is_none() && !uid(&applied).is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                uid(&applied)
            );
            return Err(ApiError::conflict(&call.target.resource, &call.name, &why));
        }
        let force = call.request.flag("force");
        let (api_version, now) = (call.target.api_version(), call.stamp());
        let subresource = call.subresource();
        let writer = Writer { manager: &options.manager, api_version: &api_version, subresource, now: &now };
        let merged =
            apply(&call.target.version.shape, live.as_deref(), &applied, &writer, force).map_err(
                |error| match error {
                    ApplyError::Conflicts(conflicts) => ApiError::apply_conflicts(&conflicts),
                    ApplyError::Managers(error) => ApiError::bad_request(error.to_string()),
                },
            )?;
        match &stored {
            None => self.create(call, options, merged, Verb::Apply),
            Some(stored) => self.replace_applied(call, options, stored, &applied, merged),
        }
    }

    fn replace_applied(
        &mut self,
        call: &Call<'_>,
        options: &Options,
        stored: &Arc<Value>,
        applied: &Value,
        mut merged: Value,
    ) -> Result<Written, ApiError> {
        // Preconditions are those of the declaration; the merged object carries the live object's own.
        for name in ["uid", "resourceVersion"] {
            let asked = applied["metadata"].get(name).filter(|asked| asked.is_string()).cloned();
            match asked {
                Some(asked) => drop(metadata(&mut merged).insert(name.to_owned(), asked)),
                None => drop(metadata(&mut merged).remove(name)),
            }
        }
        self.update(call, options, stored, merged, Verb::Apply)
    }

    /// A declaration of the wrong type is an error that the real server does not expect: a 500 without a reason.
    fn check_typed_patch(&self, call: &Call<'_>, applied: &Value) -> Result<(), ApiError> {
        let resource = &call.target.resource;
        if resource.custom {
            return Ok(());
        }
        validate::types::check_applied(&resource.kind, applied).map_err(|why| {
            let place = call
                .namespace
                .as_ref()
                .map_or_else(|| format!("/{}", call.name), |namespace| format!("{namespace}/{}", call.name));
            let (group, version, kind) = (&resource.group, &call.target.version.name, &resource.kind);
            ApiError::unknown(format!(
                "failed to create typed patch object ({place}; {group}/{version}, Kind={kind}): {why}"
            ))
        })
    }
}

/// Nobody comes to own what the endpoint ignores.
fn strip_the_other_part(call: &Call<'_>, applied: &mut Value) {
    let Some(map) = applied.as_object_mut() else {
        return;
    };
    if call.status {
        map.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
        }
    } else if call.target.version.status {
        map.remove("status");
    }
}
