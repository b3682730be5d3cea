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

/// What the form of a struct says of one of its fields.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Whether the field is written whatever it holds.
    is_always_there: bool,
    /// Whether it is left out when it is an empty map.
    is_map: bool,
    keeps_empty_text: bool,
    drops_zero: bool,
    /// What is written when the field is not there.
    otherwise: Otherwise,
}

#[derive(Clone, Debug)]
enum Otherwise {
    Nothing,
    Value(Value),
    /// A struct that is no pointer.
    Skeleton,
}

impl Form {
    /// The form of a field with its own default, in the struct of this name.
    pub(super) fn new(holder: &str, name: &str, of: Sort, default: Option<&Value>, required: bool) -> Self {
        let is_always_there = required || ALWAYS_THERE.contains(&(holder, name));
        Self {
            is_always_there,
            is_map: of == Sort::Map,
            keeps_empty_text: EMPTY_TEXTS.contains(&name),
            drops_zero: ZERO_IS_ABSENT.contains(&name) || name == "replicas" && holder.ends_with("Status"),
            otherwise: if is_always_there { zero(of, default) } else { optional(holder, name, of, default) },
        }
    }

    fn leaves_out(&self, value: &Value) -> bool {
        !self.is_always_there
            && match value {
                Value::Null => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty() && self.is_map,
                Value::String(text) => text.is_empty() && !self.keeps_empty_text,
                Value::Bool(flag) => !flag && self.drops_zero,
                Value::Number(number) => number.as_i64() == Some(0) && self.drops_zero,
            }
    }
}

fn is_struct_value(of: Sort, default: Option<&Value>) -> bool {
    of == Sort::Struct && default.is_some_and(Value::is_object)
}

/// What a required field is when it was not given. A pointer and what has no zero are null.
fn zero(of: Sort, default: Option<&Value>) -> Otherwise {
    match of {
        _ if is_struct_value(of, default) => Otherwise::Skeleton,
        Sort::Boolean | Sort::Integer | Sort::Number | Sort::Text | Sort::IntOrString => {
            Otherwise::Value(default.cloned().unwrap_or_default())
        }
        Sort::Quantity | Sort::Time | Sort::MicroTime | Sort::Struct | Sort::Map | Sort::List | Sort::Any => {
            Otherwise::Value(Value::Null)
        }
    }
}

/// What an optional field is when it was not given.
fn optional(holder: &str, name: &str, of: Sort, default: Option<&Value>) -> Otherwise {
    let is_time = name.starts_with("last") || name == "eventTime" || name.ends_with("Timestamp");
    match (holder, name) {
        _ if of == Sort::Integer && default == Some(&Value::from(0)) => Otherwise::Value(Value::from(0)),
        ("Event", _) if is_time && matches!(of, Sort::Time | Sort::MicroTime) => Otherwise::Value(Value::Null),
        ("Event", "reportingComponent" | "reportingInstance") => {
            default.cloned().map_or(Otherwise::Nothing, Otherwise::Value)
        }
        _ if holder.ends_with("Condition") && is_time && of == Sort::Time => Otherwise::Value(Value::Null),
        _ if is_struct_value(of, default) => Otherwise::Skeleton,
        _ => Otherwise::Nothing,
    }
}

/// An object of a type before anything was said about it.
pub(crate) fn skeleton(of: &Type) -> Value {
    let mut value = Value::Object(Map::new());
    encode(of, &mut value);
    value
}

/// The form in which an object comes back from where it is kept: lists that are always there are null when empty.
pub(crate) fn settle(of: Option<&Type>, object: &mut Value) {
    let Some(of) = of else { return };
    for (_, field) in ALWAYS_THERE.iter().filter(|(name, _)| *name == of.short_name) {
        if object.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            object[*field] = Value::Null;
        }
    }
}

/// Brings a decoded value into its form.
pub(crate) fn encode(of: &Type, value: &mut Value) {
    match (of.sort, value) {
        (Sort::Struct, Value::Object(map)) => encode_struct(of, map),
        (Sort::Map, Value::Object(map)) => {
            if let Some(values) = of.element() {
                map.values_mut().for_each(|value| encode(values, value));
            }
        }
        (Sort::List, Value::Array(list)) => {
            if let Some(items) = of.element() {
                list.iter_mut().for_each(|item| encode(items, item));
            }
        }
        _ => {}
    }
}

fn encode_struct(of: &Type, map: &mut Map<String, Value>) {
    map.retain(|name, value| match of.field(name) {
        Some(field) if field.form.leaves_out(value) => false,
        Some(field) => {
            encode(field.of(), value);
            true
        }
        None => !value.is_null(),
    });
    for field in &of.fields {
        let fill = || match &field.form.otherwise {
            Otherwise::Nothing => None,
            Otherwise::Value(value) => Some(value.clone()),
            Otherwise::Skeleton => Some(skeleton(field.of())),
        };
        if !matches!(field.form.otherwise, Otherwise::Nothing) && !map.contains_key(&field.name) {
            map.extend(fill().map(|value| (field.name.clone(), value)));
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
