//! Objects of a new control plane from a recording, whose times are replaced by the start time.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{array_at, format_timestamp, metadata, string_at};
use crate::object::key::StoredKey;

/// Lists of recorded objects: `[{"group", "plural", "apiVersion", "kind", "items"}]`.
const RECORDED: &str = include_str!(concat!(env!("OUT_DIR"), "/bootstrap.json"));
/// Time in the recording.
const RECORDED_TIME: &str = "2000-01-01T00:00:00Z";

/// Returns the recorded objects with their keys.
pub(super) fn objects(now: Timestamp) -> Vec<(StoredKey, Value)> {
    let text = RECORDED.replace(RECORDED_TIME, &format_timestamp(now));
    let lists: Vec<Value> = serde_json::from_str(&text).expect("the build script wrote JSON");
    lists.iter().flat_map(|list| array_at(list, "/items").iter().map(|item| to_object(list, item))).collect()
}

fn to_object(list: &Value, item: &Value) -> (StoredKey, Value) {
    let (api_version, kind) = (string_at(list, "/apiVersion"), string_at(list, "/kind"));
    let mut object = item.clone();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    let namespace = string_at(item, "/metadata/namespace");
    let key = StoredKey {
        group: string_at(list, "/group").to_owned(),
        version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
        kind: kind.to_owned(),
        plural: string_at(list, "/plural").to_owned(),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        name: string_at(item, "/metadata/name").to_owned(),
    };
    (key, object)
}

/// Removes the rules of an aggregated ClusterRole and their manager.
pub(super) fn clear_aggregated_rules(role: &mut Value) {
    if role.get("aggregationRule").is_none() {
        return;
    }
    role["rules"] = Value::Null;
    let managers = metadata(role).get_mut("managedFields").and_then(Value::as_array_mut);
    managers.into_iter().for_each(|managers| managers.retain(|manager| manager["operation"] != "Apply"));
}
