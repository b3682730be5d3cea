//! JSON patch (RFC 6902).

use serde_json::Value;

/// Largest number of operations, as in the real server.
const OPERATIONS_MAX: usize = 10_000;

/// Nesting limit of the result: that of the parser. Copies could otherwise nest without limit.
const DEPTH_MAX: usize = 128;

/// Applies the operations in order; the first that fails rejects the whole patch.
pub(super) fn apply(document: &Value, patch: &Value) -> Result<Value, String> {
    let operations = patch.as_array().ok_or("a JSON patch is a list of operations")?;
    if operations.len() > OPERATIONS_MAX {
        return Err(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        ));
    }
    let mut patched = document.clone();
    for operation in operations {
        step(&mut patched, operation)?;
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

fn step(document: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = text("path").ok_or("a JSON patch operation has no path")?;
    let value = || operation.get("value").cloned().ok_or_else(|| format!("no value for {path}"));
    let from = || text("from").ok_or_else(|| format!("no from for {path}"));
    match text("op").unwrap_or_default() {
        "add" => add(document, path, value()?),
        "remove" => remove(document, path).map(drop),
        "replace" => replace(document, path, value()?),
        "test" => {
            let (found, wanted) = (get(document, path)?, operation.get("value").unwrap_or(&Value::Null));
            if found.unwrap_or(&Value::Null) == wanted { Ok(()) } else { Err(format!("testing value {path} failed")) }
        }
        "move" => {
            let moved = remove(document, from()?)?;
            add(document, path, moved)
        }
        "copy" => {
            // A missing field is copied as null.
            let copied = get(document, from()?)?.cloned().unwrap_or_default();
            add(document, path, copied)
        }
        other => Err(format!("unexpected kind of operation: {other}")),
    }
}

/// Returns the value at a path; a missing field of a map is null, a missing element of a list is an error.
fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, String> {
    if path.is_empty() {
        return Ok(Some(document));
    }
    let missing = || format!("the path {path} does not exist");
    match parent(document, path)? {
        (Value::Object(map), name) => Ok(map.get(&name)),
        (Value::Array(list), index) => {
            let index = index_in(list.len(), &index).ok_or_else(missing)?;
            list.get(index).map(Some).ok_or_else(missing)
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
    let missing = || format!("the path {path} does not exist");
    match parent(document, path)? {
        (Value::Object(map), name) => drop(map.insert(name, value)),
        (Value::Array(list), index) => {
            let index = index_in(list.len(), &index).ok_or_else(missing)?;
            *list.get_mut(index).ok_or_else(missing)? = value;
        }
        _ => return Err(missing()),
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

fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let (above, last) = path.rsplit_once('/').ok_or_else(|| format!("the path {path} is not a pointer"))?;
    let found = document.pointer_mut(above).ok_or_else(|| format!("the path {path} does not exist"))?;
    Ok((found, last.replace("~1", "/").replace("~0", "~")))
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    match parent(document, path)? {
        (Value::Object(map), name) => drop(map.insert(name, value)),
        (Value::Array(list), index) => {
            let length = list.len();
            let position = if index == "-" { Some(length) } else { index_in(length + 1, &index) };
            let position = position
                .filter(|position| *position <= length)
                .ok_or_else(|| format!("the index {index} is out of bounds"))?;
            list.insert(position, value);
        }
        _ => return Err(format!("the path {path} does not exist")),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let missing = || format!("the path {path} does not exist");
    match parent(document, path)? {
        (Value::Object(map), name) => map.remove(&name).ok_or_else(missing),
        (Value::Array(list), index) => {
            let index = index_in(list.len(), &index).ok_or_else(missing)?;
            if index < list.len() { Ok(list.remove(index)) } else { Err(missing()) }
        }
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
    fn a_failed_test_rejects_the_whole_patch() {
        assert!(apply(&json!({"a": 1}), &json!([{"op": "test", "path": "/a", "value": 2}])).is_err());
        assert!(apply(&json!({"a": 1}), &json!([{"op": "remove", "path": "/b"}])).is_err());
        assert!(apply(&json!({"a": 1}), &json!([{"op": "remove", "path": "/b/c"}])).is_err());
        assert!(apply(&json!({"a": [1]}), &json!([{"op": "add", "path": "/a/5", "value": 2}])).is_err());
    }
}
