//! The types of the fields that a typed decoder would refuse, as far as people get them wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

#[derive(Clone, Copy)]
enum Type {
    Object,
    StringMap,
    Integer,
    List,
}

/// Kind, pointer and type; an empty kind means all of them.
const FIELDS: [(&str, &str, Type); 25] = [
    ("", "/metadata/labels", Type::StringMap),
    ("", "/metadata/annotations", Type::StringMap),
    ("", "/metadata/finalizers", Type::List),
    ("", "/metadata/ownerReferences", Type::List),
    ("ConfigMap", "/data", Type::StringMap),
    ("Secret", "/data", Type::StringMap),
    ("Secret", "/stringData", Type::StringMap),
    ("Deployment", "/spec", Type::Object),
    ("Deployment", "/spec/replicas", Type::Integer),
    ("Deployment", "/spec/template", Type::Object),
    ("Deployment", "/spec/template/spec/containers", Type::List),
    ("Service", "/spec", Type::Object),
    ("Service", "/spec/ports", Type::List),
    ("CustomResourceDefinition", "/spec", Type::Object),
    ("CustomResourceDefinition", "/spec/names", Type::Object),
    ("CustomResourceDefinition", "/spec/versions", Type::List),
    ("CustomResourceDefinition", "/status", Type::Object),
    ("CustomResourceDefinition", "/status/acceptedNames", Type::Object),
    ("CustomResourceDefinition", "/status/conditions", Type::List),
    ("Deployment", "/spec/selector", Type::Object),
    ("Deployment", "/status", Type::Object),
    ("Namespace", "/spec", Type::Object),
    ("Namespace", "/spec/finalizers", Type::List),
    ("Namespace", "/status", Type::Object),
    ("Service", "/status", Type::Object),
];

/// The first field of a wrong type: its path below the object, what it should be, and what it is.
fn first_wrong<'a>(kind: &str, built_in: bool, object: &'a Value) -> Option<(String, &'static str, &'a Value)> {
    for (of, pointer, wanted) in FIELDS {
        if !(of.is_empty() || built_in && of == kind) {
            continue;
        }
        let Some(value) = object.pointer(pointer).filter(|value| !value.is_null()) else {
            continue;
        };
        let path = pointer.replace('/', ".");
        let wrong = match wanted {
            Type::Object => (!value.is_object()).then_some((path, "map", value)),
            Type::List => (!value.is_array()).then_some((path, "list", value)),
            Type::Integer => (!value.is_i64()).then_some((path, "numeric (int or float)", value)),
            Type::StringMap => match value.as_object() {
                None => Some((path, "map", value)),
                Some(map) => map
                    .iter()
                    .find(|(_, value)| !value.is_string() && !value.is_null())
                    .map(|(key, value)| (format!("{path}.{key}"), "string", value)),
            },
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

/// What a decoder says about an object, if it refuses it.
pub(crate) fn check(kind: &str, built_in: bool, object: &Value) -> Result<(), String> {
    if let Some((path, wanted, value)) = first_wrong(kind, built_in, object) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let wanted = if wanted.starts_with("numeric") { "int32" } else { wanted };
        return Err(format!("json: cannot unmarshal {found} into Go struct field {kind}{path} of type {wanted}"));
    }
    if built_in && kind == "Secret" {
        let data = object.pointer("/data").and_then(Value::as_object);
        let encoded = data.into_iter().flatten().filter_map(|(_, value)| value.as_str());
        for text in encoded {
            STANDARD.decode(text).map_err(|_| "illegal base64 data at input byte 0".to_owned())?;
        }
    }
    Ok(())
}

/// What the typed merge says about a declaration, if it refuses it.
pub(crate) fn check_applied(kind: &str, applied: &Value) -> Result<(), String> {
    match first_wrong(kind, true, applied) {
        None => Ok(()),
        Some((path, wanted, value)) => {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Err(format!("{path}: expected {wanted}, got &value.valueUnstructured{{Value:{shown}}}"))
        }
    }
}
