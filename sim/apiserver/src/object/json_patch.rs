//! JSON patch (RFC 6902).

use serde_json::Value;

/// Largest number of operations, as in the real server.
const OPERATIONS_MAX: usize = 10_000;

/// Nesting limit of the result: that of the parser. Copies could otherwise nest without limit.
const DEPTH_MAX: usize = 128;

/// Largest number of bytes that the copies of a patch may have together, as in the real server. Without this limit a
/// document doubles with each operation.
const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Cause of most errors.
const MISSING: &str = "missing value";

/// Applies the operations in order; the first that fails rejects the whole patch. Errors have the texts of the real server.
pub(crate) fn apply(document: &Value, patch: &Value) -> Result<Value, String> {
    let operations = patch.as_array().ok_or("a JSON patch is a list of operations")?;
    if operations.len() > OPERATIONS_MAX {
        return Err(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        ));
    }
    let mut patched = document.clone();
    let mut copied_bytes = 0;
    for operation in operations {
        step(&mut patched, operation, &mut copied_bytes)?;
    }
    if is_deeper_than(&patched, DEPTH_MAX) {
        return Err(format!("the patched document is nested more than {DEPTH_MAX} levels deep"));
    }
    Ok(patched)
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Object(map) => map.values().any(|value| is_deeper_than(value, below)),
        Value::Array(list) => list.iter().any(|value| is_deeper_than(value, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Executes one operation, and adds the size of what it copies to `copied_bytes`.
fn step(document: &mut Value, operation: &Value, copied_bytes: &mut usize) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let kind = text("op").unwrap_or_default();
    let path = text("path").ok_or_else(|| format!("{kind} operation failed to decode path: {MISSING}"))?;
    let value = || operation.get("value").cloned().ok_or_else(|| format!("operation, missing value field: {MISSING}"));
    let from = || text("from").ok_or_else(|| format!("{kind} operation failed to decode from: {MISSING}"));
    match kind {
        "add" => add(document, path, value()?),
        "remove" => remove(document, path).map(drop),
        "replace" => replace(document, path, value()?),
        "test" => {
            let (found, wanted) = (get(document, path)?, operation.get("value").unwrap_or(&Value::Null));
            if found.unwrap_or(&Value::Null) == wanted {
                Ok(())
            } else {
                Err(format!("testing value {path} failed: test failed"))
            }
        }
        "move" => {
            let moved = remove(document, from()?)?;
            add(document, path, moved)
        }
        "copy" => {
            // A missing field is copied as null.
            let copied = get(document, from()?)?.cloned().unwrap_or_default();
            *copied_bytes += copied.to_string().len();
            if *copied_bytes > COPY_BYTES_MAX {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding the limit {COPY_BYTES_MAX}"
                ));
            }
            add(document, path, copied)
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// Returns the value at a path; a missing field of a map is null, a missing element of a list is an error.
fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, String> {
    if path.is_empty() {
        return Ok(Some(document));
    }
    let missing = || format!("test operation does not apply: is missing path: {path}: {MISSING}");
    match parent(document, path).ok_or_else(missing)? {
        (Value::Object(map), name) => Ok(map.get(&name)),
        (Value::Array(list), index) => {
            let position = index_in(list.len(), &index).filter(|position| *position < list.len());
            position.map(|position| list.get(position)).ok_or_else(|| out_of_bounds("test", path, &index))
        }
        _ => Err(missing()),
    }
}

/// Sets the value at a path. As in the real server, a missing field of a map is added.
fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let missing = |what: &str| format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}");
    match parent(document, path).ok_or_else(|| missing("path"))? {
        (Value::Object(map), name) => drop(map.insert(name, value)),
        (Value::Array(list), index) => {
            let position = index_in(list.len(), &index);
            *position.and_then(|position| list.get_mut(position)).ok_or_else(|| missing("key"))? = value;
        }
        _ => return Err(missing("path")),
    }
    Ok(())
}

/// Parses an index into a list of this length; negative ones count from its end.
fn index_in(length: usize, text: &str) -> Option<usize> {
    match text.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok()?),
        None => text.parse().ok(),
    }
}

/// Returns the map or list that holds the value at a path, and the name or index of the value in it.
fn parent<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (above, last) = path.rsplit_once('/')?;
    Some((document.pointer_mut(above)?, last.replace("~1", "/").replace("~0", "~")))
}

fn out_of_bounds(kind: &str, path: &str, index: &str) -> String {
    format!("error in {kind} for path: '{path}': Unable to access invalid index: {index}: invalid index referenced")
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let missing = || format!("add operation does not apply: doc is missing path: {path:?}: {MISSING}");
    match parent(document, path).ok_or_else(missing)? {
        (Value::Object(map), name) => drop(map.insert(name, value)),
        (Value::Array(list), index) => {
            let length = list.len();
            let position = if index == "-" { Some(length) } else { index_in(length + 1, &index) };
            let position = position.filter(|position| *position <= length);
            list.insert(position.ok_or_else(|| out_of_bounds("add", path, &index))?, value);
        }
        _ => return Err(missing()),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let missing = || format!("remove operation does not apply: doc is missing path: {path:?}: {MISSING}");
    match parent(document, path).ok_or_else(missing)? {
        (Value::Object(map), name) => map.remove(&name).ok_or_else(|| {
            format!("error in remove for path: '{path}': Unable to remove nonexistent key: {name}: {MISSING}")
        }),
        (Value::Array(list), index) => match index_in(list.len(), &index).filter(|position| *position < list.len()) {
            Some(position) => Ok(list.remove(position)),
            None => Err(out_of_bounds("remove", path, &index)),
        },
        _ => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_apply_in_order() {
        let patch = json!([
            {"op": "test", "path": "/a", "value": 1},
            {"op": "add", "path": "/b/-", "value": 3},
            {"op": "move", "from": "/a", "path": "/c~1d"},
            {"op": "remove", "path": "/b/0"},
        ]);
        assert_eq!(apply(&json!({"a": 1, "b": [2]}), &patch), Ok(json!({"b": [3], "c/d": 1})));
    }

    #[test]
    fn copies_are_limited() {
        let document = json!({"a": {"text": "x".repeat(1_000)}});
        let copy = |index: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/{index}")});
        let patch = |copies: usize| Value::Array((0..copies).map(copy).collect());
        assert!(apply(&document, &patch(8)).is_ok());
        let error = apply(&document, &patch(30)).expect_err("too large");
        assert!(error.contains("exceeding the limit 3145728"), "{error}");
    }

    #[test]
    fn a_failed_test_rejects_the_whole_patch() {
        assert!(apply(&json!({"a": 1}), &json!([{"op": "test", "path": "/a", "value": 2}])).is_err());
        assert!(apply(&json!({"a": 1}), &json!([{"op": "remove", "path": "/b"}])).is_err());
        assert!(apply(&json!({"a": 1}), &json!([{"op": "remove", "path": "/b/c"}])).is_err());
        assert!(apply(&json!({"a": [1]}), &json!([{"op": "add", "path": "/a/5", "value": 2}])).is_err());
    }
}
