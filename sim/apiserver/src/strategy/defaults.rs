//! Defaults of built-in kinds, by the struct that contains a field.
//!
//! A server-side apply does not own defaulted fields; a create or update does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::object::fields::{metadata, name, text};
use crate::registry::types::{SchemaType, ValueType};
use crate::strategy::validation::service::is_reachable_from_outside;

/// Sets the defaults of an object and of everything inside it.
pub(crate) fn fill(of: &SchemaType, object: &mut Value) {
    // autoscaling/v1 has no metrics.
    let is_older = of.short_name == "HorizontalPodAutoscaler" && !has_metrics(of);
    if !is_older {
        kind(&of.short_name, object);
    }
    walk(of, object);
}

fn walk(of: &SchemaType, value: &mut Value) {
    match (of.value_type, &mut *value) {
        (ValueType::Struct, Value::Object(_)) => {
            for (field, text) in &of.defaults {
                if value.get(field).is_none_or(Value::is_null) {
                    default(value, field, text.clone());
                }
            }
            computed(&of.short_name, value);
            if let Value::Object(map) = value {
                for (name, child) in map.iter_mut() {
                    if let Some(field) = of.field(name) {
                        walk(field.field_type(), child);
                    }
                }
            }
        }
        (ValueType::Map, Value::Object(map)) => {
            if let Some(values) = of.element() {
                map.values_mut().for_each(|value| walk(values, value));
            }
        }
        (ValueType::List, Value::Array(list)) => {
            if let Some(items) = of.element() {
                list.iter_mut().for_each(|item| walk(items, item));
            }
        }
        _ => {}
    }
}

/// Sets an absent field. A value that is not a map is left to validation.
fn default(map: &mut Value, name: &str, value: Value) {
    if let Some(map) = map.as_object_mut() {
        let slot = map.entry(name).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }
}

/// Defaults that depend on other fields.
fn computed(of: &str, value: &mut Value) {
    match of {
        "Container" | "EphemeralContainer" => {
            default(value, "imagePullPolicy", json!(pull_policy(text(value, "/image"))))
        }
        "Volume" if value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("name")) => {
            default(value, "emptyDir", json!({}));
        }
        "PodSpec" => account(value),
        "ServiceSpec" => service(value),
        "ServicePort" => {
            let number = value.get("port").cloned().unwrap_or_default();
            // 0 and "" count as absent, because Protobuf cannot omit the field.
            if matches!(value.get("targetPort"), Some(port) if *port == 0 || *port == "") {
                value["targetPort"] = Value::Null;
            }
            default(value, "targetPort", number);
        }
        "DeploymentStrategy" | "StatefulSetUpdateStrategy" | "DaemonSetUpdateStrategy"
            if text(value, "/type") == "RollingUpdate" =>
        {
            default(value, "rollingUpdate", json!({}));
        }
        "NetworkPolicySpec" if value.get("policyTypes").is_none_or(Value::is_null) => {
            let egress = value.get("egress").is_some_and(|rules| !rules.is_null());
            default(value, "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        "RoleRef" => default_if_empty(value, "apiGroup", "rbac.authorization.k8s.io"),
        "Subject" if matches!(text(value, "/kind"), "User" | "Group") => {
            default_if_empty(value, "apiGroup", "rbac.authorization.k8s.io");
        }
        "ValidatingWebhook" | "MutatingWebhook" | "MatchResources" => {
            default(value, "matchPolicy", json!("Equivalent"));
            default(value, "namespaceSelector", json!({}));
            default(value, "objectSelector", json!({}));
        }
        "LimitRangeItem" if text(value, "/type") == "Container" => limits(value),
        "PersistentVolumeClaim" => {
            default(value, "apiVersion", json!("v1"));
            default(value, "kind", json!("PersistentVolumeClaim"));
            default_in(value, "status", "phase", json!("Pending"));
        }
        "CSIDriverSpec" => {
            for field in ["podInfoOnMount", "requiresRepublish", "storageCapacity", "seLinuxMount"] {
                default(value, field, json!(false));
            }
            default(value, "volumeLifecycleModes", json!(["Persistent"]));
        }
        _ => {}
    }
}

fn default_if_empty(value: &mut Value, field: &str, text: &str) {
    if value.get(field).is_some_and(|found| found == "") {
        value[field] = Value::Null;
    }
    default(value, field, json!(text));
}

fn default_in(value: &mut Value, part: &str, field: &str, to: Value) {
    default(value, part, json!({}));
    if let Some(part) = value.get_mut(part) {
        default(part, field, to);
    }
}

/// Sets `serviceAccountName` and its deprecated alias `serviceAccount` to the same value.
fn account(spec: &mut Value) {
    let name = [text(spec, "/serviceAccountName"), text(spec, "/serviceAccount")];
    let name = name.into_iter().find(|name| !name.is_empty()).map(|name| json!(name));
    if let (Some(name), Some(spec)) = (name, spec.as_object_mut()) {
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit_once('/').map_or(image, |(_, last)| last);
    if last.contains('@') {
        return "IfNotPresent";
    }
    match last.split_once(':').map(|(_, tag)| tag) {
        None | Some("latest") => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn service(spec: &mut Value) {
    if text(spec, "/sessionAffinity") == "ClientIP" {
        default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    if let (true, Some(spec)) = (text(spec, "/sessionAffinity") == "None", spec.as_object_mut()) {
        spec.remove("sessionAffinityConfig");
    }
    let kind = text(spec, "/type").to_owned();
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if is_reachable_from_outside(spec) {
        default_if_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

/// Sets the default limit from the maximum, and the default request from the default limit or the minimum.
fn limits(item: &mut Value) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(source) = item.get(from).and_then(Value::as_object).cloned() else { continue };
        default(item, to, json!({}));
        if let Some(target) = item.get_mut(to).and_then(Value::as_object_mut) {
            for (name, amount) in source {
                target.entry(name).or_insert(amount);
            }
        }
    }
}

/// Sets the defaults of the scaling behavior of an autoscaler.
fn behavior(behavior: &mut Value) {
    let policy = |of: &str, value: u32| json!({"type": of, "value": value, "periodSeconds": 15});
    let directions = [
        ("scaleUp", json!([policy("Pods", 4), policy("Percent", 100)]), Some(0)),
        ("scaleDown", json!([policy("Percent", 100)]), None),
    ];
    for (direction, policies, window) in directions {
        default(behavior, direction, json!({}));
        let rules = &mut behavior[direction];
        default(rules, "selectPolicy", json!("Max"));
        default(rules, "policies", policies);
        if let Some(window) = window {
            default(rules, "stabilizationWindowSeconds", json!(window));
        }
    }
}

fn has_metrics(of: &SchemaType) -> bool {
    of.field("spec").is_some_and(|spec| spec.field_type().field("metrics").is_some())
}

/// Sets the defaults of a whole kind, which its structs do not have in other kinds.
fn kind(of: &str, object: &mut Value) {
    match of {
        "Namespace" => namespace(object),
        "Secret" => secret(object),
        "Pod" => pod(object),
        "Job" => job(object),
        "DaemonSet" => {
            let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
            // Only the server counts; the first value belongs to the writer.
            default(annotations, "deprecated.daemonset.template.generation", json!("0"));
        }
        "HorizontalPodAutoscaler" if object.pointer("/spec/targetCPUUtilizationPercentage").is_none() => {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
            if let Some(spec) = object.get_mut("spec").filter(|spec| spec.get("scaleTargetRef").is_some()) {
                default(spec, "metrics", metric);
                field(spec, "behavior").into_iter().for_each(behavior);
            }
        }
        "EndpointSlice" => {
            let ports = object.get_mut("ports").and_then(Value::as_array_mut);
            ports.into_iter().flatten().for_each(|port| default(port, "name", json!("")));
        }
        "CustomResourceDefinition" => crd(object),
        "ReplicaSet" | "ReplicationController" => selected_labels(of, object),
        _ => {}
    }
}

fn field<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    object.get_mut(name).filter(|value| value.is_object())
}

/// Sets the default `ipMode` of load balancer addresses.
pub(crate) fn default_ip_mode(service: &mut Value) {
    if text(service, "/spec/type") != "LoadBalancer" {
        return;
    }
    let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for address in ingress.into_iter().flatten().filter(|address| !text(address, "/ip").is_empty()) {
        default(address, "ipMode", json!("VIP"));
    }
}

fn namespace(object: &mut Value) {
    let own_name = json!(name(object));
    let labels = metadata(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut().filter(|_| own_name != "") {
        labels.insert("kubernetes.io/metadata.name".to_owned(), own_name);
    }
}

/// Sets the default selector and labels from the labels of the pod template.
fn selected_labels(of: &str, object: &mut Value) {
    let Some(labels) = object.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned()
    else {
        return;
    };
    if of == "ReplicationController" {
        if let Some(spec) = field(object, "spec") {
            default(spec, "selector", labels.clone());
        }
        let own = metadata(object).entry("labels").or_insert(Value::Null);
        if own.is_null() {
            *own = labels;
        }
    }
}

/// Moves `stringData` to `data`, where it replaces existing values.
fn secret(object: &mut Value) {
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

fn pod(object: &mut Value) {
    let Some(spec) = field(object, "spec") else { return };
    default(spec, "enableServiceLinks", json!(true));
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for resources in containers.into_iter().flatten().filter_map(|container| field(container, "resources")) {
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            default(resources, "requests", json!({}));
            for (name, amount) in limits {
                default(&mut resources["requests"], &name, amount);
            }
        }
    }
}

fn job(object: &mut Value) {
    let Some(spec) = field(object, "spec") else { return };
    let unset = |spec: &Value, name: &str| spec.get(name).is_none_or(Value::is_null);
    if unset(spec, "completions") && unset(spec, "parallelism") {
        default(spec, "completions", json!(1));
    }
    default(spec, "parallelism", json!(1));
    default(spec, "backoffLimit", json!(6));
    default(spec, "completionMode", json!("NonIndexed"));
    default(spec, "suspend", json!(false));
    default(spec, "manualSelector", json!(false));
    let policy = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    default(spec, "podReplacementPolicy", json!(policy));
}

fn crd(object: &mut Value) {
    let Some(spec) = field(object, "spec") else {
        return;
    };
    default(spec, "conversion", json!({"strategy": "None"}));
    if let Some(names) = field(spec, "names") {
        let kind = text(names, "/kind").to_owned();
        default(names, "singular", json!(kind.to_lowercase()));
        default(names, "listKind", json!(format!("{kind}List")));
    }
}
