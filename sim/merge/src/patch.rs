//! The older ways to write a part of an object: JSON merge patch and strategic merge patch.
//!
//! Strategic patches know the lists of the shape and every directive.

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
    if let Some(wanted) = changes.get(DIRECTIVE) {
        return match wanted.as_str() {
            // What is in it is taken as it is, even what would mean something elsewhere.
            Some("replace") => {
                Ok(changes.iter().filter(|(name, _)| *name != DIRECTIVE).map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            Some("delete") => Ok(Value::Object(Map::new())),
            _ => Err(unknown(wanted, changes)),
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
        let known = merged.get(name).filter(|known| is_alike(known, change));
        let patched = match known {
            Some(known) => Some(strategic_patch(shape.field(name), known, change)?),
            None => plain(change),
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
            put_in_order(shape.field(field), &mut merged, field, value);
        }
    }
    Ok(Value::Object(merged))
}

fn unknown(directive: &Value, map: &Map<String, Value>) -> String {
    format!("unknown patch type: {} in map: {}", go(directive), go(&Value::Object(map.clone())))
}

/// Whether two values are of one sort, so that one can be merged into the other.
fn is_alike(known: &Value, change: &Value) -> bool {
    matches!((known, change), (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)))
}

/// A change to what is not there: without directives, without what is null, and nothing if it is a directive itself.
fn plain(change: &Value) -> Option<Value> {
    match change {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let fields = map.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Some(fields.filter_map(|(name, value)| Some((name.clone(), plain(value)?))).collect())
        }
        Value::Array(list) => Some(list.iter().filter_map(plain).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(change.clone()),
    }
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
    match shape {
        Shape::Set => {
            let mut merged = live.to_vec();
            for change in changes {
                if !merged.contains(change) {
                    merged.push(change.clone());
                }
            }
            Ok(Value::Array(in_common_order(merged, changes, live, |element| Some(element))))
        }
        Shape::Keyed { keys, item } => {
            let name = keys.first().map(|key| key.name.as_str()).unwrap_or_default();
            merge_keyed(item, name, live, changes)
        }
        Shape::Deduced | Shape::Atomic | Shape::Struct(_) | Shape::Map(_) => Ok(Value::Array(changes.to_vec())),
    }
}

/// A strategic patch knows elements by the first key alone. Those with a directive come first, whatever their place.
fn merge_keyed(item: &Shape, key: &str, live: &[Value], changes: &[Value]) -> Result<Value, String> {
    let without_key = |change: &Value| format!("map: {} does not contain declared merge key: {key}", go(change));
    let (mut known, mut plain, mut replaces) = (live.to_vec(), Vec::new(), false);
    for change in changes {
        match change.get(DIRECTIVE) {
            None => plain.push(change.clone()),
            Some(wanted) => match wanted.as_str() {
                Some("delete") => {
                    let identity = change.get(key).ok_or_else(|| without_key(change))?;
                    known.retain(|other| other.get(key) != Some(identity));
                }
                Some("replace") => replaces = true,
                Some("merge") => return Err("merging lists cannot yet be specified in the patch".to_owned()),
                _ => return Err(change.as_object().map(|map| unknown(wanted, map)).unwrap_or_default()),
            },
        }
    }
    if replaces {
        return Ok(Value::Array(plain));
    }
    let mut merged = known.clone();
    for change in &plain {
        let identity = change.get(key).ok_or_else(|| without_key(change))?;
        match merged.iter().position(|other| other.get(key) == Some(identity)) {
            Some(position) => merged[position] = strategic_patch(item, &merged[position], change)?,
            None => merged.push(change.clone()),
        }
    }
    Ok(Value::Array(in_common_order(merged, &plain, &known, |element| element.get(key))))
}

/// Elements that a patch names in its order, the others in theirs; of two that were there before, the first comes first.
fn in_common_order(
    merged: Vec<Value>,
    patch: &[Value],
    live: &[Value],
    identity: impl Fn(&Value) -> Option<&Value>,
) -> Vec<Value> {
    let place = |list: &[Value], element: &Value| list.iter().position(|other| identity(other) == identity(element));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| place(patch, element).is_some());
    named.sort_by_key(|element| place(patch, element));
    others.sort_by_key(|element| place(live, element));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut ordered = Vec::new();
    while let (Some(right), Some(left)) = (named.peek(), others.peek()) {
        let before = match (place(live, left), place(live, right)) {
            (Some(left), Some(right)) => left < right,
            _ => false,
        };
        ordered.extend(if before { others.next() } else { named.next() });
    }
    ordered.extend(named);
    ordered.extend(others);
    ordered
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
