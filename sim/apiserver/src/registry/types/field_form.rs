//! Serialization rules of struct fields, as Go serializes them.

use serde_json::Value;

use super::value_type::ValueType;

/// Optional strings that are pointers in Go: an empty string is kept.
const POINTER_STRINGS: [&str; 6] = [
    "storageClassName",
    "ingressClassName",
    "volumeAttributesClassName",
    "apiGroup",
    "holderIdentity",
    "preferredHolder",
];

/// Optional numbers and booleans that are not pointers in Go: zero is omitted.
const OMITTED_IF_ZERO: [&str; 42] = [
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

/// Optional lists that are serialized even if empty.
pub(super) const ALWAYS_PRESENT: [(&str, &str); 4] = [
    ("ClusterRole", "rules"),
    ("EndpointSlice", "ports"),
    ("HorizontalPodAutoscalerStatus", "currentMetrics"),
    ("Role", "rules"),
];

/// Serialization rules of one field of a struct.
#[derive(Clone, Debug)]
pub(super) struct FieldForm {
    /// True if the field is present with any value.
    is_always_present: bool,
    /// True if the field is omitted when it is an empty map.
    is_map: bool,
    keeps_empty_string: bool,
    omits_zero: bool,
    /// Value of an absent field.
    pub(super) if_absent: AbsentValue,
}

/// Value that replaces an absent field.
#[derive(Clone, Debug)]
pub(super) enum AbsentValue {
    /// The field stays absent.
    Absent,
    Value(Value),
    /// A struct that is not a pointer: its empty object.
    EmptyObject,
}

impl FieldForm {
    /// Returns the rules of a field with this default, in the struct `parent`.
    pub(super) fn new(
        parent: &str,
        name: &str,
        value_type: ValueType,
        default: Option<&Value>,
        required: bool,
    ) -> Self {
        let is_always_present = required || ALWAYS_PRESENT.contains(&(parent, name));
        Self {
            is_always_present,
            is_map: value_type == ValueType::Map,
            keeps_empty_string: POINTER_STRINGS.contains(&name),
            omits_zero: OMITTED_IF_ZERO.contains(&name) || name == "replicas" && parent.ends_with("Status"),
            if_absent: if is_always_present {
                zero_value(value_type, default)
            } else {
                optional_value(parent, name, value_type, default)
            },
        }
    }

    pub(super) fn is_omitted(&self, value: &Value) -> bool {
        !self.is_always_present
            && match value {
                Value::Null => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty() && self.is_map,
                Value::String(text) => text.is_empty() && !self.keeps_empty_string,
                Value::Bool(flag) => !flag && self.omits_zero,
                Value::Number(number) => number.as_i64() == Some(0) && self.omits_zero,
            }
    }
}

fn is_struct_value(value_type: ValueType, default: Option<&Value>) -> bool {
    value_type == ValueType::Struct && default.is_some_and(Value::is_object)
}

/// Returns the value of an absent required field. Pointers and types without a zero value are null.
fn zero_value(value_type: ValueType, default: Option<&Value>) -> AbsentValue {
    match value_type {
        _ if is_struct_value(value_type, default) => AbsentValue::EmptyObject,
        ValueType::Boolean | ValueType::Integer | ValueType::Number | ValueType::String | ValueType::IntOrString => {
            AbsentValue::Value(default.cloned().unwrap_or_default())
        }
        ValueType::Quantity
        | ValueType::Time
        | ValueType::MicroTime
        | ValueType::Struct
        | ValueType::Map
        | ValueType::List
        | ValueType::Any => AbsentValue::Value(Value::Null),
    }
}

/// Returns the value of an absent optional field.
fn optional_value(parent: &str, name: &str, value_type: ValueType, default: Option<&Value>) -> AbsentValue {
    let is_time = name.starts_with("last") || name == "eventTime" || name.ends_with("Timestamp");
    match (parent, name) {
        _ if value_type == ValueType::Integer && default == Some(&Value::from(0)) => AbsentValue::Value(Value::from(0)),
        ("Event", _) if is_time && matches!(value_type, ValueType::Time | ValueType::MicroTime) => {
            AbsentValue::Value(Value::Null)
        }
        ("Event", "reportingComponent" | "reportingInstance") => {
            default.cloned().map_or(AbsentValue::Absent, AbsentValue::Value)
        }
        _ if parent.ends_with("Condition") && is_time && value_type == ValueType::Time => {
            AbsentValue::Value(Value::Null)
        }
        _ if is_struct_value(value_type, default) => AbsentValue::EmptyObject,
        _ => AbsentValue::Absent,
    }
}
