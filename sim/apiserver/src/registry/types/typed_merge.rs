//! Checks an applied object against its type: all errors at once, with the messages of the structured-merge library.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use serde_json::{Map, Value};

use super::schema_type::{ListType, SchemaType};
use super::value_type::ValueType;

/// Maximum number of reported errors.
const ERRORS_MAX: usize = 100;

/// Returns all errors of an applied object; empty if it matches its type.
pub(crate) fn find_errors(schema_type: &SchemaType, applied: &Value) -> Vec<String> {
    let mut checker = TypeChecker { errors: Vec::new(), path: String::new() };
    checker.check_value(schema_type, applied);
    checker.errors
}

/// Joins errors to one message.
pub(crate) fn format_errors(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

/// State of a check: the errors so far, and the path of the value being checked.
struct TypeChecker {
    errors: Vec<String>,
    path: String,
}

impl TypeChecker {
    fn add_error(&mut self, message: &str) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(format!("{}: {message}", self.path));
        }
    }

    fn with_element(&mut self, part: impl fmt::Display, check: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        // Writing to a String does not fail.
        let _written = write!(self.path, "{part}");
        check(self);
        self.path.truncate(before);
    }

    fn with_field(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        check(self);
        self.path.truncate(before);
    }

    fn check_value(&mut self, schema_type: &SchemaType, value: &Value) {
        match (schema_type.value_type, value) {
            (_, Value::Null) | (ValueType::Any | ValueType::IntOrString | ValueType::Quantity, _) => {}
            (ValueType::Struct, Value::Object(map)) => self.check_struct(schema_type, map),
            (ValueType::Map, Value::Object(map)) => self.check_map(schema_type, map),
            (ValueType::List, Value::Array(list)) => self.check_list(schema_type, list),
            (ValueType::Struct | ValueType::Map, other) => {
                self.add_error(&format!("expected map, got &{{{}}}", format_go(other)))
            }
            (ValueType::List, other) => self.add_error(&format!("expected list, got &{{{}}}", format_go(other))),
            (ValueType::Boolean, Value::Bool(_)) | (ValueType::Integer | ValueType::Number, Value::Number(_)) => {}
            (ValueType::String | ValueType::Time | ValueType::MicroTime, Value::String(_)) => {}
            (ValueType::Boolean, other) => self.add_error(&format!("expected boolean, got &{{{}}}", format_go(other))),
            (ValueType::Integer | ValueType::Number, other) => {
                self.add_error(&format!("expected numeric (int or float), got {}", go_type_name(other)));
            }
            (ValueType::String | ValueType::Time | ValueType::MicroTime, other) => {
                self.add_error(&format!("expected string, got &value.valueUnstructured{{Value:{}}}", format_go(other)));
            }
        }
    }

    fn check_struct(&mut self, schema_type: &SchemaType, map: &Map<String, Value>) {
        for (name, value) in map {
            self.with_field(name, |checker| match schema_type.field(name) {
                Some(field) => checker.check_value(field.field_type(), value),
                None if schema_type.keeps_unknown => {}
                None => checker.add_error("field not declared in schema"),
            });
        }
    }

    fn check_map(&mut self, schema_type: &SchemaType, map: &Map<String, Value>) {
        let Some(values) = schema_type.element() else { return };
        for (name, value) in map {
            self.with_field(name, |checker| checker.check_value(values, value));
        }
    }

    fn check_list(&mut self, schema_type: &SchemaType, list: &[Value]) {
        let Some(items) = schema_type.element() else { return };
        let mut seen = BTreeSet::new();
        for (index, value) in list.iter().enumerate() {
            let identity = item_identity(schema_type, items, value);
            match identity {
                Ok(Some(part)) => {
                    if !seen.insert(part.clone()) {
                        self.add_error(&format!("duplicate entries for key {part}"));
                    }
                    self.with_element(&part, |checker| checker.check_value(items, value));
                }
                Ok(None) => self.with_element(format_args!("[{index}]"), |checker| checker.check_value(items, value)),
                Err(message) => {
                    self.with_element(format_args!(": element {index}"), |checker| checker.add_error(&message));
                }
            }
        }
    }
}

/// Returns the path element that identifies an item of a set or keyed list.
fn item_identity(schema_type: &SchemaType, items: &SchemaType, value: &Value) -> Result<Option<String>, String> {
    match &schema_type.list_type {
        ListType::Set => Ok(Some(format!("[={value}]"))),
        ListType::Keyed(keys) => {
            let mut parts = Vec::new();
            for key in keys {
                let default = items.field(key).and_then(|field| field.default.as_ref());
                parts.extend(value.get(key).or(default).map(|value| format!("{key}={value}")));
            }
            if parts.is_empty() {
                let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            Ok(Some(format!("[{}]", parts.join(","))))
        }
        ListType::Atomic => Ok(None),
    }
}

/// Formats a value as Go's `%v` does.
pub(crate) fn format_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(format_go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let sorted: std::collections::BTreeMap<&String, &Value> = map.iter().collect();
            let parts: Vec<String> =
                sorted.into_iter().map(|(name, value)| format!("{name}:{}", format_go(value))).collect();
            format!("map[{}]", parts.join(" "))
        }
    }
}

fn go_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::types;
    use super::*;

    #[test]
    fn all_errors_are_reported_at_once() {
        let schema_type = types().find_kind("apps", "v1", "Deployment").expect("recorded");
        let errors = find_errors(schema_type, &json!({"spec": {"paused": "yes", "replicas": "three"}}));
        let expected = [
            ".spec.paused: expected boolean, got &{yes}",
            ".spec.replicas: expected numeric (int or float), got string",
        ];
        assert_eq!(errors, expected);
    }

    #[test]
    fn items_whose_keys_are_equal_by_default_are_duplicates() {
        let schema_type = types().find_kind("", "v1", "Service").expect("recorded");
        let errors =
            find_errors(schema_type, &json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}}));
        assert_eq!(errors, [".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]"]);
    }
}
