//! What the server fills in when the client says nothing, for the built-in kinds.
//!
//! Nobody owns a defaulted field after an apply. The defaults of pods are those that a Deployment shows; the rest of the
//! pod's defaults is left out until the recorded schemas bring it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::pointer::{metadata, name, text};

pub(crate) fn fill(kind: &str, live: Option<&Value>, object: &mut Value) {
    match kind {
        "Namespace" => namespace(object),
        "Secret" => secret(object),
        "Service" => service(live, object),
        "Deployment" => deployment(object),
        "CustomResourceDefinition" => definition(object),
        _ => {}
    }
}

/// Sets a field that is not there. Anything but a map is left for validation to complain about.
fn default(map: &mut Value, name: &str, value: Value) {
    if let Some(map) = map.as_object_mut() {
        let slot = map.entry(name).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }
}

fn field<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    object.get_mut(name).filter(|value| value.is_object())
}

fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn namespace(object: &mut Value) {
    let own_name = json!(name(object));
    let labels = metadata(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), own_name);
    }
    default(object, "spec", json!({}));
    default(object, "status", json!({}));
    if let Some(spec) = field(object, "spec") {
        default(spec, "finalizers", json!(["kubernetes"]));
    }
    if let Some(status) = field(object, "status") {
        default(status, "phase", json!("Active"));
    }
}

/// Plain values become encoded ones, and win over those.
fn secret(object: &mut Value) {
    default(object, "type", json!("Opaque"));
    let Some(map) = object.as_object_mut() else {
        return;
    };
    let Some(Value::Object(plain)) = map.remove("stringData") else {
        return;
    };
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (key, value) in plain {
            if let Some(value) = value.as_str() {
                data.insert(key, json!(STANDARD.encode(value)));
            }
        }
    }
}

fn service(live: Option<&Value>, object: &mut Value) {
    default(object, "status", json!({"loadBalancer": {}}));
    let Some(spec) = field(object, "spec") else {
        return;
    };
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if text(spec, "/type") != "ExternalName" {
        default(spec, "internalTrafficPolicy", json!("Cluster"));
        default(spec, "ipFamilies", json!(["IPv4"]));
        default(spec, "ipFamilyPolicy", json!("SingleStack"));
        // A client that replaces the object need not know its address.
        for address in ["clusterIP", "clusterIPs"] {
            if let Some(known) = live.and_then(|live| live.get("spec")?.get(address)) {
                default(spec, address, known.clone());
            }
        }
        if text(spec, "/clusterIP") == "None" {
            default(spec, "clusterIPs", json!(["None"]));
        }
    }
    for port in items(spec, "ports") {
        default(port, "protocol", json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, "targetPort", number);
    }
}

fn deployment(object: &mut Value) {
    default(object, "status", json!({}));
    let Some(spec) = field(object, "spec") else {
        return;
    };
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "progressDeadlineSeconds", json!(600));
    default(spec, "strategy", json!({}));
    if let Some(strategy) = field(spec, "strategy") {
        default(strategy, "type", json!("RollingUpdate"));
        if text(strategy, "/type") == "RollingUpdate" {
            default(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = field(strategy, "rollingUpdate") {
                default(rolling, "maxSurge", json!("25%"));
                default(rolling, "maxUnavailable", json!("25%"));
            }
        }
    }
    if let Some(pod) = field(spec, "template").and_then(|template| field(template, "spec")) {
        pod_spec(pod);
    }
}

fn pod_spec(pod: &mut Value) {
    default(pod, "restartPolicy", json!("Always"));
    default(pod, "terminationGracePeriodSeconds", json!(30));
    default(pod, "dnsPolicy", json!("ClusterFirst"));
    default(pod, "schedulerName", json!("default-scheduler"));
    default(pod, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for container in items(pod, list) {
            let image = text(container, "/image");
            let tag = image.rsplit_once('/').map_or(image, |(_, last)| last).split_once(':').map(|(_, tag)| tag);
            let policy = if matches!(tag, None | Some("latest")) { "Always" } else { "IfNotPresent" };
            default(container, "imagePullPolicy", json!(policy));
            default(container, "resources", json!({}));
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
            for port in items(container, "ports") {
                default(port, "protocol", json!("TCP"));
            }
        }
    }
}

fn definition(object: &mut Value) {
    let Some(spec) = field(object, "spec") else {
        return;
    };
    default(spec, "conversion", json!({"strategy": "None"}));
    let stored: Vec<Value> = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    if let Some(names) = field(spec, "names") {
        let kind = text(names, "/kind").to_owned();
        default(names, "singular", json!(kind.to_lowercase()));
        default(names, "listKind", json!(format!("{kind}List")));
    }
    default(object, "status", json!({}));
    if let Some(status) = field(object, "status") {
        default(status, "conditions", json!([]));
        default(status, "acceptedNames", json!({"plural": "", "kind": ""}));
        default(status, "storedVersions", json!([]));
        if let Some(known) = status.get_mut("storedVersions").and_then(Value::as_array_mut) {
            let added: Vec<Value> = stored.into_iter().filter(|version| !known.contains(version)).collect();
            known.extend(added);
        }
    }
}
