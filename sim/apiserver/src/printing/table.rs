//! Tables, as `kubectl get` prints them. The columns of built-in kinds are recorded from a real server; their cells are
//! computed here.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::http::media::Include;
use crate::object::fields::{array_at, is_deleting, name, string_at};
use crate::printing::convert::{convert, partial};
use crate::printing::format::{age, selector};
use crate::printing::{cells, infrastructure_cells, json_path, pod_cells, policy_cells};
use crate::registry::conversion;
use crate::registry::resource::Target;

const COLUMNS: &str = include_str!(concat!(env!("OUT_DIR"), "/columns.json"));
/// A kind that has only the columns of every kind.
const PLAIN: &str = "/limitranges";
/// A kind whose last column is the age.
const AGED: &str = "/serviceaccounts";

fn recorded() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| serde_json::from_str(COLUMNS).unwrap_or_default())
}

fn key(target: &Target) -> String {
    format!("{}/{}", conversion::storage_group(&target.resource), target.resource.plural)
}

/// Returns the columns of kinds whose tables were not recorded, without descriptions.
fn unrecorded_columns(kind: &str) -> Option<Vec<Value>> {
    cells::columns(kind).or_else(|| infrastructure_cells::columns(kind))
}

fn is_plain(target: &Target) -> bool {
    !target.resource.custom
        && unrecorded_columns(&target.resource.kind).is_none()
        && recorded().get(key(target)).is_none_or(|columns| *columns == recorded()[PLAIN])
}

fn columns(target: &Target) -> Vec<Value> {
    let of = |key: &str| recorded().get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    if !target.resource.custom {
        let own = of(&key(target));
        let otherwise = || unrecorded_columns(&target.resource.kind).unwrap_or_else(|| of(PLAIN));
        return if own.is_empty() { otherwise() } else { own };
    }
    let mut columns: Vec<Value> = of(AGED).into_iter().take(1).collect();
    for column in &target.version.columns {
        let column_field = |field: &str| column.get(field).cloned().unwrap_or_else(|| json!(""));
        let priority = column.get("priority").cloned().unwrap_or_else(|| json!(0));
        let path = string_at(column, "/jsonPath");
        let description = match string_at(column, "/description") {
            "" => json!(format!("Custom resource definition column (in JSONPath format): {path}")),
            given => json!(given),
        };
        columns.push(json!({
            "name": column_field("name"), "type": column_field("type"), "format": column_field("format"), "description": description,
            "priority": priority,
        }));
    }
    if target.version.columns.is_empty() {
        columns.extend(of(AGED).into_iter().nth(1).map(|mut age| {
            age["type"] = json!("date");
            age
        }));
    }
    columns
}

fn cells(target: &Target, now: Timestamp, object: &Value) -> Vec<Value> {
    let own = json!(name(object));
    let created = string_at(object, "/metadata/creationTimestamp");
    if target.resource.custom {
        let facts = target.version.columns.iter().map(|column| cell(now, column, object));
        let age = target.version.columns.is_empty().then(|| json!(age(now, created)));
        return std::iter::once(own).chain(facts).chain(age).collect();
    }
    if is_plain(target) {
        return vec![own, json!(created)];
    }
    let kind = &target.resource.kind;
    let row = cells::row(kind, now, object)
        .or_else(|| policy_cells::row(kind, now, object))
        .or_else(|| infrastructure_cells::row(kind, now, object));
    if let Some(row) = row {
        return row;
    }
    let mut cells = vec![own];
    cells.extend(status_cells(&target.resource.kind, object));
    cells.push(json!(age(now, created)));
    cells.extend(wide_cells(&target.resource.kind, object));
    cells
}

/// Returns the cell of a printer column of a CRD.
fn cell(now: Timestamp, column: &Value, object: &Value) -> Value {
    let Some(found) = json_path::find_first(object, string_at(column, "/jsonPath")) else { return Value::Null };
    match (string_at(column, "/type"), &found) {
        ("date", Value::String(time)) => json!(age(now, time)),
        ("string", Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => json!(found.to_string()),
        _ => found,
    }
}

/// Returns the cells between name and age.
fn status_cells(kind: &str, object: &Value) -> Vec<Value> {
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_object).map_or(0, Map::len);
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let string = |pointer: &str| json!(string_at(object, pointer));
    let or_none =
        |pointer: &str| json!(Some(string_at(object, pointer)).filter(|text| !text.is_empty()).unwrap_or("<none>"));
    match kind {
        "Namespace" => vec![string("/status/phase")],
        "ConfigMap" => vec![json!(count("/data") + count("/binaryData"))],
        "Secret" => vec![string("/type"), json!(count("/data"))],
        "Service" => {
            vec![
                string("/spec/type"),
                or_none("/spec/clusterIP"),
                json!(external_address(object)),
                json!(ports(object)),
            ]
        }
        "Deployment" => {
            let ready = format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas"));
            vec![json!(ready), json!(number("/status/updatedReplicas")), json!(number("/status/availableReplicas"))]
        }
        "ReplicaSet" | "ReplicationController" => ["/spec/replicas", "/status/replicas", "/status/readyReplicas"]
            .map(|pointer| json!(number(pointer)))
            .to_vec(),
        "StatefulSet" => vec![json!(format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas")))],
        "PersistentVolumeClaim" => vec![
            if is_deleting(object) { json!("Terminating") } else { string("/status/phase") },
            string("/spec/volumeName"),
            if string_at(object, "/spec/volumeName").is_empty() {
                json!("")
            } else {
                string("/status/capacity/storage")
            },
            json!(""),
            string("/spec/storageClassName"),
            json!("<unset>"),
        ],
        "Lease" => vec![string("/spec/holderIdentity")],
        "RoleBinding" => {
            vec![json!(format!("{}/{}", string_at(object, "/roleRef/kind"), string_at(object, "/roleRef/name")))]
        }
        "NetworkPolicy" => vec![json!(selector(object.pointer("/spec/podSelector")))],
        "Ingress" => {
            let ports = if array_at(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
            let addresses = array_at(object, "/status/loadBalancer/ingress").iter().map(balancer_address);
            let addresses = addresses.collect::<Vec<_>>().join(",");
            vec![or_none("/spec/ingressClassName"), json!(hosts(object)), json!(addresses), json!(ports)]
        }
        _ => Vec::new(),
    }
}

/// Returns the address of a load balancer: an IP address, or a host name.
fn balancer_address(ingress: &Value) -> &str {
    Some(string_at(ingress, "/ip")).filter(|address| !address.is_empty()).unwrap_or(string_at(ingress, "/hostname"))
}

/// Returns the external address of a service.
fn external_address(service: &Value) -> String {
    let texts = |pointer: &str, field: &str| -> Vec<String> {
        array_at(service, pointer).iter().map(|one| string_at(one, field).to_owned()).collect()
    };
    let external = texts("/spec/externalIPs", "");
    let found = match string_at(service, "/spec/type") {
        "ExternalName" => vec![string_at(service, "/spec/externalName").to_owned()],
        "LoadBalancer" => {
            let balancers = array_at(service, "/status/loadBalancer/ingress").iter().map(balancer_address);
            balancers.map(str::to_owned).chain(external).collect()
        }
        _ => external,
    };
    match string_at(service, "/spec/type") {
        "LoadBalancer" if found.is_empty() => "<pending>".to_owned(),
        _ if found.is_empty() => "<none>".to_owned(),
        _ => found.join(","),
    }
}

/// Returns the first hosts of an ingress.
fn hosts(ingress: &Value) -> String {
    let hosts: Vec<&str> = array_at(ingress, "/spec/rules").iter().map(|rule| string_at(rule, "/host")).collect();
    let named: Vec<&str> = hosts.iter().copied().filter(|host| !host.is_empty()).collect();
    match named.len() {
        0 => "*".to_owned(),
        1..=3 => named.join(","),
        more => format!("{} + {} more...", named[..3].join(","), more - 3),
    }
}

/// Returns the cells after the age, which only wide output shows.
fn wide_cells(kind: &str, object: &Value) -> Vec<Value> {
    let containers = array_at(object, "/spec/template/spec/containers");
    let joined = |field: &str| {
        json!(containers.iter().map(|container| string_at(container, field)).collect::<Vec<_>>().join(","))
    };
    match kind {
        "RoleBinding" | "ClusterRoleBinding" => {
            let named = |kind: &str| {
                let of_kind =
                    array_at(object, "/subjects").iter().filter(|subject| string_at(subject, "/kind") == kind);
                let shown = of_kind.map(|subject| match kind {
                    "ServiceAccount" => format!("{}/{}", string_at(subject, "/namespace"), string_at(subject, "/name")),
                    _ => string_at(subject, "/name").to_owned(),
                });
                json!(shown.collect::<Vec<_>>().join(", "))
            };
            vec![named("User"), named("Group"), named("ServiceAccount")]
        }
        "Deployment" | "ReplicaSet" => {
            vec![joined("/name"), joined("/image"), json!(selector(object.pointer("/spec/selector")))]
        }
        "ReplicationController" => {
            let labels = json!({ "matchLabels": object.pointer("/spec/selector") });
            vec![joined("/name"), joined("/image"), json!(selector(Some(&labels)))]
        }
        "StatefulSet" => vec![joined("/name"), joined("/image")],
        "Service" => {
            let labels = json!({ "matchLabels": object.pointer("/spec/selector") });
            vec![json!(selector(Some(&labels)))]
        }
        "PersistentVolumeClaim" => vec![json!(string_at(object, "/spec/volumeMode"))],
        _ => Vec::new(),
    }
}

fn ports(service: &Value) -> String {
    let port = |port: &Value| {
        let number = port.get("port").map(Value::to_string).unwrap_or_default();
        let node = port.get("nodePort").map(|node| format!(":{node}")).unwrap_or_default();
        format!("{number}{node}/{}", string_at(port, "/protocol"))
    };
    let ports: Vec<String> = array_at(service, "/spec/ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

/// Returns the value at a simple JSONPath such as `.spec.size`, without filters and indices.
pub(crate) fn at_path(object: &Value, path: &str) -> Value {
    let found = path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part));
    found.cloned().unwrap_or(Value::Null)
}

pub(crate) fn table(
    target: &Target,
    include: Include,
    now: Timestamp,
    objects: &[Arc<Value>],
    metadata: Value,
) -> Value {
    let mut rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let held = match include {
                Include::None => Value::Null,
                Include::Metadata => partial(object),
                Include::Object => Value::clone(&convert(target, object)),
            };
            let mut row = json!({"cells": cells(target, now, object), "object": held});
            if let Some(conditions) = pod_cells::row_conditions(object).filter(|_| target.resource.is("", "pods")) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    if target.resource.kind == "FlowSchema" {
        policy_cells::sort_flow_schemas(&mut rows);
    }
    let rows = if rows.is_empty() && is_plain(target) { Value::Null } else { Value::Array(rows) };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns(target), "rows": rows,
    })
}
