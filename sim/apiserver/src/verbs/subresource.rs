//! Parts of objects that are not the status: scale, eviction, tokens.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, Propagation};
use crate::encoding::yaml;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{finalizers, is_deleting, list, text};
use crate::object::stored::Stored;
use crate::printing::render;
use crate::server::ApiServer;
use crate::storage::journal::Verb;

impl ApiServer {
    pub(super) fn answer_subresource(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        match call.subresource {
            "scale" => self.answer_scale(call),
            "binding" => self.bind(call),
            "eviction" => self.evict(call),
            "finalize" => self.finalize(call),
            "token" => {
                let options = call.options("CreateOptions")?;
                let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
                self.issue_token(call, asked, &options.manager)
            }
            _ => Err(ApiError::no_such_resource()),
        }
    }

    /// Gives a pod its node.
    fn bind(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let options = call.options("CreateOptions")?;
        let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
        let live = self.live(call).cloned().ok_or_else(|| call.not_found())?;
        let mut pod = Value::clone(&live);
        let node = text(&asked, "/target/name").to_owned();
        let known = text(&live, "/spec/nodeName");
        if !known.is_empty() {
            let why = format!("pod {} is already assigned to node {known:?}", call.name);
            return Err(ApiError::conflict(&call.target.resource, &call.name, &why));
        }
        pod["spec"]["nodeName"] = json!(node);
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": call.stamp(),
        });
        if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
            let conditions = status.entry("conditions").or_insert_with(|| json!([]));
            conditions.as_array_mut().into_iter().for_each(|conditions| conditions.push(condition.clone()));
        }
        if !options.dry_run {
            self.commit(call.now, &call.authorship(&options, Verb::Create), call.key(&call.name), pod);
        }
        let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Response::json(201, &done))
    }

    /// Deletes a pod unless a budget forbids it.
    fn evict(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let options = call.options("CreateOptions")?;
        let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
        if text(&asked, "/metadata/name") != call.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let live = self.live(call).cloned().ok_or_else(|| call.not_found())?;
        let namespace = call.namespace.as_deref().unwrap_or_default();
        if let Some((budget, spare)) = self.blocking_budget(namespace, &live) {
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
            let authorship = call.authorship(&options, Verb::Delete);
            self.delete_key(call.now, &authorship, &call.key(&call.name), Propagation::Background);
        }
        let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Response::json(201, &done))
    }

    /// Says that the content of a namespace is gone.
    fn finalize(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let options = call.options("UpdateOptions")?;
        let asked = call.body_object(&options)?.object;
        let live = self.live(call).cloned().ok_or_else(|| call.not_found())?;
        let mut namespace = Value::clone(&live);
        let left = list(&asked, "/spec/finalizers").to_vec();
        namespace["spec"] = if left.is_empty() { json!({}) } else { json!({ "finalizers": left }) };
        let authorship = call.authorship(&options, Verb::Update);
        let released = is_deleting(&namespace) && left.is_empty() && finalizers(&namespace).is_empty();
        let shown = if released {
            self.expunge(call.now, &authorship, &call.key(&call.name));
            Arc::new(Stored::new(namespace))
        } else if namespace == ***live {
            live
        } else {
            self.commit(call.now, &authorship, call.key(&call.name), namespace)
        };
        Ok(Response::written(200, render::object(&call.target, call.wanted.form, call.now, &shown)))
    }

    pub(super) fn review(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let options = call.options("CreateOptions")?;
        let asked = call.body_object(&options)?.object;
        self.answer_review(call, asked, &options.manager)
    }
}
