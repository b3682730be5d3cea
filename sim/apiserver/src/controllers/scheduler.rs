//! Nodes, and the scheduler: a pod gets the eligible node with the fewest pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::node::PODS_MAX;
use super::owned_objects::has_ended;
use super::writes::{condition, record_event, replace_status};
use crate::object::fields::{array_at, format_timestamp, is_deleting, name, string_at, value_at};
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::storage::store::Store;
use crate::writes::commit::commit;

const SCHEDULER: &str = "default-scheduler";

/// Binds a pod to a node, or records why no node is eligible.
pub(crate) fn schedule_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(pod) = state.store.find_key(key).cloned() else { return };
    let is_unscheduled = string_at(&pod, "/spec/nodeName").is_empty() && !is_deleting(&pod) && !has_ended(&pod);
    let is_gated = !array_at(&pod, "/spec/schedulingGates").is_empty();
    if !is_unscheduled || is_gated || string_at(&pod, "/spec/schedulerName") != SCHEDULER {
        return;
    }
    let mut bound = Value::clone(&pod);
    let attribution = Attribution::controller(SCHEDULER, Verb::Update);
    match choose_node(&state.store, &pod) {
        Ok(node) => {
            bound["spec"]["nodeName"] = json!(node);
            set_scheduled(&mut bound, &format_timestamp(now), None);
            commit(state, now, &attribution, key.clone(), bound);
            let pod_name = format!("{}/{}", string_at(&pod, "/metadata/namespace"), name(&pod));
            let message = format!("Successfully assigned {pod_name} to {node}");
            record_event(state, now, SCHEDULER, &pod, ("Normal", "Scheduled"), &message);
        }
        Err(reason) => {
            set_scheduled(&mut bound, &format_timestamp(now), Some(&reason));
            if condition(&pod, "PodScheduled").is_none_or(|known| known["message"] != json!(reason)) {
                replace_status(state, now, (SCHEDULER, "kube-scheduler"), key, &bound);
                record_event(state, now, SCHEDULER, &pod, ("Warning", "FailedScheduling"), &reason);
            }
        }
    }
}

fn choose_node(store: &Store, pod: &Value) -> Result<String, String> {
    let nodes: Vec<&Value> = list_nodes(store).collect();
    let mut reasons: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut best: Option<(usize, &str)> = None;
    for node in &nodes {
        let load = count_pods_on(store, name(node));
        match ineligibility(pod, node).or_else(|| (load >= PODS_MAX).then(|| "Too many pods".to_owned())) {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None if best.is_none_or(|(least, _)| load < least) => best = Some((load, name(node))),
            None => {}
        }
    }
    if let Some((_, node)) = best {
        return Ok(node.to_owned());
    }
    let counted: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    Err(if nodes.is_empty() {
        "no nodes available to schedule pods".to_owned()
    } else {
        format!("0/{} nodes are available: {}.", nodes.len(), counted.join(", "))
    })
}

pub(crate) fn list_nodes(store: &Store) -> impl Iterator<Item = &Value> {
    let collection = store.collection("", "nodes").into_iter().flat_map(|collection| collection.values());
    collection.map(|entry| &***entry.object)
}

fn count_pods_on(store: &Store, node: &str) -> usize {
    let collection = store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    collection.filter(|entry| string_at(&entry.object, "/spec/nodeName") == node && !has_ended(&entry.object)).count()
}

/// Sets the `PodScheduled` condition.
fn set_scheduled(pod: &mut Value, timestamp: &str, failure: Option<&str>) {
    let others = array_at(pod, "/status/conditions").iter().filter(|known| known["type"] != "PodScheduled");
    let mut conditions: Vec<Value> = others.cloned().collect();
    let mut scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": timestamp,
        "observedGeneration": pod["metadata"]["generation"],
    });
    if let Some(message) = failure {
        scheduled["status"] = json!("False");
        scheduled["reason"] = json!("Unschedulable");
        scheduled["message"] = json!(message);
    }
    conditions.push(scheduled);
    pod["status"]["conditions"] = json!(conditions);
}

/// Returns the reason for which a pod cannot run on a node, in the words of the real scheduler.
pub(super) fn ineligibility(pod: &Value, node: &Value) -> Option<String> {
    if value_at(node, "/spec/unschedulable") == Some(&json!(true)) {
        return Some("node(s) were unschedulable".to_owned());
    }
    if let Some(taint) = untolerated_taint(pod, node, &["NoSchedule", "NoExecute"]) {
        let (key, value) = (string_at(taint, "/key"), string_at(taint, "/value"));
        return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
    }
    (!matches_node_affinity(pod, node)).then(|| "node(s) didn't match Pod's node affinity/selector".to_owned())
}

/// Returns a taint with one of these effects that a pod does not tolerate.
pub(super) fn untolerated_taint<'a>(pod: &Value, node: &'a Value, effects: &[&str]) -> Option<&'a Value> {
    let tolerates = |taint: &Value| {
        array_at(pod, "/spec/tolerations").iter().any(|toleration| {
            let (key, effect) = (string_at(toleration, "/key"), string_at(toleration, "/effect"));
            let exists = string_at(toleration, "/operator") == "Exists";
            (effect.is_empty() || effect == string_at(taint, "/effect"))
                && (key == string_at(taint, "/key") || key.is_empty() && exists)
                && (exists || string_at(toleration, "/value") == string_at(taint, "/value"))
        })
    };
    let mut taints = array_at(node, "/spec/taints").iter();
    taints.find(|taint| effects.contains(&string_at(taint, "/effect")) && !tolerates(taint))
}

/// True if a node matches a pod's node selector and required node affinity.
pub(super) fn matches_node_affinity(pod: &Value, node: &Value) -> bool {
    let labels = value_at(node, "/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let selector = value_at(pod, "/spec/nodeSelector").and_then(Value::as_object);
    let is_selected = selector.into_iter().flatten().all(|(key, value)| label(key) == value.as_str());
    let terms =
        array_at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let term_matches = |term: &Value| {
        let expressions = array_at(term, "/matchExpressions");
        let fields = array_at(term, "/matchFields");
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(|expression| meets_requirement(expression, label(string_at(expression, "/key"))))
            && fields.iter().all(|field| meets_requirement(field, Some(name(node))))
    };
    is_selected && (terms.is_empty() || terms.iter().any(term_matches))
}

fn meets_requirement(requirement: &Value, actual: Option<&str>) -> bool {
    let values = array_at(requirement, "/values");
    let is_listed = actual.is_some_and(|actual| values.iter().any(|value| value.as_str() == Some(actual)));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().and_then(Value::as_str));
    match string_at(requirement, "/operator") {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => number(actual).zip(bound).is_some_and(|(actual, bound)| actual > bound),
        "Lt" => number(actual).zip(bound).is_some_and(|(actual, bound)| actual < bound),
        _ => false,
    }
}
