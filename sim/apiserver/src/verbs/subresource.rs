//! Subresources other than `status`: scale, binding, eviction, finalize, logs, token.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{Propagation, delete_stored};
use super::pod_log::read_log;
use super::read::find_live;
use super::resource_request::ResourceRequest;
use super::review::{evaluate_review, issue_token};
use super::scale::handle_scale;
use crate::admission::disruption_budget::blocking_budget;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{array_at, finalizers, is_deleting, string_at};
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
        "token" => {
            let options = request.options("CreateOptions")?;
            let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
            issue_token(state, request, body, &options.manager)
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// Binds a pod to a node.
fn bind(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("CreateOptions")?;
    let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
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
        conditions.as_array_mut().into_iter().for_each(|conditions| conditions.push(condition.clone()));
    }
    if !options.dry_run {
        commit(state, request.now, &request.attribution(&options, Verb::Create), request.key(&request.name), pod);
    }
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Response::json(201, &done))
}

/// Evicts a pod unless a disruption budget forbids it.
fn evict(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("CreateOptions")?;
    let body = yaml::read_json(&request.http.body).map_err(ApiError::bad_request)?;
    if string_at(&body, "/metadata/name") != request.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if let Some((budget, spare)) = blocking_budget(&state.store, namespace, &live) {
        let reason = format!(
            "The disruption budget {budget} needs {} healthy pods and has {} currently",
            spare.desired, spare.healthy
        );
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let causes = json!({"causes": [{"reason": "DisruptionBudget", "message": reason}]});
        return Err(ApiError::new(429, "TooManyRequests", message, Some(causes)));
    }
    let dry = options.dry_run || array_at(&body, "/deleteOptions/dryRun").iter().any(|stage| stage == "All");
    if !dry {
        let attribution = request.attribution(&options, Verb::Delete);
        delete_stored(state, request.now, &attribution, &request.key(&request.name), Propagation::Background);
    }
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Response::json(201, &done))
}

/// Replaces the finalizers of a namespace, and removes it if it was the last one.
fn finalize(state: &mut ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = request.options("UpdateOptions")?;
    let body = request.body_object(&options)?.object;
    let live = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let mut namespace = Value::clone(&live);
    let left = array_at(&body, "/spec/finalizers").to_vec();
    namespace["spec"] = if left.is_empty() { json!({}) } else { json!({ "finalizers": left }) };
    let attribution = request.attribution(&options, Verb::Update);
    let released = is_deleting(&namespace) && left.is_empty() && finalizers(&namespace).is_empty();
    let shown = if released {
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
