//! The form in which the server keeps and shows an object of a built-in kind: as Go writes the type.
//!
//! A struct that is no pointer is always there, a required list that was not given is null, and what is optional and
//! empty is left out.

use serde_json::{Map, Value};

use super::{Sort, Type};

/// Optional texts that are pointers: empty is not absent.
const EMPTY_TEXTS: [&str; 6] = [
    "storageClassName",
    "ingressClassName",
    "volumeAttributesClassName",
    "apiGroup",
    "holderIdentity",
    "preferredHolder",
];
/// Optional numbers and flags that are no pointers: zero is absent.
const ZERO_IS_ABSENT: [&str; 42] = [
    "active",
    "availableReplicas",
    "collisionCount",
    "count",
    "currentHealthy",
    "currentReplicas",
    "deprecatedCount",
    "desiredHealthy",
    "desiredNumberScheduled",
    "disruptionsAllowed",
    "expectedPods",
    "failed",
    "failureThreshold",
    "fullyLabeledReplicas",
    "globalDefault",
    "healthCheckNodePort",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "numberAvailable",
    "numberUnavailable",
    "observedGeneration",
    "paused",
    "periodSeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "readyReplicas",
    "restartCount",
    "stdin",
    "stdinOnce",
    "succeeded",
    "successThreshold",
    "tty",
    "unavailableReplicas",
    "updatedNumberScheduled",
    "updatedReplicas",
    "uncountedTerminatedPods",
    "preserveUnknownFields",
];

/// Optional lists that are written even when there is nothing in them.
const ALWAYS_THERE: [(&str, &str); 4] = [
    ("ClusterRole", "rules"),
    ("EndpointSlice", "ports"),
    ("HorizontalPodAutoscalerStatus", "currentMetrics"),
    ("Role", "rules"),
];

/// An object of a type before anything was said about it.
pub(crate) fn skeleton(of: Type<'_>) -> Value {
    let mut value = Value::Object(Map::new());
    encode(of, &mut value);
    value
}

/// The form in which an object comes back from where it is kept: lists that are always there are null when empty.
pub(crate) fn settle(of: Option<Type<'_>>, object: &mut Value) {
    let Some(of) = of else { return };
    for (_, field) in ALWAYS_THERE.iter().filter(|(name, _)| *name == of.short_name()) {
        if object.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            object[*field] = Value::Null;
        }
    }
}

/// Brings a decoded value into its form.
pub(crate) fn encode(of: Type<'_>, value: &mut Value) {
    match (of.sort(), value) {
        (Sort::Struct, Value::Object(map)) => encode_struct(of, map),
        (Sort::Map, Value::Object(map)) => {
            if let Some(values) = of.values() {
                map.values_mut().for_each(|value| encode(values, value));
            }
        }
        (Sort::List, Value::Array(list)) => {
            if let Some(items) = of.items() {
                list.iter_mut().for_each(|item| encode(items, item));
            }
        }
        _ => {}
    }
}

fn encode_struct(of: Type<'_>, map: &mut Map<String, Value>) {
    for (name, schema) in of.properties().into_iter().flatten() {
        let field = Type::new(schema);
        let required = of.requires(name) || ALWAYS_THERE.contains(&(of.short_name(), name.as_str()));
        if map.get(name).is_some_and(|value| !required && is_absent(field, name, of, value)) {
            map.remove(name);
        }
        if let Some(value) = map.get_mut(name) {
            encode(field, value);
            continue;
        }
        let is_count = field.sort() == Sort::Integer && schema.get("default") == Some(&Value::from(0));
        if is_count && !required {
            map.insert(name.clone(), Value::from(0));
            continue;
        }
        if of.short_name() == "Event" && !required {
            match name.as_str() {
                "eventTime"
                | "firstTimestamp"
                | "lastTimestamp"
                | "deprecatedFirstTimestamp"
                | "deprecatedLastTimestamp" => drop(map.insert(name.clone(), Value::Null)),
                "reportingComponent" | "reportingInstance" if of.property("involvedObject").is_some() => {
                    map.insert(name.clone(), Value::from(""));
                }
                _ => {}
            }
        }
        if map.contains_key(name) {
            continue;
        }
        if field.sort() == Sort::Time && of.short_name().ends_with("Condition") && !required {
            map.insert(name.clone(), Value::Null);
            continue;
        }
        let is_value = schema.get("default").is_some_and(Value::is_object) && field.sort() == Sort::Struct;
        if is_value {
            map.insert(name.clone(), skeleton(field));
        } else if required {
            map.insert(name.clone(), zero(field, schema));
        }
    }
    let has_times = of.short_name().ends_with("Condition") || of.short_name() == "Event";
    let is_time = |name: &str| name.starts_with("last") || name == "eventTime" || name.ends_with("Timestamp");
    map.retain(|name, value| {
        !value.is_null()
            || has_times && is_time(name)
            || of.requires(name)
            || ALWAYS_THERE.contains(&(of.short_name(), name.as_str()))
    });
}

/// What a required field is when it was not given. A pointer and what has no zero are null.
fn zero(field: Type<'_>, schema: &Value) -> Value {
    match field.sort() {
        Sort::Boolean | Sort::Integer | Sort::Number | Sort::Text | Sort::IntOrString => {
            schema.get("default").cloned().unwrap_or_default()
        }
        Sort::Quantity | Sort::Time | Sort::MicroTime | Sort::Struct | Sort::Map | Sort::List | Sort::Any => {
            Value::Null
        }
    }
}

fn is_absent(field: Type<'_>, name: &str, of: Type<'_>, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && field.sort() == Sort::Map,
        Value::String(text) => text.is_empty() && !EMPTY_TEXTS.contains(&name),
        Value::Bool(flag) => !flag && ZERO_IS_ABSENT.contains(&name),
        Value::Number(number) => {
            let is_count = ZERO_IS_ABSENT.contains(&name) || name == "replicas" && of.short_name().ends_with("Status");
            number.as_i64() == Some(0) && is_count
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::types;
    use super::*;

    #[test]
    fn a_deployment_without_anything_has_its_structures() {
        let of = types().of_kind("apps", "v1", "Deployment").expect("recorded");
        let expected = json!({
            "metadata": {}, "status": {},
            "spec": {"selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}},
        });
        assert_eq!(skeleton(of), expected);
    }

    #[test]
    fn what_is_optional_and_empty_goes() {
        let of = types().of_kind("", "v1", "ConfigMap").expect("recorded");
        let mut object = json!({"metadata": {"name": "a", "labels": {}}, "data": {}, "immutable": false});
        encode(of, &mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}, "immutable": false}));
    }
}
