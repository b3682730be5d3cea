//! Endpoints and endpoint slices: the addresses of the pods behind a service, and which of them are ready.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::owned_objects::{has_ended, is_ready};
use super::workloads::selects;
use super::writes::{controller_reference, key_of};
use crate::object::fields::{at, is_deleting, list, metadata, name, stamp, text, uid};
use crate::object::key::StoredKey;
use crate::server::ApiServer;

const ENDPOINTS: &str = "endpoint-controller";
const SLICES: &str = "endpointslice-controller";
const MANAGED_BY: &str = "endpointslice-controller.k8s.io";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// How many pods one slice holds.
const SLICE_ENDPOINTS_MAX: usize = 100;

/// A pod behind a service.
struct Behind {
    pod: Value,
    ready: bool,
}

impl ApiServer {
    /// The pods behind a service that have an address, by name.
    fn behind(&self, service: &Value) -> Vec<Behind> {
        let namespace = text(service, "/metadata/namespace");
        let eager = at(service, "/spec/publishNotReadyAddresses") == Some(&json!(true));
        let here = self.store.in_namespace("", "pods", namespace).map(|entry| &***entry.object);
        let selected =
            here.filter(|pod| selects(service, pod) && !text(pod, "/status/podIP").is_empty() && !has_ended(pod));
        selected.map(|pod| Behind { pod: pod.clone(), ready: eager || is_ready(pod) && !is_deleting(pod) }).collect()
    }

    pub(super) fn reconcile_endpoints(&mut self, now: Timestamp, key: &StoredKey) {
        let own = key_of("", "Endpoints", "endpoints", key.namespace.as_deref(), &key.name);
        let Some(service) = self.stored(key).cloned() else {
            let managed = self.stored(&own).is_some_and(|found| {
                found["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"
            });
            if managed {
                self.discard(now, ENDPOINTS, &own);
            }
            return;
        };
        if !is_selecting(&service) {
            return;
        }
        let subsets = subsets(&service, &self.behind(&service));
        let mut labels = labels_of(&service);
        labels["endpoints.kubernetes.io/managed-by"] = json!(ENDPOINTS);
        match self.stored(&own).cloned() {
            None => {
                let object = json!({
                    "metadata": {
                        "name": key.name, "labels": labels, "annotations": {TRIGGERED: stamp(now)},
                    },
                    "subsets": subsets,
                });
                let namespace = key.namespace.as_deref().unwrap_or_default();
                // A namespace that is being deleted takes nothing new.
                let _refused = self.make(now, ENDPOINTS, ("", "endpoints"), namespace, object);
            }
            Some(known)
                if known.get("subsets").unwrap_or(&json!([])) != &subsets || known["metadata"]["labels"] != labels =>
            {
                let mut changed = Value::clone(&known);
                changed["subsets"] = subsets;
                metadata(&mut changed).insert("labels".to_owned(), labels);
                note_trigger(&mut changed, now);
                self.replace(now, ENDPOINTS, &own, changed);
            }
            Some(_) => {}
        }
    }

    pub(super) fn reconcile_endpoint_slices(&mut self, now: Timestamp, key: &StoredKey) {
        // Slices of a service that is gone go with it, as what it owns.
        let Some(service) = self.stored(key).filter(|service| is_selecting(service)).cloned() else { return };
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let known: Vec<(StoredKey, Value)> = self
            .store
            .in_namespace("discovery.k8s.io", "endpointslices", namespace)
            .filter(|entry| is_slice_of(&entry.object, &key.name) && !is_deleting(&entry.object))
            .map(|entry| (StoredKey::clone(&entry.key), Value::clone(&entry.object)))
            .collect();
        let behind = self.behind(&service);
        let mut wanted: Vec<Value> = behind.chunks(SLICE_ENDPOINTS_MAX).map(|part| slice(&service, part)).collect();
        if wanted.is_empty() {
            wanted.push(slice(&service, &[]));
        }
        for index in 0..wanted.len().max(known.len()) {
            match (wanted.get(index), known.get(index)) {
                (Some(slice), Some((key, live))) => self.renew_slice(now, key, live, slice),
                (Some(slice), None) => {
                    let mut slice = slice.clone();
                    note_trigger(&mut slice, now);
                    let resource = ("discovery.k8s.io", "endpointslices");
                    let _refused = self.make(now, SLICES, resource, namespace, slice);
                }
                (None, Some((key, _))) => self.discard(now, SLICES, key),
                (None, None) => {}
            }
        }
    }

    fn renew_slice(&mut self, now: Timestamp, key: &StoredKey, live: &Value, wanted: &Value) {
        let mut changed = live.clone();
        for field in ["endpoints", "ports"] {
            changed[field] = wanted[field].clone();
        }
        metadata(&mut changed).insert("labels".to_owned(), wanted["metadata"]["labels"].clone());
        if changed != *live {
            note_trigger(&mut changed, now);
            let generation = super::writes::number(live, "/metadata/generation") + 1;
            metadata(&mut changed).insert("generation".to_owned(), json!(generation));
            self.replace(now, SLICES, key, changed);
        }
    }
}

fn is_selecting(service: &Value) -> bool {
    at(service, "/spec/selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty())
        && text(service, "/spec/type") != "ExternalName"
}

fn is_slice_of(slice: &Value, service: &str) -> bool {
    let labels = &slice["metadata"]["labels"];
    labels[SERVICE_LABEL] == service && labels["endpointslice.kubernetes.io/managed-by"] == MANAGED_BY
}

fn note_trigger(object: &mut Value, now: Timestamp) {
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[TRIGGERED] = json!(stamp(now));
}

/// The labels of a service, with a mark on one that has no address of its own.
fn labels_of(service: &Value) -> Value {
    let mut labels = service.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if text(service, "/spec/clusterIP") == "None" {
        labels[HEADLESS] = json!("");
    }
    labels
}

fn reference(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": name(pod), "uid": uid(pod)})
}

/// The number of a port in a pod, which may be named there.
fn target_port(port: &Value, pod: &Value) -> Option<i64> {
    let named = match &port["targetPort"] {
        Value::String(named) => named,
        Value::Number(number) => return number.as_i64().filter(|number| *number != 0),
        _ => return port["port"].as_i64(),
    };
    let ports = list(pod, "/spec/containers").iter().flat_map(|container| list(container, "/ports"));
    let mut fitting =
        ports.filter(|found| found["name"] == json!(named) && text(found, "/protocol") == text(port, "/protocol"));
    fitting.next()?["containerPort"].as_i64()
}

/// The ports as one pod has them.
fn ports_in(service: &Value, pod: Option<&Value>, named_always: bool) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in list(service, "/spec/ports") {
        let number = match pod {
            Some(pod) => target_port(port, pod),
            None => port["targetPort"].as_i64().or_else(|| port["port"].as_i64()),
        };
        let Some(number) = number else { continue };
        let own = text(port, "/name");
        let mut told = json!({"port": number, "protocol": text(port, "/protocol")});
        if named_always || !own.is_empty() {
            told["name"] = json!(own);
        }
        if let Some(protocol) = port.get("appProtocol") {
            told["appProtocol"] = protocol.clone();
        }
        ports.push(told);
    }
    ports
}

/// Addresses in the old form: grouped by the ports that they have.
fn subsets(service: &Value, behind: &[Behind]) -> Value {
    let mut groups: std::collections::BTreeMap<String, Value> = std::collections::BTreeMap::new();
    for Behind { pod, ready } in behind.iter().filter(|behind| !is_deleting(&behind.pod)) {
        let ports = json!(ports_in(service, Some(pod), false));
        let group = groups.entry(ports.to_string()).or_insert_with(|| json!({ "ports": ports }));
        let field = if *ready { "addresses" } else { "notReadyAddresses" };
        let address = json!({
            "ip": text(pod, "/status/podIP"), "nodeName": text(pod, "/spec/nodeName"), "targetRef": reference(pod),
        });
        if group.get(field).is_none() {
            group[field] = json!([]);
        }
        group[field].as_array_mut().into_iter().for_each(|addresses| addresses.push(address.clone()));
    }
    Value::Array(groups.into_values().collect())
}

/// One slice with these pods.
fn slice(service: &Value, behind: &[Behind]) -> Value {
    let mut labels = labels_of(service);
    labels[SERVICE_LABEL] = json!(name(service));
    labels["endpointslice.kubernetes.io/managed-by"] = json!(MANAGED_BY);
    let endpoints: Vec<Value> = behind
        .iter()
        .map(|Behind { pod, ready }| {
            let leaving = is_deleting(pod);
            json!({
                "addresses": [text(pod, "/status/podIP")], "nodeName": text(pod, "/spec/nodeName"),
                "targetRef": reference(pod),
                "conditions": {"ready": ready, "serving": is_ready(pod) || *ready, "terminating": leaving},
            })
        })
        .collect();
    json!({
        "metadata": {
            "generateName": format!("{}-", name(service)), "labels": labels,
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": ports_in(service, behind.first().map(|behind| &behind.pod), true),
    })
}
