//! Subresources other than `status`: scale, binding, eviction, finalize, logs, streams of pods, token.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::SubresourceWrite;
use super::connect::connect;
use super::delete::{check_preconditions, delete_live, read_eviction_options};
use super::pod_log::read_log;
use super::read::find_live;
use super::resource_request::{Options, ResourceRequest};
use super::review::{evaluate_review, issue_token};
use super::scale::handle_scale;
use super::update::check_resource_version;
use crate::admission::attributes::Kind;
use crate::admission::disruption_budget::{EvictionDecision, decide_eviction};
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{api_version, array_at, finalizers, is_deleting, metadata, string_at};
use crate::object::stored::Stored;
use crate::printing::render;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;
use crate::writes::commit::{commit, remove};

pub(crate) fn handle_subresource(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    match request.subresource {
        "scale" => handle_scale(state, request),
        "binding" => bind(state, request),
        "eviction" => evict(state, request),
        "finalize" => finalize(state, request),
        "log" => read_log(state, request),
        "attach" | "exec" | "portforward" => connect(state, request),
        "token" => {
            let options = request.options("CreateOptions")?;
            let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
            issue_token(state, request, body, &options.manager)
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// Runs policies and webhooks for an object that is posted to a subresource of a pod. Returns it, and the warnings.
fn admit_posted(
    state: &ServerState,
    request: &ResourceRequest<'_>,
    (group, kind): (&str, &str),
    options: &Options,
    mut body: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let kind = Kind { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() };
    body["apiVersion"] = json!(api_version(group, "v1"));
    body["kind"] = json!(kind.kind);
    metadata(&mut body).insert("namespace".to_owned(), json!(request.namespace));
    if kind.kind == "Binding" {
        let managers = json!([{
            "manager": options.manager, "operation": "Update", "apiVersion": "v1", "time": request.timestamp(),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:target": {}}, "subresource": request.subresource,
        }]);
        metadata(&mut body).insert("managedFields".to_owned(), managers);
    }
    let write = SubresourceWrite { state, request, kind, options: request.options_object("CreateOptions", options) };
    let mut warnings = Vec::new();
    let mutated = write.mutate(&mut body, None, &mut warnings);
    mutated
        .and_then(|()| write.validate(&body, None, &mut warnings))
        .map_err(|error| error.with_warnings(&warnings))?;
    Ok((body, warnings))
}

/// Returns the response to an object that was posted to a subresource of a pod.
fn created_response(warnings: &[String]) -> Response {
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    let response = Response::json(201, &done);
    warnings.iter().fold(response, |response, warning| response.with_warning(warning))
}

/// Binds a pod to a node.
fn bind(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("CreateOptions")?;
    let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
    let (body, warnings) = admit_posted(state, request, ("", "Binding"), &options, body)?;
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let mut pod = Value::clone(&live);
    let node = string_at(&body, "/target/name").to_owned();
    let known = string_at(&live, "/spec/nodeName");
    if !known.is_empty() {
        let reason = format!("pod {} is already assigned to node {known:?}", request.name);
        return Err(ApiError::conflict(&request.target.resource, &request.name, &reason));
    }
    pod["spec"]["nodeName"] = json!(node);
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": request.timestamp(),
    });
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            // A scheduler may have reported before that it found no node.
            conditions.retain(|known| known["type"] != condition["type"]);
            conditions.push(condition.clone());
        }
    }
    if !options.dry_run {
        commit(state, request.now, &request.attribution(&options, Verb::Create), request.key(&request.name), pod);
    }
    Ok(created_response(&warnings))
}

/// Evicts a pod unless a disruption budget forbids it.
fn evict(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("CreateOptions")?;
    let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
    if string_at(&body, "/metadata/name") != request.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let (body, warnings) = admit_posted(state, request, ("policy", "Eviction"), &options, body)?;
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let namespace = request.namespace.as_deref().unwrap_or_default();
    match decide_eviction(&state.store, namespace, &live) {
        EvictionDecision::Allowed => {}
        EvictionDecision::Forbidden(budget, counts) => {
            let reason = format!(
                "The disruption budget {budget} needs {} healthy pods and has {} currently",
                counts.desired, counts.healthy
            );
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let causes = json!({"causes": [{"reason": "DisruptionBudget", "message": reason}]});
            return Err(ApiError::new(429, "TooManyRequests", message, Some(causes)));
        }
        EvictionDecision::SeveralBudgets => {
            let message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::unknown(message));
        }
    }
    let delete_options = read_eviction_options(options, &body)?;
    check_preconditions(request, &request.name, &delete_options, &live)?;
    delete_live(state, request, &delete_options, &request.key(&request.name), &live);
    Ok(created_response(&warnings))
}

/// Replaces the finalizers of a namespace, and removes it if it was the last one.
fn finalize(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("UpdateOptions")?;
    let body = request.body_object(&options)?.object;
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    check_resource_version(request, &live, &body)?;
    let mut namespace = Value::clone(&live);
    let left = array_at(&body, "/spec/finalizers").to_vec();
    namespace["spec"] = if left.is_empty() { json!({}) } else { json!({ "finalizers": left }) };
    let attribution = request.attribution(&options, Verb::Update);
    let released = is_deleting(&namespace) && left.is_empty() && finalizers(&namespace).is_empty();
    let shown = if options.dry_run {
        Arc::new(Stored::new(namespace))
    } else if released {
        remove(state, request.now, &attribution, &request.key(&request.name));
        Arc::new(Stored::new(namespace))
    } else if namespace == ***live {
        live
    } else {
        commit(state, request.now, &attribution, request.key(&request.name), namespace)
    };
    Ok(Response::from_json(200, render::object(&request.target, request.format.representation, request.now, &shown)))
}

pub(crate) fn post_review(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("CreateOptions")?;
    let body = request.body_object(&options)?.object;
    evaluate_review(state, request, body, &options.manager)
}
