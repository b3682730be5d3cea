//! Subresources other than `status`: scale, binding, eviction, finalize, token.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::Call;
use super::delete::{Propagation, delete_stored};
use super::read::find_live;
use super::review::{evaluate_review, issue_token};
use super::scale::handle_scale;
use crate::admission::disruption_budget::blocking_budget;
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{finalizers, is_deleting, list, text};
use crate::object::stored::Stored;
use crate::printing::render;
use crate::state::server_state::ServerState;
use crate::storage::journal::Verb;
use crate::writes::commit::{commit, remove};

pub(crate) fn handle_subresource(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    match call.subresource {
        "scale" => handle_scale(state, call),
        "binding" => bind(state, call),
        "eviction" => evict(state, call),
        "finalize" => finalize(state, call),
        "token" => {
            let options = call.options("CreateOptions")?;
            let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
            issue_token(state, call, asked, &options.manager)
        }
        _ => Err(ApiError::no_such_resource()),
    }
}

/// Binds a pod to a node.
fn bind(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let options = call.options("CreateOptions")?;
    let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
    let live = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let mut pod = Value::clone(&live);
    let node = text(&asked, "/target/name").to_owned();
    let known = text(&live, "/spec/nodeName");
    if !known.is_empty() {
        let why = format!("pod {} is already assigned to node {known:?}", call.name);
        return Err(ApiError::conflict(&call.target.resource, &call.name, &why));
    }
    pod["spec"]["nodeName"] = json!(node);
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": call.timestamp(),
    });
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        conditions.as_array_mut().into_iter().for_each(|conditions| conditions.push(condition.clone()));
    }
    if !options.dry_run {
        commit(state, call.now, &call.attribution(&options, Verb::Create), call.key(&call.name), pod);
    }
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Response::json(201, &done))
}

/// Evicts a pod unless a disruption budget forbids it.
fn evict(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let options = call.options("CreateOptions")?;
    let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
    if text(&asked, "/metadata/name") != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let live = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let namespace = call.namespace.as_deref().unwrap_or_default();
    if let Some((budget, spare)) = blocking_budget(&state.store, namespace, &live) {
        let why = format!(
            "The disruption budget {budget} needs {} healthy pods and has {} currently",
            spare.desired, spare.healthy
        );
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let causes = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
        return Err(ApiError::new(429, "TooManyRequests", message, Some(causes)));
    }
    let dry = options.dry_run || list(&asked, "/deleteOptions/dryRun").iter().any(|stage| stage == "All");
    if !dry {
        let attribution = call.attribution(&options, Verb::Delete);
        delete_stored(state, call.now, &attribution, &call.key(&call.name), Propagation::Background);
    }
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Response::json(201, &done))
}

/// Replaces the finalizers of a namespace, and removes it if it was the last one.
fn finalize(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let options = call.options("UpdateOptions")?;
    let asked = call.body_object(&options)?.object;
    let live = find_live(&state.store, call).cloned().ok_or_else(|| call.not_found())?;
    let mut namespace = Value::clone(&live);
    let left = list(&asked, "/spec/finalizers").to_vec();
    namespace["spec"] = if left.is_empty() { json!({}) } else { json!({ "finalizers": left }) };
    let attribution = call.attribution(&options, Verb::Update);
    let released = is_deleting(&namespace) && left.is_empty() && finalizers(&namespace).is_empty();
    let shown = if released {
        remove(state, call.now, &attribution, &call.key(&call.name));
        Arc::new(Stored::new(namespace))
    } else if namespace == ***live {
        live
    } else {
        commit(state, call.now, &attribution, call.key(&call.name), namespace)
    };
    Ok(Response::from_json(200, render::object(&call.target, call.format.representation, call.now, &shown)))
}

pub(crate) fn post_review(state: &mut ServerState, call: &Call<'_>) -> Result<Response, ApiError> {
    let options = call.options("CreateOptions")?;
    let asked = call.body_object(&options)?.object;
    evaluate_review(state, call, asked, &options.manager)
}
