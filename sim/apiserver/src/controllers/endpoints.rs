//! Endpoints and EndpointSlices: the addresses of the pods of a service, and their readiness.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::owned_objects::{has_ended, is_ready};
use super::writes::{create_object, delete_object, replace_object};
use crate::object::fields::{array_at, format_timestamp, is_deleting, metadata, name, string_at, uid, value_at};
use crate::object::key::{StoredKey, builtin_key};
use crate::object::label_selectors::is_selected_by;
use crate::object::owners::controller_reference;
use crate::state::server_state::ServerState;
use crate::storage::store::Store;

const ENDPOINTS: &str = "endpoint-controller";
const SLICES: &str = "endpointslice-controller";
const MANAGED_BY: &str = "endpointslice-controller.k8s.io";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Maximum number of endpoints in one slice.
const SLICE_ENDPOINTS_MAX: usize = 100;

/// A pod that a service selects.
struct ServicePod {
    pod: Value,
    ready: bool,
}

/// Returns the pods of a service that have an address, sorted by name.
fn service_pods(store: &Store, service: &Value) -> Vec<ServicePod> {
    let namespace = string_at(service, "/metadata/namespace");
    let publishes_unready = value_at(service, "/spec/publishNotReadyAddresses") == Some(&json!(true));
    let pods = store.in_namespace("", "pods", namespace).map(|entry| &***entry.object);
    let selected = pods
        .filter(|pod| is_selected_by(service, pod) && !string_at(pod, "/status/podIP").is_empty() && !has_ended(pod));
    selected
        .map(|pod| ServicePod { pod: pod.clone(), ready: publishes_unready || is_ready(pod) && !is_deleting(pod) })
        .collect()
}

pub(crate) fn reconcile_endpoints(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let endpoints_key = builtin_key("", "Endpoints", "endpoints", key.namespace.as_deref(), &key.name);
    let Some(service) = state.store.find_key(key).cloned() else {
        let is_managed = state.store.find_key(&endpoints_key).is_some_and(|endpoints| {
            endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"
        });
        if is_managed {
            delete_object(state, now, ENDPOINTS, &endpoints_key);
        }
        return;
    };
    if !has_selector(&service) {
        return;
    }
    let subsets = build_subsets(&service, &service_pods(&state.store, &service));
    let mut labels = endpoint_labels(&service);
    labels["endpoints.kubernetes.io/managed-by"] = json!(ENDPOINTS);
    match state.store.find_key(&endpoints_key).cloned() {
        None => {
            let object = json!({
                "metadata": {
                    "name": key.name, "labels": labels, "annotations": {TRIGGERED: format_timestamp(now)},
                },
                "subsets": subsets,
            });
            let namespace = key.namespace.as_deref().unwrap_or_default();
            // A namespace that is being deleted rejects new objects.
            let _rejected = create_object(state, now, ENDPOINTS, ("", "endpoints"), namespace, object);
        }
        Some(known)
            if known.get("subsets").unwrap_or(&json!([])) != &subsets || known["metadata"]["labels"] != labels =>
        {
            let mut changed = Value::clone(&known);
            changed["subsets"] = subsets;
            metadata(&mut changed).insert("labels".to_owned(), labels);
            set_trigger_time(&mut changed, now);
            replace_object(state, now, ENDPOINTS, &endpoints_key, changed);
        }
        Some(_) => {}
    }
}

pub(crate) fn reconcile_endpoint_slices(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    // The slices of a deleted service are garbage collected.
    let Some(service) = state.store.find_key(key).filter(|service| has_selector(service)).cloned() else { return };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let known: Vec<(StoredKey, Value)> = state
        .store
        .in_namespace("discovery.k8s.io", "endpointslices", namespace)
        .filter(|entry| is_slice_of(&entry.object, &key.name) && !is_deleting(&entry.object))
        .map(|entry| (StoredKey::clone(&entry.key), Value::clone(&entry.object)))
        .collect();
    let service_pods = service_pods(&state.store, &service);
    let mut desired: Vec<Value> =
        service_pods.chunks(SLICE_ENDPOINTS_MAX).map(|part| build_slice(&service, part)).collect();
    if desired.is_empty() {
        desired.push(build_slice(&service, &[]));
    }
    for index in 0..desired.len().max(known.len()) {
        match (desired.get(index), known.get(index)) {
            (Some(slice), Some((key, live))) => update_slice(state, now, key, live, slice),
            (Some(slice), None) => {
                let mut slice = slice.clone();
                set_trigger_time(&mut slice, now);
                let resource = ("discovery.k8s.io", "endpointslices");
                let _rejected = create_object(state, now, SLICES, resource, namespace, slice);
            }
            (None, Some((key, _))) => delete_object(state, now, SLICES, key),
            (None, None) => {}
        }
    }
}

fn update_slice(state: &mut ServerState, now: Timestamp, key: &StoredKey, live: &Value, desired: &Value) {
    let mut changed = live.clone();
    for field in ["endpoints", "ports"] {
        changed[field] = desired[field].clone();
    }
    metadata(&mut changed).insert("labels".to_owned(), desired["metadata"]["labels"].clone());
    if changed != *live {
        set_trigger_time(&mut changed, now);
        let generation = super::writes::number(live, "/metadata/generation") + 1;
        metadata(&mut changed).insert("generation".to_owned(), json!(generation));
        replace_object(state, now, SLICES, key, changed);
    }
}

fn has_selector(service: &Value) -> bool {
    value_at(service, "/spec/selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty())
        && string_at(service, "/spec/type") != "ExternalName"
}

fn is_slice_of(slice: &Value, service: &str) -> bool {
    let labels = &slice["metadata"]["labels"];
    labels[SERVICE_LABEL] == service && labels["endpointslice.kubernetes.io/managed-by"] == MANAGED_BY
}

fn set_trigger_time(object: &mut Value, now: Timestamp) {
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[TRIGGERED] = json!(format_timestamp(now));
}

/// Returns the labels for the endpoints of a service, including the label for headless services.
fn endpoint_labels(service: &Value) -> Value {
    let mut labels = service.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if string_at(service, "/spec/clusterIP") == "None" {
        labels[HEADLESS] = json!("");
    }
    labels
}

fn pod_reference(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": name(pod), "uid": uid(pod)})
}

/// Returns the port number in a pod, resolving a named target port.
fn target_port(port: &Value, pod: &Value) -> Option<i64> {
    let named = match &port["targetPort"] {
        Value::String(named) => named,
        Value::Number(number) => return number.as_i64().filter(|number| *number != 0),
        _ => return port["port"].as_i64(),
    };
    let ports = array_at(pod, "/spec/containers").iter().flat_map(|container| array_at(container, "/ports"));
    let mut matching = ports.filter(|candidate| {
        candidate["name"] == json!(named) && string_at(candidate, "/protocol") == string_at(port, "/protocol")
    });
    matching.next()?["containerPort"].as_i64()
}

/// Returns the ports of a service, with the numbers that they have in a pod.
fn endpoint_ports(service: &Value, pod: Option<&Value>, always_named: bool) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in array_at(service, "/spec/ports") {
        let number = match pod {
            Some(pod) => target_port(port, pod),
            None => port["targetPort"].as_i64().or_else(|| port["port"].as_i64()),
        };
        let Some(number) = number else { continue };
        let port_name = string_at(port, "/name");
        let mut entry = json!({"port": number, "protocol": string_at(port, "/protocol")});
        if always_named || !port_name.is_empty() {
            entry["name"] = json!(port_name);
        }
        if let Some(protocol) = port.get("appProtocol") {
            entry["appProtocol"] = protocol.clone();
        }
        ports.push(entry);
    }
    ports
}

/// Returns the subsets of an Endpoints object: addresses grouped by their ports.
fn build_subsets(service: &Value, service_pods: &[ServicePod]) -> Value {
    let mut groups: std::collections::BTreeMap<String, Value> = std::collections::BTreeMap::new();
    for ServicePod { pod, ready } in service_pods.iter().filter(|service_pod| !is_deleting(&service_pod.pod)) {
        let ports = json!(endpoint_ports(service, Some(pod), false));
        let group = groups.entry(ports.to_string()).or_insert_with(|| json!({ "ports": ports }));
        let field = if *ready { "addresses" } else { "notReadyAddresses" };
        let address = json!({
            "ip": string_at(pod, "/status/podIP"), "nodeName": string_at(pod, "/spec/nodeName"), "targetRef": pod_reference(pod),
        });
        if group.get(field).is_none() {
            group[field] = json!([]);
        }
        group[field].as_array_mut().into_iter().for_each(|addresses| addresses.push(address.clone()));
    }
    Value::Array(groups.into_values().collect())
}

/// Returns one EndpointSlice with these pods.
fn build_slice(service: &Value, service_pods: &[ServicePod]) -> Value {
    let mut labels = endpoint_labels(service);
    labels[SERVICE_LABEL] = json!(name(service));
    labels["endpointslice.kubernetes.io/managed-by"] = json!(MANAGED_BY);
    let endpoints: Vec<Value> = service_pods
        .iter()
        .map(|ServicePod { pod, ready }| {
            let is_terminating = is_deleting(pod);
            json!({
                "addresses": [string_at(pod, "/status/podIP")], "nodeName": string_at(pod, "/spec/nodeName"),
                "targetRef": pod_reference(pod),
                "conditions": {"ready": ready, "serving": is_ready(pod) || *ready, "terminating": is_terminating},
            })
        })
        .collect();
    json!({
        "metadata": {
            "generateName": format!("{}-", name(service)), "labels": labels,
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": endpoint_ports(service, service_pods.first().map(|service_pod| &service_pod.pod), true),
    })
}
