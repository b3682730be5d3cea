//! The older ways to write a part of an object: JSON merge patch and strategic merge patch.
//!
//! Strategic patches know the lists of the shape and the directives `$patch: delete` and `$patch: replace`. Left out on
//! purpose: `$setElementOrder`, `$retainKeys` and `$deleteFromPrimitiveList`, which are dropped from the result.

use serde_json::{Map, Value};

use crate::fieldset::PathElement;
use crate::shape::Shape;

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
#[must_use]
pub fn strategic_patch(shape: &Shape, live: &Value, patch: &Value) -> Value {
    match patch {
        Value::Object(changes) => strategic_map(shape, live, changes),
        Value::Array(changes) => {
            let live = live.as_array().map_or(&[] as &[Value], Vec::as_slice);
            strategic_list(shape, live, changes)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => patch.clone(),
    }
}

fn strategic_map(shape: &Shape, live: &Value, changes: &Map<String, Value>) -> Value {
    let replace = directive(changes) == Some("replace");
    let mut merged = if replace { Map::new() } else { live.as_object().cloned().unwrap_or_default() };
    for (name, change) in changes.iter().filter(|(name, _)| !name.starts_with('$')) {
        if change.is_null() {
            merged.remove(name);
        } else {
            let patched = strategic_patch(shape.field(name), merged.get(name).unwrap_or(&Value::Null), change);
            merged.insert(name.clone(), patched);
        }
    }
    Value::Object(merged)
}

fn strategic_list(shape: &Shape, live: &[Value], changes: &[Value]) -> Value {
    let (Some((old, item)), Some((new, _))) = (shape.items(live), shape.items(changes)) else {
        return Value::Array(changes.to_vec());
    };
    let mut merged: Vec<(PathElement, Value)> = old.into_iter().map(|(key, value)| (key, value.clone())).collect();
    for (key, change) in new {
        let position = merged.iter().position(|(other, _)| *other == key);
        let deleted = change.as_object().and_then(directive) == Some("delete");
        match (position, deleted) {
            (Some(position), true) => drop(merged.remove(position)),
            (Some(position), false) => merged[position].1 = strategic_patch(item, &merged[position].1, change),
            (None, true) => {}
            (None, false) => merged.push((key, strategic_patch(item, &Value::Null, change))),
        }
    }
    Value::Array(merged.into_iter().map(|(_, value)| value).collect())
}

fn directive(map: &Map<String, Value>) -> Option<&str> {
    map.get("$patch").and_then(Value::as_str)
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
        let merged = strategic_patch(&Shape::well_known("Deployment"), &live, &patch);
        assert_eq!(merged, containers(json!([{"name": "a", "image": "2"}, {"name": "c"}])));
    }
}
