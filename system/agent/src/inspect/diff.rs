//! What would change in an object, field by field.

use serde_json::Value;
use sindri_model::ObjectKey;

/// More lines say no more.
const LINES_MAX: usize = 40;
/// Longer values are cut.
const VALUE_CHARS_MAX: usize = 80;
/// What the server writes for itself.
const OF_THE_SERVER: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];

/// One line for each field that differs; nothing of a Secret but the names of its fields.
pub fn diff(key: &ObjectKey, before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let is_secret = key.group.is_empty() && key.kind == "Secret";
    compare(&mut lines, "", &stripped(before), &stripped(after), is_secret);
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        OF_THE_SERVER.iter().for_each(|field| {
            metadata.remove(*field);
        });
    }
    object
}

fn compare(lines: &mut Vec<String>, path: &str, before: &Value, after: &Value, is_secret: bool) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let hides = is_secret && matches!(path.split('.').next(), Some("data" | "stringData"));
                let (old, new) = (old.get(name).unwrap_or(&Value::Null), new.get(name).unwrap_or(&Value::Null));
                if hides && path.contains('.') {
                    lines.extend((old != new).then(|| format!("{path}: (hidden) → (hidden)")));
                } else {
                    compare(lines, &path, old, new, is_secret);
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(lines, &format!("{path}[{index}]"), old, new, is_secret);
            }
        }
        // Only its names may be told.
        (Value::Null, Value::Object(_)) | (Value::Object(_), Value::Null) if is_secret => {
            let empty = Value::Object(serde_json::Map::new());
            let or_empty = |value: &Value| if value.is_null() { empty.clone() } else { value.clone() };
            compare(lines, path, &or_empty(before), &or_empty(after), is_secret);
        }
        (old, new) => lines.push(format!("{path}: {} → {}", shown(old), shown(new))),
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() {
        return "(none)".to_owned();
    }
    let text = value.to_string();
    let cut: String = text.chars().take(VALUE_CHARS_MAX).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(kind: &str) -> ObjectKey {
        ObjectKey { group: String::new(), kind: kind.into(), namespace: Some("shop".into()), name: "a".into() }
    }

    #[test]
    fn only_what_differs_is_told_and_not_what_the_server_writes() {
        let before =
            json!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"a": "1", "b": "2"}, "status": 1});
        let after =
            json!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"a": "9", "c": "3"}, "status": 2});
        let lines = diff(&key("ConfigMap"), &before, &after);
        assert_eq!(lines, ["data.a: \"1\" → \"9\"", "data.b: \"2\" → (none)", "data.c: (none) → \"3\""]);
        assert_eq!(diff(&key("ConfigMap"), &before, &before), [""; 0]);
    }

    #[test]
    fn of_a_secret_only_the_names_are_told() {
        let before = json!({"metadata": {"name": "a"}, "data": {"a": "aHVudGVyMg=="}});
        let after = json!({"metadata": {"name": "a"}, "data": {"a": "b3RoZXI=", "new": "c2VjcmV0"}});
        let lines = diff(&key("Secret"), &before, &after).join("\n");
        assert_eq!(lines, "data.a: (hidden) → (hidden)\ndata.new: (hidden) → (hidden)");
        let made = diff(&key("Secret"), &Value::Null, &after).join("\n");
        assert!(made.contains("data.new: (hidden)") && !made.contains("c2VjcmV0"), "{made}");
    }
}
