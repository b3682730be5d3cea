//! Access to the fields of an object that the server itself reads and writes.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

/// Formats a time as in objects: RFC 3339 in whole seconds.
pub(crate) fn format_timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Adds a duration to a time, up to the largest time.
pub(crate) fn add_duration(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// Returns the value at a JSON pointer. Faster than `Value::pointer`, which copies every part: lists call it for each object.
pub(crate) fn value_at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.bytes().any(|byte| byte == b'~') {
        return object.pointer(pointer);
    }
    let (mut value, mut rest) = (object, pointer);
    while let Some(parts) = rest.strip_prefix('/') {
        // Parts are short: a loop over the bytes is faster than a search.
        let end = parts.bytes().position(|byte| byte == b'/').unwrap_or(parts.len());
        let (part, others) = parts.split_at(end);
        value = match value {
            Value::Object(fields) => fields.get(part)?,
            Value::Array(elements) => elements.get(part.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        rest = others;
    }
    Some(value)
}

/// Returns the string at a JSON pointer, or an empty one.
pub(crate) fn string_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    value_at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    string_at(object, "/metadata/name")
}

pub(crate) fn uid(object: &Value) -> &str {
    string_at(object, "/metadata/uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    string_at(object, "/metadata/resourceVersion")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    value_at(object, "/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns the elements of the array at a JSON pointer, or none.
pub(crate) fn array_at<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    value_at(object, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    array_at(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect()
}

/// Returns the metadata of an object, which is added if missing. A value that is not a map becomes one.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        if !object.is_object() {
            *object = json!({});
        }
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("made a map above")
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[&str]) {
    let metadata = metadata(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// Splits an `apiVersion` into group and version.
pub(crate) fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the `apiVersion` of a group and a version.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Adds an element to the list in a field of an object.
pub(crate) fn push(object: &mut Value, field: &str, element: Value) {
    let list = object.as_object_mut().map(|fields| fields.entry(field).or_insert_with(|| json!([])));
    if let Some(list) = list.and_then(Value::as_array_mut) {
        list.push(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_resolve_as_in_serde_json() {
        let object = json!({"a": {"b": [1, {"c": null}]}, "x/y": {"~": true}, "": 1, "0": 2});
        let pointers = [
            "", "/", "/a", "/a/b", "/a/b/0", "/a/b/1/c", "/a/b/2", "/a/b/x", "/a/b/c", "/x~1y", "/x~1y/~0", "/0",
            "/n/m",
        ];
        for pointer in pointers {
            assert_eq!(value_at(&object, pointer), object.pointer(pointer), "{pointer}");
        }
    }
}
