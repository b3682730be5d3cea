//! Difference between two states of an object, field by field.

use serde_json::Value;
use sindri_model::ObjectKey;
use sindri_model::ownership::CHECKSUM_ANNOTATION;

/// Number of lines; further ones are counted.
const LINES_MAX: usize = 40;
/// Characters of a value; longer ones are cut.
const VALUE_CHARS_MAX: usize = 80;
/// Metadata that the server sets.
const SERVER_FIELDS: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
/// Annotation in which `kubectl apply` keeps the whole manifest, the values of a Secret too.
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Fields of a Secret whose values are shown: any other one may hold a part of its content.
const SHOWN_OF_SECRETS: [&str; 8] = [
    "apiVersion",
    "kind",
    "type",
    "immutable",
    "metadata.name",
    "metadata.labels.",
    "metadata.annotations.brokkr.io/",
    "metadata.annotations.sindri.dev/",
];

/// Returns one line for each field that differs, except for the fields that the server sets, the checksum of the revision and
/// the manifest that kubectl keeps. Of a Secret most values are hidden, and only the names of their fields are shown.
pub fn diff(key: &ObjectKey, before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let is_secret = key.group.is_empty() && key.kind == "Secret";
    compare(&mut lines, "", &without_server_fields(before), &without_server_fields(after), is_secret);
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

fn without_server_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        SERVER_FIELDS.iter().for_each(|field| {
            metadata.remove(*field);
        });
    }
    // It has the checksum of the whole bundle, and changes with each other object.
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(CHECKSUM_ANNOTATION);
        annotations.remove(LAST_APPLIED_ANNOTATION);
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
                let (old, new) = (old.get(name).unwrap_or(&Value::Null), new.get(name).unwrap_or(&Value::Null));
                compare(lines, &path, old, new, is_secret);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(lines, &format!("{path}[{index}]"), old, new, is_secret);
            }
        }
        // A missing mapping of a Secret is compared as an empty one, so that its values stay hidden.
        (Value::Null, Value::Object(_)) | (Value::Object(_), Value::Null) if is_secret => {
            let empty = Value::Object(serde_json::Map::new());
            let or_empty = |value: &Value| if value.is_null() { empty.clone() } else { value.clone() };
            compare(lines, path, &or_empty(before), &or_empty(after), is_secret);
        }
        _ if is_secret && !SHOWN_OF_SECRETS.iter().any(|shown| path.starts_with(shown)) => {
            lines.push(format!("{path}: (hidden) → (hidden)"));
        }
        (old, new) => lines.push(format!("{path}: {} → {}", format_value(old), format_value(new))),
    }
}

fn format_value(value: &Value) -> String {
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
    fn only_differences_are_listed_without_fields_of_the_server() {
        let before =
            json!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"a": "1", "b": "2"}, "status": 1});
        let after =
            json!({"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"a": "9", "c": "3"}, "status": 2});
        let lines = diff(&key("ConfigMap"), &before, &after);
        assert_eq!(lines, ["data.a: \"1\" → \"9\"", "data.b: \"2\" → (none)", "data.c: (none) → \"3\""]);
        assert_eq!(diff(&key("ConfigMap"), &before, &before), [""; 0]);
    }

    #[test]
    fn the_checksum_of_the_revision_is_no_difference() {
        let object =
            |sum: &str, note: &str| json!({"metadata": {"annotations": {CHECKSUM_ANNOTATION: sum, "note": note}}});
        assert_eq!(diff(&key("ConfigMap"), &object("1", "a"), &object("2", "a")), [""; 0]);
        let lines = diff(&key("ConfigMap"), &object("1", "a"), &object("2", "b"));
        assert_eq!(lines, ["metadata.annotations.note: \"a\" → \"b\""]);
    }

    #[test]
    fn of_a_secret_only_the_names_of_its_fields_are_listed() {
        let before = json!({"metadata": {"name": "a"}, "data": {"a": "aHVudGVyMg=="}});
        let after = json!({"metadata": {"name": "a"}, "data": {"a": "b3RoZXI=", "new": "c2VjcmV0"}});
        let lines = diff(&key("Secret"), &before, &after).join("\n");
        assert_eq!(lines, "data.a: (hidden) → (hidden)\ndata.new: (hidden) → (hidden)");
        let created = diff(&key("Secret"), &Value::Null, &after).join("\n");
        assert!(created.contains("data.new: (hidden)") && !created.contains("c2VjcmV0"), "{created}");
    }

    #[test]
    fn annotations_of_other_clients_may_hold_the_values_of_a_secret() {
        let annotated = |value: &str| {
            let annotations = json!({
                LAST_APPLIED_ANNOTATION: value, "example.com/copy": value, "sindri.dev/prune": value, "brokkr.io/a": value,
            });
            json!({"metadata": {"annotations": annotations, "labels": {"app": value}}, "type": value})
        };
        let lines = diff(&key("Secret"), &annotated("hunter2"), &annotated("3")).join("\n");
        let shown = ["annotations.brokkr.io/a", "annotations.sindri.dev/prune", "labels.app", "type"];
        assert_eq!(lines.matches("hunter2").count(), shown.len(), "{lines}");
        assert!(shown.iter().all(|field| lines.contains(&format!("{field}: \"hunter2\""))), "{lines}");
        assert!(lines.contains("annotations.example.com/copy: (hidden) → (hidden)"), "{lines}");
        assert!(!lines.contains("last-applied"), "{lines}");
    }
}
