//! Finds a value inside a JSON value: `/status/conditions/type=Ready/status`.
//!
//! A JSON pointer with one extension: a part with `=` selects the element of a list by one of its fields, whose path is separated
//! by dots: `/items/metadata.name=web`.

use serde_json::Value;

/// Returns the value at a pointer, if there is one.
pub fn find<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, part| step(value, &unescape(part)))
}

fn step<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match (value, part.split_once('=')) {
        (Value::Array(elements), Some((key, expected))) => {
            let pointer = format!("/{}", key.replace('.', "/"));
            elements.iter().find(|element| element.pointer(&pointer).is_some_and(|value| value == expected))
        }
        (Value::Array(elements), None) => elements.get(part.parse::<usize>().ok()?),
        (Value::Object(fields), _) => fields.get(part),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => None,
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_positions_and_selected_elements_are_found() {
        let value = json!({"a/b": [{"type": "X", "status": "True"}, {"type": "Y", "status": "False"}]});
        assert_eq!(find(&value, "/a~1b/type=Y/status"), Some(&json!("False")));
        assert_eq!(find(&value, "/a~1b/0/type"), Some(&json!("X")));
        assert_eq!(find(&value, "/a~1b/type=Z/status"), None);
        assert_eq!(find(&value, ""), Some(&value));
        let list = json!([{"metadata": {"name": "x"}, "n": 1}, {"metadata": {"name": "y.z"}, "n": 2}]);
        assert_eq!(find(&list, "/metadata.name=y.z/n"), Some(&json!(2)));
    }
}
