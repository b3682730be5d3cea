//! What the structured merge says about a declaration that does not fit its type: everything, in its own words.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use serde_json::{Map, Value};

use super::{ListSort, Sort, Type};

/// How many mistakes are told.
const MISTAKES_MAX: usize = 100;

/// Everything that is wrong with a declaration. Empty when it fits.
pub(crate) fn mistakes(of: &Type, applied: &Value) -> Vec<String> {
    let mut checking = Checking { found: Vec::new(), place: String::new() };
    checking.value(of, applied);
    checking.found
}

/// The mistakes as one text.
pub(crate) fn told(mistakes: &[String]) -> String {
    match mistakes {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

struct Checking {
    found: Vec<String>,
    place: String,
}

impl Checking {
    fn wrong(&mut self, what: &str) {
        if self.found.len() < MISTAKES_MAX {
            self.found.push(format!("{}: {what}", self.place));
        }
    }

    fn at(&mut self, part: impl fmt::Display, check: impl FnOnce(&mut Self)) {
        let before = self.place.len();
        // Writing into a text does not fail.
        let _written = write!(self.place, "{part}");
        check(self);
        self.place.truncate(before);
    }

    fn at_field(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let before = self.place.len();
        self.place.push('.');
        self.place.push_str(name);
        check(self);
        self.place.truncate(before);
    }

    fn value(&mut self, of: &Type, value: &Value) {
        match (of.sort, value) {
            (_, Value::Null) | (Sort::Any | Sort::IntOrString | Sort::Quantity, _) => {}
            (Sort::Struct, Value::Object(map)) => self.structure(of, map),
            (Sort::Map, Value::Object(map)) => self.map(of, map),
            (Sort::List, Value::Array(list)) => self.list(of, list),
            (Sort::Struct | Sort::Map, other) => self.wrong(&format!("expected map, got &{{{}}}", go(other))),
            (Sort::List, other) => self.wrong(&format!("expected list, got &{{{}}}", go(other))),
            (Sort::Boolean, Value::Bool(_)) | (Sort::Integer | Sort::Number, Value::Number(_)) => {}
            (Sort::Text | Sort::Time | Sort::MicroTime, Value::String(_)) => {}
            (Sort::Boolean, other) => self.wrong(&format!("expected boolean, got &{{{}}}", go(other))),
            (Sort::Integer | Sort::Number, other) => {
                self.wrong(&format!("expected numeric (int or float), got {}", go_kind(other)));
            }
            (Sort::Text | Sort::Time | Sort::MicroTime, other) => {
                self.wrong(&format!("expected string, got &value.valueUnstructured{{Value:{}}}", go(other)));
            }
        }
    }

    fn structure(&mut self, of: &Type, map: &Map<String, Value>) {
        for (name, value) in map {
            self.at_field(name, |checking| match of.field(name) {
                Some(field) => checking.value(field.of(), value),
                None if of.keeps_unknown => {}
                None => checking.wrong("field not declared in schema"),
            });
        }
    }

    fn map(&mut self, of: &Type, map: &Map<String, Value>) {
        let Some(values) = of.element() else { return };
        for (name, value) in map {
            self.at_field(name, |checking| checking.value(values, value));
        }
    }

    fn list(&mut self, of: &Type, list: &[Value]) {
        let Some(items) = of.element() else { return };
        let mut seen = BTreeSet::new();
        for (index, value) in list.iter().enumerate() {
            let identity = identity(of, items, value);
            match identity {
                Ok(Some(part)) => {
                    if !seen.insert(part.clone()) {
                        self.wrong(&format!("duplicate entries for key {part}"));
                    }
                    self.at(&part, |checking| checking.value(items, value));
                }
                Ok(None) => self.at(format_args!("[{index}]"), |checking| checking.value(items, value)),
                Err(why) => {
                    self.at(format_args!(": element {index}"), |checking| checking.wrong(&why));
                }
            }
        }
    }
}

/// How an element of a list is told from the others, if it is.
fn identity(of: &Type, items: &Type, value: &Value) -> Result<Option<String>, String> {
    match &of.list {
        ListSort::Set => Ok(Some(format!("[={value}]"))),
        ListSort::Keyed(keys) => {
            let mut parts = Vec::new();
            for key in keys {
                let default = items.field(key).and_then(|field| field.default.as_ref());
                parts.extend(value.get(key).or(default).map(|found| format!("{key}={found}")));
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
        ListSort::Plain => Ok(None),
    }
}

/// A value as Go prints it.
pub(crate) fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let sorted: std::collections::BTreeMap<&String, &Value> = map.iter().collect();
            let parts: Vec<String> = sorted.into_iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            format!("map[{}]", parts.join(" "))
        }
    }
}

fn go_kind(value: &Value) -> &'static str {
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
    fn everything_is_told_at_once() {
        let of = types().of_kind("apps", "v1", "Deployment").expect("recorded");
        let found = mistakes(of, &json!({"spec": {"paused": "yes", "replicas": "three"}}));
        let expected = [
            ".spec.paused: expected boolean, got &{yes}",
            ".spec.replicas: expected numeric (int or float), got string",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_key_that_only_a_default_would_tell_apart_is_a_duplicate() {
        let of = types().of_kind("", "v1", "Service").expect("recorded");
        let found = mistakes(of, &json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}}));
        assert_eq!(found, [".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]"]);
    }
}
