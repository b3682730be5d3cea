//! Rows for people, as `kubectl get` prints them: a name, a few facts of the kind, and the age.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::pointer::{list, name, text};
use crate::registry::Target;
use crate::render::partial;

/// The columns between name and age.
fn columns(target: &Target) -> Vec<(String, String)> {
    let fixed: &[(&str, &str)] = match (target.resource.custom, target.resource.kind.as_str()) {
        (false, "Namespace") => &[("Status", "string")],
        (false, "ConfigMap") => &[("Data", "integer")],
        (false, "Secret") => &[("Type", "string"), ("Data", "integer")],
        (false, "Service") => &[("Type", "string"), ("Cluster-IP", "string"), ("Port(s)", "string")],
        (false, "Deployment") => &[("Ready", "string"), ("Up-to-date", "integer"), ("Available", "integer")],
        _ => &[],
    };
    let fixed = fixed.iter().map(|(title, kind)| ((*title).to_owned(), (*kind).to_owned()));
    let extra = target.version.columns.iter().filter(|column| text(column, "/name") != "Age");
    fixed.chain(extra.map(|column| (text(column, "/name").to_owned(), text(column, "/type").to_owned()))).collect()
}

fn facts(target: &Target, object: &Value) -> Vec<Value> {
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    if target.resource.custom {
        let columns = target.version.columns.iter().filter(|column| text(column, "/name") != "Age");
        return columns.map(|column| at_path(object, text(column, "/jsonPath"))).collect();
    }
    match target.resource.kind.as_str() {
        "Namespace" => vec![json!(text(object, "/status/phase"))],
        "ConfigMap" => vec![json!(count("/data") + count("/binaryData"))],
        "Secret" => vec![json!(text(object, "/type")), json!(count("/data"))],
        "Service" => {
            vec![json!(text(object, "/spec/type")), json!(text(object, "/spec/clusterIP")), json!(ports(object))]
        }
        "Deployment" => {
            let ready = format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas"));
            vec![json!(ready), json!(number("/status/updatedReplicas")), json!(number("/status/availableReplicas"))]
        }
        _ => Vec::new(),
    }
}

fn ports(service: &Value) -> String {
    let port = |port: &Value| {
        let number = port.get("port").map(Value::to_string).unwrap_or_default();
        format!("{number}/{}", text(port, "/protocol"))
    };
    let ports: Vec<String> = list(service, "/spec/ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

/// A plain path such as `.spec.size`; filters and indices are left out.
fn at_path(object: &Value, path: &str) -> Value {
    let found = path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part));
    found.cloned().unwrap_or(Value::Null)
}

pub(crate) fn table(target: &Target, now: Timestamp, objects: &[Arc<Value>], metadata: Value) -> Value {
    let column = |title: &str, kind: &str, format: &str| json!({"name": title, "type": kind, "format": format, "description": "", "priority": 0});
    let mut definitions = vec![column("Name", "string", "name")];
    definitions.extend(columns(target).iter().map(|(title, kind)| column(title, kind, "")));
    definitions.push(column("Age", "string", ""));
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![json!(name(object))];
            cells.extend(facts(target, object));
            cells.push(json!(age(now, text(object, "/metadata/creationTimestamp"))));
            json!({"cells": cells, "object": partial(object)})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// How long ago, as `kubectl` writes it.
fn age(now: Timestamp, created: &str) -> String {
    let Ok(created) = created.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = now.duration_since(created).as_secs().max(0);
    let pair = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_does() {
        let created = "2026-01-01T00:00:00Z";
        let start: Timestamp = created.parse().expect("valid");
        for (seconds, expected) in
            [(5, "5s"), (119, "119s"), (150, "2m30s"), (3_600, "60m"), (12_600, "3h30m"), (90_000, "25h")]
        {
            let now = start + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age(now, created), expected);
        }
    }
}
