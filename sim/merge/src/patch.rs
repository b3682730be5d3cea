//! The older ways to write a part of an object: JSON merge patch and strategic merge patch.
//!
//! Strategic patches know the lists of the shape and every directive.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::shape::Shape;

const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// Applies an RFC 7386 merge patch.
#[must_use]
pub fn merge_patch(live: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut merged = live.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        if change.is_null() {
            merged.remove(name);
        } else {
            let patched = merge_patch(merged.get(name).unwrap_or(&Value::Null), change);
            merged.insert(name.clone(), patched);
        }
    }
    Value::Object(merged)
}

/// Applies a strategic merge patch.
///
/// # Errors
/// In the words of the API server, when an element has no key or a directive is not known.
pub fn strategic_patch(shape: &Shape, live: &Value, patch: &Value) -> Result<Value, String> {
    match patch {
        Value::Object(changes) => strategic_map(shape, live, changes),
        Value::Array(changes) => {
            let live = live.as_array().map_or(&[] as &[Value], Vec::as_slice);
            strategic_list(shape, live, changes)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(patch.clone()),
    }
}

fn strategic_map(shape: &Shape, live: &Value, changes: &Map<String, Value>) -> Result<Value, String> {
    let mut merged = match directive(changes) {
        None | Some("merge") => live.as_object().cloned().unwrap_or_default(),
        Some("replace") => Map::new(),
        Some("delete") => return Ok(Value::Object(Map::new())),
        Some(unknown) => {
            return Err(format!("unknown patch type: {unknown} in map: {}", go(&Value::Object(changes.clone()))));
        }
    };
    if let Some(kept) = changes.get(RETAIN_KEYS).and_then(Value::as_array) {
        merged.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, change) in changes.iter().filter(|(name, _)| !name.starts_with('$')) {
        if change.is_null() {
            merged.remove(name);
        } else {
            let patched = strategic_patch(shape.patched_field(name), merged.get(name).unwrap_or(&Value::Null), change)?;
            merged.insert(name.clone(), patched);
        }
    }
    for (name, value) in changes {
        if let Some(field) = name.strip_prefix(DELETE_FROM_LIST) {
            remove_elements(&mut merged, field, value);
        } else if let Some(field) = name.strip_prefix(ELEMENT_ORDER) {
            put_in_order(shape.patched_field(field), &mut merged, field, value);
        }
    }
    Ok(Value::Object(merged))
}

fn remove_elements(map: &mut Map<String, Value>, field: &str, removed: &Value) {
    let removed = removed.as_array().map_or(&[] as &[Value], Vec::as_slice);
    if let Some(list) = map.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(|element| !removed.contains(element));
    }
}

/// The elements that an order names come in that order; the others stay behind the one that they followed.
fn put_in_order(shape: &Shape, map: &mut Map<String, Value>, field: &str, order: &Value) {
    let (Some(list), Some(order)) = (map.get_mut(field).and_then(Value::as_array_mut), order.as_array()) else {
        return;
    };
    let place = |element: &Value| order.iter().position(|wanted| shape.patch_key(wanted) == shape.patch_key(element));
    let mut ordered: Vec<(usize, Value)> = Vec::with_capacity(list.len());
    let mut last = 0;
    for element in std::mem::take(list) {
        last = place(&element).unwrap_or(last);
        ordered.push((last, element));
    }
    ordered.sort_by_key(|(place, _)| *place);
    *list = ordered.into_iter().map(|(_, element)| element).collect();
}

fn strategic_list(shape: &Shape, live: &[Value], changes: &[Value]) -> Result<Value, String> {
    let is_directive = |change: &Value| change.as_object().and_then(directive) == Some("replace");
    let without = || changes.iter().filter(|change| !is_directive(change)).cloned().collect::<Vec<_>>();
    match shape {
        Shape::Set => {
            // New elements come first.
            let mut merged: Vec<Value> = changes.iter().filter(|change| !live.contains(change)).cloned().collect();
            merged.extend(live.iter().cloned());
            Ok(Value::Array(merged))
        }
        Shape::Keyed { keys, item } if !changes.iter().any(is_directive) => {
            let name = keys.first().map(|key| key.name.as_str()).unwrap_or_default();
            merge_keyed(item, name, live, changes)
        }
        Shape::Keyed { .. } | Shape::Deduced | Shape::Atomic | Shape::Struct(_) | Shape::Map(_) => {
            Ok(Value::Array(without()))
        }
    }
}

/// A strategic patch knows elements by the first key alone, and puts new ones before those that it does not name.
fn merge_keyed(item: &Shape, key: &str, live: &[Value], changes: &[Value]) -> Result<Value, String> {
    let mut merged = live.to_vec();
    let mut added = 0;
    for change in changes {
        let identity = change.get(key);
        if identity.is_none() {
            return Err(format!("map: {} does not contain declared merge key: {key}", go(change)));
        }
        let position = merged.iter().position(|other| other.get(key) == identity);
        let deleted = change.as_object().and_then(directive) == Some("delete");
        match (position, deleted) {
            (Some(position), true) => drop(merged.remove(position)),
            (Some(position), false) => {
                merged[position] = strategic_patch(item, &merged[position], change)?;
                added = position + 1;
            }
            (None, true) => {}
            (None, false) => {
                merged.insert(added.min(merged.len()), strategic_patch(item, &Value::Null, change)?);
                added += 1;
            }
        }
    }
    Ok(Value::Array(merged))
}

fn directive(map: &Map<String, Value>) -> Option<&str> {
    map.get("$patch").and_then(Value::as_str)
}

/// A value as Go prints it.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let parts: Vec<String> = sorted.into_iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            format!("map[{}]", parts.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_removes_and_maps_merge() {
        let merged =
            merge_patch(&json!({"a": {"b": 1, "c": 2}, "d": [1]}), &json!({"a": {"b": null, "e": 3}, "d": [2]}));
        assert_eq!(merged, json!({"a": {"c": 2, "e": 3}, "d": [2]}));
    }

    #[test]
    fn strategic_patches_merge_containers_by_name() {
        let containers = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
        let live = containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
        let patch = containers(json!([{"name": "b", "$patch": "delete"}, {"name": "a", "image": "2"}, {"name": "c"}]));
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"template": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"containers": {
                "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                "items": {"type": "object", "properties": {"name": {}, "image": {}}},
            }}}},
        }}}}});
        let merged = strategic_patch(&Shape::from_schema(&schema), &live, &patch);
        assert_eq!(merged, Ok(containers(json!([{"name": "a", "image": "2"}, {"name": "c"}]))));
    }
}
