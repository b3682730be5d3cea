//! Conversion of Events between the core group and `events.k8s.io`, which names some fields differently.

use serde_json::{Map, Value};

use crate::object::field_error::FieldError;

/// Renamed fields: the name in the core group, and in `events.k8s.io`.
const RENAMED_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
/// Fields that the core group always has, and `events.k8s.io` only if they are not empty.
const ALWAYS_IN_CORE: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// Immutable fields of events in `events.k8s.io`, by their names in the core group.
const IMMUTABLE: [&str; 12] = [
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

/// Returns an error for each immutable field that was changed.
pub(super) fn immutable_field_errors(before: &Value, after: &Value) -> Vec<FieldError> {
    let value = |event: &Value, name: &str| event.get(name).cloned().unwrap_or_default();
    let changed = IMMUTABLE.iter().filter(|name| value(before, name) != value(after, name));
    changed
        .map(|name| {
            let field = if *name == "reportingComponent" { "reportingController" } else { name };
            FieldError::invalid(field, &value(after, name), "field is immutable")
        })
        .collect()
}

/// Converts an event of the core group to `events.k8s.io`.
pub(super) fn to_events_group(event: &Value) -> Value {
    let is_omitted = |(name, value): (&String, &Value)| ALWAYS_IN_CORE.contains(&name.as_str()) && *value == "";
    let fields = event.as_object().into_iter().flatten().filter(|field| !is_omitted(*field));
    rename_fields(fields, |name| RENAMED_FIELDS.iter().find(|(core, _)| *core == name).map(|(_, other)| *other))
}

/// Converts an event of `events.k8s.io` to the core group.
pub(super) fn to_core(event: &Value) -> Value {
    let fields = event.as_object().into_iter().flatten();
    let mut core =
        rename_fields(fields, |name| RENAMED_FIELDS.iter().find(|(_, other)| *other == name).map(|(core, _)| *core));
    for name in ALWAYS_IN_CORE {
        if core.get(name).is_none() {
            core[name] = "".into();
        }
    }
    core
}

fn rename_fields<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    new_name: impl Fn(&str) -> Option<&'static str>,
) -> Value {
    let renamed = fields.map(|(name, value)| (new_name(name).unwrap_or(name).to_owned(), value.clone()));
    Value::Object(renamed.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_round_trips_between_the_groups() {
        let event = json!({
            "kind": "Event", "involvedObject": {"name": "web"}, "message": "it started", "count": 2,
            "reportingComponent": "", "reportingInstance": "", "firstTimestamp": null,
        });
        let other = to_events_group(&event);
        let expected = json!({
            "kind": "Event", "regarding": {"name": "web"}, "note": "it started", "deprecatedCount": 2,
            "deprecatedFirstTimestamp": null,
        });
        assert_eq!(other, expected);
        assert_eq!(to_core(&other), event);
    }
}
