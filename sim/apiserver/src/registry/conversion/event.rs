//! Events in their two groups: the same, under other names.

use serde_json::{Map, Value};

use crate::object::field_error::FieldError;

/// What differs: the name in the core group, and the other.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
/// What the core group always has, and the other only if it says something.
const ALWAYS: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// What nobody changes of an event in the other group, which says so with the names of the core group.
const FIXED: [&str; 12] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// What was changed all the same.
pub(super) fn fixed_mistakes(before: &Value, after: &Value) -> Vec<FieldError> {
    let value = |event: &Value, name: &str| event.get(name).cloned().unwrap_or_default();
    let changed = FIXED.iter().filter(|name| value(before, name) != value(after, name));
    changed
        .map(|name| {
            let field = if *name == "reportingComponent" { "reportingController" } else { name };
            FieldError::invalid(field, &value(after, name), "field is immutable")
        })
        .collect()
}

/// An event of the core group in the other.
pub(super) fn of_events(event: &Value) -> Value {
    let says_nothing = |(name, value): (&String, &Value)| ALWAYS.contains(&name.as_str()) && *value == "";
    let fields = event.as_object().into_iter().flatten().filter(|field| !says_nothing(*field));
    renamed(fields, |name| NAMES.iter().find(|(core, _)| *core == name).map(|(_, other)| *other))
}

/// An event of the other group in the core group.
pub(super) fn of_core(event: &Value) -> Value {
    let fields = event.as_object().into_iter().flatten();
    let mut core = renamed(fields, |name| NAMES.iter().find(|(_, other)| *other == name).map(|(core, _)| *core));
    for name in ALWAYS {
        if core.get(name).is_none() {
            core[name] = "".into();
        }
    }
    core
}

fn renamed<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    other: impl Fn(&str) -> Option<&'static str>,
) -> Value {
    let renamed = fields.map(|(name, value)| (other(name).unwrap_or(name).to_owned(), value.clone()));
    Value::Object(renamed.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_comes_back_from_the_other_group() {
        let event = json!({
            "kind": "Event", "involvedObject": {"name": "web"}, "message": "it started", "count": 2,
            "reportingComponent": "", "reportingInstance": "", "firstTimestamp": null,
        });
        let other = of_events(&event);
        let expected = json!({
            "kind": "Event", "regarding": {"name": "web"}, "note": "it started", "deprecatedCount": 2,
            "deprecatedFirstTimestamp": null,
        });
        assert_eq!(other, expected);
        assert_eq!(of_core(&other), event);
    }
}
