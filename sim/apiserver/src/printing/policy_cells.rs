//! Table cells of policies: role bindings, quotas, priority classes, API services, flow schemas and service addresses.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{array_at, name, string_at, value_at};
use crate::printing::format::age;

/// Returns the cells of an object, if its kind is one of this file.
pub(crate) fn row(kind: &str, now: Timestamp, object: &Value) -> Option<Vec<Value>> {
    let old = json!(age(now, string_at(object, "/metadata/creationTimestamp")));
    let cells = match kind {
        "ClusterRoleBinding" | "RoleBinding" => role_binding(object, old),
        "APIService" => api_service(object, old),
        "FlowSchema" => flow_schema(object, old),
        "PriorityLevelConfiguration" => priority_level(object, old),
        "PriorityClass" => {
            let is_default = value_at(object, "/globalDefault") == Some(&json!(true));
            vec![object["value"].clone(), json!(is_default), old, object["preemptionPolicy"].clone()]
        }
        "ResourceQuota" => quota(object, old),
        "ServiceCIDR" => {
            let ranges: Vec<&str> = array_at(object, "/spec/cidrs").iter().filter_map(Value::as_str).collect();
            vec![json!(ranges.join(",")), old]
        }
        "IPAddress" => vec![json!(parent(object)), old],
        _ => return None,
    };
    Some(std::iter::once(json!(name(object))).chain(cells).collect())
}

/// Sorts the rows of a table of flow schemas in the order in which they are matched.
pub(crate) fn sort_flow_schemas(rows: &mut [Value]) {
    rows.sort_by_key(|row| (row["cells"][2].as_i64(), row["cells"][0].to_string()));
}

fn role_binding(binding: &Value, old: Value) -> Vec<Value> {
    let role = format!("{}/{}", string_at(binding, "/roleRef/kind"), string_at(binding, "/roleRef/name"));
    let subjects = |kind: &str| {
        let subjects = array_at(binding, "/subjects").iter().filter(|subject| string_at(subject, "/kind") == kind);
        let names: Vec<String> = subjects
            .map(|subject| match string_at(subject, "/namespace") {
                namespace if kind == "ServiceAccount" => format!("{namespace}/{}", string_at(subject, "/name")),
                _ => string_at(subject, "/name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![json!(role), old, subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

/// Returns what is used of each amount, first of requests and numbers of objects, then of limits.
fn quota(quota: &Value, old: Value) -> Vec<Value> {
    let hard = value_at(quota, "/status/hard").and_then(Value::as_object);
    let amounts = |of_limits: bool| {
        let amounts = hard.into_iter().flatten().filter(|(name, _)| name.starts_with("limits.") == of_limits);
        let shown = amounts.map(|(name, hard)| {
            let used = quota["status"]["used"][name].as_str().unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        });
        json!(shown.collect::<Vec<_>>().join(", "))
    };
    vec![amounts(false), amounts(true), old]
}

fn api_service(service: &Value, old: Value) -> Vec<Value> {
    let backend = match string_at(service, "/spec/service/name") {
        "" => "Local".to_owned(),
        name => format!("{}/{name}", string_at(service, "/spec/service/namespace")),
    };
    let available = array_at(service, "/status/conditions").iter().find(|one| one["type"] == "Available");
    let available = match available {
        None => "Unknown".to_owned(),
        Some(one) if one["status"] == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", string_at(one, "/status"), string_at(one, "/reason")),
    };
    vec![json!(backend), json!(available), old]
}

fn flow_schema(schema: &Value, old: Value) -> Vec<Value> {
    let method = match string_at(schema, "/spec/distinguisherMethod/type") {
        "" => "<none>",
        method => method,
    };
    let dangling = array_at(schema, "/status/conditions").iter().find(|one| one["type"] == "Dangling");
    vec![
        json!(string_at(schema, "/spec/priorityLevelConfiguration/name")),
        schema["spec"]["matchingPrecedence"].clone(),
        json!(method),
        old,
        json!(dangling.map_or("?", |one| string_at(one, "/status"))),
    ]
}

fn priority_level(level: &Value, old: Value) -> Vec<Value> {
    let cell = |pointer: &str| value_at(level, pointer).cloned().unwrap_or_else(|| json!("<none>"));
    let queues = "/spec/limited/limitResponse/queuing";
    vec![
        level["spec"]["type"].clone(),
        cell("/spec/limited/nominalConcurrencyShares"),
        cell(&format!("{queues}/queues")),
        cell(&format!("{queues}/handSize")),
        cell(&format!("{queues}/queueLengthLimit")),
        old,
    ]
}

fn parent(address: &Value) -> String {
    let part = |field: &str| string_at(address, &format!("/spec/parentRef/{field}")).to_owned();
    let resource = match part("group") {
        group if group.is_empty() => part("resource"),
        group => format!("{}.{group}", part("resource")),
    };
    format!("{resource}/{}/{}", part("namespace"), part("name"))
}
