//! JSON merge patch and strategic merge patch.
//!
//! Strategic merge patch supports the list types of the shape and every directive.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::shape::Shape;

const DIRECTIVE: &str = "$patch";
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
/// With the API server's message, if an element lacks its merge key or a directive is unknown.
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
    if let Some(directive) = changes.get(DIRECTIVE) {
        return match directive.as_str() {
            // The content is copied verbatim, including other directives.
            Some("replace") => {
                Ok(changes.iter().filter(|(name, _)| *name != DIRECTIVE).map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            Some("delete") => Ok(Value::Object(Map::new())),
            _ => Err(unknown_directive(directive, changes)),
        };
    }
    let mut merged = live.as_object().cloned().unwrap_or_default();
    if let Some(kept) = changes.get(RETAIN_KEYS).and_then(Value::as_array) {
        merged.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, change) in changes.iter().filter(|(name, _)| !name.starts_with('$')) {
        if change.is_null() {
            merged.remove(name);
            continue;
        }
        let known = merged.get(name).filter(|known| is_mergeable(known, change));
        let patched = match known {
            Some(known) => Some(strategic_patch(shape.field(name), known, change)?),
            None => new_value(change),
        };
        match patched {
            Some(patched) => drop(merged.insert(name.clone(), patched)),
            None => drop(merged.remove(name)),
        }
    }
    for (name, value) in changes {
        if let Some(field) = name.strip_prefix(DELETE_FROM_LIST) {
            remove_elements(&mut merged, field, value);
        } else if let Some(field) = name.strip_prefix(ELEMENT_ORDER) {
            set_element_order(shape.field(field), &mut merged, field, value);
        }
    }
    Ok(Value::Object(merged))
}

fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> String {
    format!("unknown patch type: {} in map: {}", format_go(directive), format_go(&Value::Object(map.clone())))
}

/// True if both values are maps or both are lists, so that one can be merged into the other.
fn is_mergeable(known: &Value, change: &Value) -> bool {
    matches!((known, change), (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)))
}

/// Returns the value that a change creates where the live object has none: without directives and nulls. `None` if the
/// change itself is a directive.
fn new_value(change: &Value) -> Option<Value> {
    match change {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let fields = map.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Some(fields.filter_map(|(name, value)| Some((name.clone(), new_value(value)?))).collect())
        }
        Value::Array(list) => Some(list.iter().filter_map(new_value).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(change.clone()),
    }
}

fn remove_elements(map: &mut Map<String, Value>, field: &str, removed: &Value) {
    let removed = removed.as_array().map_or(&[] as &[Value], Vec::as_slice);
    if let Some(list) = map.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(|element| !removed.contains(element));
    }
}

/// Sorts the elements that the order names into that order; the others stay behind the element that they followed.
fn set_element_order(shape: &Shape, map: &mut Map<String, Value>, field: &str, order: &Value) {
    let (Some(list), Some(order)) = (map.get_mut(field).and_then(Value::as_array_mut), order.as_array()) else {
        return;
    };
    let position =
        |element: &Value| order.iter().position(|ordered| shape.patch_key(ordered) == shape.patch_key(element));
    let mut ordered: Vec<(usize, Value)> = Vec::with_capacity(list.len());
    let mut last = 0;
    for element in std::mem::take(list) {
        last = position(&element).unwrap_or(last);
        ordered.push((last, element));
    }
    ordered.sort_by_key(|(position, _)| *position);
    *list = ordered.into_iter().map(|(_, element)| element).collect();
}

fn strategic_list(shape: &Shape, live: &[Value], changes: &[Value]) -> Result<Value, String> {
    match shape {
        Shape::Set => {
            let mut merged = live.to_vec();
            for change in changes {
                if !merged.contains(change) {
                    merged.push(change.clone());
                }
            }
            Ok(Value::Array(sort_merged_list(merged, changes, live, |element| Some(element))))
        }
        Shape::Keyed { keys, item } => {
            let name = keys.first().map(|key| key.name.as_str()).unwrap_or_default();
            merge_keyed_list(item, name, live, changes)
        }
        Shape::Deduced | Shape::Atomic | Shape::Struct(_) | Shape::Map(_) => Ok(Value::Array(changes.to_vec())),
    }
}

/// Merges a keyed list. A strategic merge patch identifies elements by the first key only, and evaluates elements with a
/// directive first, independent of their position.
fn merge_keyed_list(item: &Shape, key: &str, live: &[Value], changes: &[Value]) -> Result<Value, String> {
    let missing_key_error =
        |change: &Value| format!("map: {} does not contain declared merge key: {key}", format_go(change));
    let (mut known, mut plain, mut replaces) = (live.to_vec(), Vec::new(), false);
    for change in changes {
        match change.get(DIRECTIVE) {
            None => plain.push(change.clone()),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let identity = change.get(key).ok_or_else(|| missing_key_error(change))?;
                    known.retain(|other| other.get(key) != Some(identity));
                }
                Some("replace") => replaces = true,
                Some("merge") => return Err("merging lists cannot yet be specified in the patch".to_owned()),
                _ => return Err(change.as_object().map(|map| unknown_directive(directive, map)).unwrap_or_default()),
            },
        }
    }
    if replaces {
        return Ok(Value::Array(plain));
    }
    let mut merged = known.clone();
    for change in &plain {
        let identity = change.get(key).ok_or_else(|| missing_key_error(change))?;
        match merged.iter().position(|other| other.get(key) == Some(identity)) {
            Some(position) => merged[position] = strategic_patch(item, &merged[position], change)?,
            None => merged.push(change.clone()),
        }
    }
    Ok(Value::Array(sort_merged_list(merged, &plain, &known, |element| element.get(key))))
}

/// Sorts merged elements: those in the patch by their order in the patch, the others by their order in the live list; an
/// element of each is compared by their order in the live list.
fn sort_merged_list(
    merged: Vec<Value>,
    patch: &[Value],
    live: &[Value],
    identity: impl Fn(&Value) -> Option<&Value>,
) -> Vec<Value> {
    let position = |list: &[Value], element: &Value| list.iter().position(|other| identity(other) == identity(element));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| position(patch, element).is_some());
    named.sort_by_key(|element| position(patch, element));
    others.sort_by_key(|element| position(live, element));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut ordered = Vec::new();
    while let (Some(right), Some(left)) = (named.peek(), others.peek()) {
        let before = match (position(live, left), position(live, right)) {
            (Some(left), Some(right)) => left < right,
            _ => false,
        };
        ordered.extend(if before { others.next() } else { named.next() });
    }
    ordered.extend(named);
    ordered.extend(others);
    ordered
}

/// Formats a value as Go's `%v` does.
fn format_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(format_go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let parts: Vec<String> =
                sorted.into_iter().map(|(name, value)| format!("{name}:{}", format_go(value))).collect();
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
    fn a_merge_patch_removes_null_fields_and_merges_maps() {
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
