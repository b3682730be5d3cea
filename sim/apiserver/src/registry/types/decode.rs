//! Decodes an object of a built-in kind as Go does: unknown fields are dropped and reported, and a value of the wrong type is
//! an error with Go's message.

use std::borrow::Cow;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::schema_type::SchemaType;
use super::value_type::ValueType;
use sindri_cel::quantity::{MALFORMED, Quantity};

const TIME_FORMAT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_FORMAT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Decodes a value in place. Paths of unknown fields are added to `unknown`.
///
/// # Errors
/// With Go's message, if a value has another type than its field. The value is then partly decoded.
pub(crate) fn decode(schema_type: &SchemaType, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let mut decoder = Decoder { unknown, path: String::new(), parent: &schema_type.short_name };
    decoder.decode_value(schema_type, value)
}

/// String fields with a type of their own in Go, which the schemas do not mention: struct, field, type.
const STRING_TYPES: [(&str, &str, &str); 18] = [
    ("PersistentVolumeClaimSpec", "accessModes", "PersistentVolumeAccessMode"),
    ("PersistentVolumeClaimSpec", "volumeMode", "PersistentVolumeMode"),
    ("ServiceSpec", "type", "ServiceType"),
    ("ServiceSpec", "sessionAffinity", "ServiceAffinity"),
    ("ServiceSpec", "ipFamilyPolicy", "IPFamilyPolicy"),
    ("ServicePort", "protocol", "Protocol"),
    ("ContainerPort", "protocol", "Protocol"),
    ("PodSpec", "restartPolicy", "RestartPolicy"),
    ("PodSpec", "dnsPolicy", "DNSPolicy"),
    ("Container", "imagePullPolicy", "PullPolicy"),
    ("Container", "terminationMessagePolicy", "TerminationMessagePolicy"),
    ("Toleration", "operator", "TolerationOperator"),
    ("DeploymentStrategy", "type", "DeploymentStrategyType"),
    ("StatefulSetSpec", "podManagementPolicy", "PodManagementPolicyType"),
    ("CronJobSpec", "concurrencyPolicy", "ConcurrencyPolicy"),
    ("Secret", "type", "SecretType"),
    ("NetworkPolicySpec", "policyTypes", "PolicyType"),
    ("HTTPIngressPath", "pathType", "PathType"),
];

/// State of decoding.
struct Decoder<'a> {
    unknown: &'a mut Vec<String>,
    /// Path of the current field, with dots and list indices.
    path: String,
    /// Name of the innermost struct.
    parent: &'a str,
}

impl<'a> Decoder<'a> {
    fn decode_value(&mut self, schema_type: &'a SchemaType, value: &mut Value) -> Result<(), String> {
        match (schema_type.value_type, &mut *value) {
            (ValueType::Any, _) => Ok(()),
            (ValueType::Struct, Value::Object(map)) => self.decode_struct(schema_type, map),
            (ValueType::Map, Value::Object(map)) => self.decode_map(schema_type, map),
            (ValueType::List, Value::Array(list)) => self.decode_list(schema_type, list),
            (ValueType::Boolean, Value::Bool(_)) | (ValueType::Number, Value::Number(_)) => Ok(()),
            (ValueType::Integer, Value::Number(number)) => self.check_integer(schema_type, number),
            (ValueType::String, Value::String(text)) => decode_string(schema_type, text),
            (ValueType::IntOrString, Value::String(_)) => Ok(()),
            (ValueType::IntOrString, Value::Number(number)) if number.is_i64() => Ok(()),
            (ValueType::Quantity, Value::String(text)) => canonical_quantity(text).map(|canonical| *text = canonical),
            (ValueType::Quantity, Value::Number(number)) => {
                canonical_quantity(&number.to_string()).map(|canonical| *value = json!(canonical))
            }
            (ValueType::Time, Value::String(text)) => {
                canonical_time(text, TIME_FORMAT, 0).map(|canonical| *text = canonical)
            }
            (ValueType::MicroTime, Value::String(text)) => {
                canonical_time(text, MICRO_TIME_FORMAT, 6).map(|canonical| *text = canonical)
            }
            (_, Value::Null) => Ok(()),
            (ValueType::Quantity, _) => Err(MALFORMED.to_owned()),
            (_, other) => Err(self.type_error(schema_type, json_type_name(other))),
        }
    }

    fn type_error(&self, schema_type: &SchemaType, actual: &str) -> String {
        let path: String = without_indices(&self.path);
        let field = path.rsplit('.').next().unwrap_or_default();
        let named = STRING_TYPES.iter().find(|(parent, name, _)| *parent == self.parent && *name == field);
        let expected = match (named, schema_type.value_type) {
            (Some((_, _, go)), ValueType::String) => format!("v1.{go}"),
            (Some((_, _, go)), ValueType::List) => format!("[]v1.{go}"),
            _ => schema_type.go_name(),
        };
        format!("json: cannot unmarshal {actual} into Go struct field {}.{path} of type {expected}", self.parent)
    }

    fn check_integer(&self, schema_type: &SchemaType, number: &serde_json::Number) -> Result<(), String> {
        let fits = |number: i64| schema_type.format != "int32" || i32::try_from(number).is_ok();
        match number.as_i64() {
            Some(whole) if fits(whole) => Ok(()),
            _ => Err(self.type_error(schema_type, &format!("number {number}"))),
        }
    }

    fn decode_struct(&mut self, schema_type: &'a SchemaType, map: &mut Map<String, Value>) -> Result<(), String> {
        let outer = std::mem::replace(&mut self.parent, &schema_type.short_name);
        let mut result = Ok(());
        map.retain(|name, value| {
            if result.is_err() {
                return true;
            }
            let before = self.path.len();
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            let field = schema_type.field(name);
            match field {
                Some(field) => result = self.decode_value(field.field_type(), value),
                None => self.unknown.push(self.path.clone()),
            }
            self.path.truncate(before);
            field.is_some()
        });
        self.parent = outer;
        result
    }

    fn decode_map(&mut self, schema_type: &'a SchemaType, map: &mut Map<String, Value>) -> Result<(), String> {
        let Some(values) = schema_type.element() else { return Ok(()) };
        for value in map.values_mut() {
            self.decode_value(values, value)?;
            replace_null_by_zero(values, value);
        }
        Ok(())
    }

    fn decode_list(&mut self, schema_type: &'a SchemaType, list: &mut [Value]) -> Result<(), String> {
        let Some(items) = schema_type.element() else { return Ok(()) };
        for (index, value) in list.iter_mut().enumerate() {
            let before = self.path.len();
            // Writing to a String does not fail.
            let _written = write!(self.path, "[{index}]");
            self.decode_value(items, value)?;
            replace_null_by_zero(items, value);
            self.path.truncate(before);
        }
        Ok(())
    }
}

/// Replaces null inside a map or a list by the zero value of its type.
fn replace_null_by_zero(schema_type: &SchemaType, value: &mut Value) {
    match (schema_type.value_type, &value) {
        (ValueType::String, Value::Null) => *value = json!(""),
        (ValueType::Struct, Value::Null) => *value = json!({}),
        _ => {}
    }
}

/// Checks a string; Base64 may have line breaks, which are removed.
fn decode_string(schema_type: &SchemaType, text: &mut String) -> Result<(), String> {
    if schema_type.format != "byte" {
        return Ok(());
    }
    let is_broken = text.contains(LINE_BREAKS);
    let joined = if is_broken { Cow::Owned(text.replace(LINE_BREAKS, "")) } else { Cow::Borrowed(text.as_str()) };
    STANDARD
        .decode(joined.as_ref())
        .map_err(|_| format!("illegal base64 data at input byte {}", first_illegal_byte(text)))?;
    if is_broken {
        *text = joined.into_owned();
    }
    Ok(())
}

/// Characters that Go's base64 decoder skips.
const LINE_BREAKS: [char; 2] = ['\r', '\n'];

/// Returns the position at which Go's base64 decoder stops: the first character outside the alphabet, or the end.
pub(crate) fn first_illegal_byte(text: &str) -> usize {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'\r' | b'\n');
    let end = text.trim_end_matches('=').len();
    text.bytes().take(end).position(|byte| !legal(byte)).unwrap_or(end / 4 * 4)
}

fn canonical_quantity(text: &str) -> Result<String, String> {
    Quantity::parse(text).map(|quantity| quantity.canonical()).ok_or_else(|| MALFORMED.to_owned())
}

fn canonical_time(text: &str, layout: &str, digits: usize) -> Result<String, String> {
    match text.parse::<Timestamp>() {
        Ok(time) if digits == 0 => Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        Ok(time) => Ok(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
        Err(_) => Err(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\"")),
    }
}

fn without_indices(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|c| match c {
            '[' => {
                inside = true;
                false
            }
            ']' => {
                inside = false;
                false
            }
            _ => !inside,
        })
        .collect()
}

/// Returns Go's name for the type of a JSON value.
pub(crate) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::super::types;
    use super::*;

    #[test]
    fn unknown_fields_are_reported_with_their_paths() {
        let schema_type = types().find_kind("apps", "v1", "Deployment").expect("recorded");
        let mut decoded =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}}, "x": 1});
        let mut unknown = Vec::new();
        decode(schema_type, &mut decoded, &mut unknown).expect("of the right types");
        assert_eq!(unknown, ["spec.template.spec.containers[0].imagee", "x"]);
        assert_eq!(decoded, json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}));
    }

    #[test]
    fn a_wrong_type_is_reported_like_go_does() {
        let schema_type = types().find_kind("apps", "v1", "Deployment").expect("recorded");
        let error = decode(schema_type, &mut json!({"spec": {"replicas": 1.5}}), &mut Vec::new()).unwrap_err();
        let expected =
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32";
        assert_eq!(error, expected);
    }
}
