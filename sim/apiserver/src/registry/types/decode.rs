//! Reading an object of a built-in kind as Go does: fields that the type does not have are left out and told, a value of
//! another type is an error in Go's words.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Sort, Type};
use sindri_cel::quantity::{MALFORMED, Quantity};

const TIME_FORM: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_FORM: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Reads a value of a type, where it is. The names of unknown fields are added to `unknown`.
///
/// # Errors
/// In the words of the decoder, when a value has another type than its field. The value is then read in part.
pub(crate) fn decode(of: &Type, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let mut decoding = Decoding { unknown, place: String::new(), holder: &of.short_name };
    decoding.value(of, value)
}

/// Texts that have a type of their own in Go, which no document tells: struct, field, type.
const TEXTS: [(&str, &str, &str); 18] = [
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

struct Decoding<'a> {
    unknown: &'a mut Vec<String>,
    /// The path of fields, with dots, and with the indices of lists.
    place: String,
    /// The innermost struct.
    holder: &'a str,
}

impl<'a> Decoding<'a> {
    fn value(&mut self, of: &'a Type, value: &mut Value) -> Result<(), String> {
        match (of.sort, &mut *value) {
            (Sort::Any, _) => Ok(()),
            (Sort::Struct, Value::Object(map)) => self.structure(of, map),
            (Sort::Map, Value::Object(map)) => self.map(of, map),
            (Sort::List, Value::Array(list)) => self.list(of, list),
            (Sort::Boolean, Value::Bool(_)) | (Sort::Number, Value::Number(_)) => Ok(()),
            (Sort::Integer, Value::Number(number)) => self.integer(of, number),
            (Sort::Text, Value::String(text)) => check_text(of, text),
            (Sort::IntOrString, Value::String(_)) => Ok(()),
            (Sort::IntOrString, Value::Number(number)) if number.is_i64() => Ok(()),
            (Sort::Quantity, Value::String(text)) => canonical(text).map(|read| *text = read),
            (Sort::Quantity, Value::Number(number)) => canonical(&number.to_string()).map(|read| *value = json!(read)),
            (Sort::Time, Value::String(text)) => time(text, TIME_FORM, 0).map(|read| *text = read),
            (Sort::MicroTime, Value::String(text)) => time(text, MICRO_TIME_FORM, 6).map(|read| *text = read),
            (_, Value::Null) => Ok(()),
            (Sort::Quantity, _) => Err(MALFORMED.to_owned()),
            (_, other) => Err(self.refused(of, kind_of(other))),
        }
    }

    fn refused(&self, of: &Type, found: &str) -> String {
        let place: String = without_indices(&self.place);
        let field = place.rsplit('.').next().unwrap_or_default();
        let named = TEXTS.iter().find(|(holder, name, _)| *holder == self.holder && *name == field);
        let of = match (named, of.sort) {
            (Some((_, _, go)), Sort::Text) => format!("v1.{go}"),
            (Some((_, _, go)), Sort::List) => format!("[]v1.{go}"),
            _ => of.go(),
        };
        format!("json: cannot unmarshal {found} into Go struct field {}.{place} of type {of}", self.holder)
    }

    fn integer(&self, of: &Type, number: &serde_json::Number) -> Result<(), String> {
        let fits = |number: i64| of.format != "int32" || i32::try_from(number).is_ok();
        match number.as_i64() {
            Some(whole) if fits(whole) => Ok(()),
            _ => Err(self.refused(of, &format!("number {number}"))),
        }
    }

    fn structure(&mut self, of: &'a Type, map: &mut Map<String, Value>) -> Result<(), String> {
        let outer = std::mem::replace(&mut self.holder, &of.short_name);
        let mut read = Ok(());
        map.retain(|name, value| {
            if read.is_err() {
                return true;
            }
            let before = self.place.len();
            if before > 0 {
                self.place.push('.');
            }
            self.place.push_str(name);
            let field = of.field(name);
            match field {
                Some(field) => read = self.value(field.of(), value),
                None => self.unknown.push(self.place.clone()),
            }
            self.place.truncate(before);
            field.is_some()
        });
        self.holder = outer;
        read
    }

    fn map(&mut self, of: &'a Type, map: &mut Map<String, Value>) -> Result<(), String> {
        let Some(values) = of.element() else { return Ok(()) };
        for value in map.values_mut() {
            self.value(values, value)?;
            null_is_zero(values, value);
        }
        Ok(())
    }

    fn list(&mut self, of: &'a Type, list: &mut [Value]) -> Result<(), String> {
        let Some(items) = of.element() else { return Ok(()) };
        for (index, value) in list.iter_mut().enumerate() {
            let before = self.place.len();
            // Writing into a text does not fail.
            let _written = write!(self.place, "[{index}]");
            self.value(items, value)?;
            null_is_zero(items, value);
            self.place.truncate(before);
        }
        Ok(())
    }
}

/// Null inside a map or a list is the zero of its type.
fn null_is_zero(of: &Type, value: &mut Value) {
    match (of.sort, &value) {
        (Sort::Text, Value::Null) => *value = json!(""),
        (Sort::Struct, Value::Null) => *value = json!({}),
        _ => {}
    }
}

fn check_text(of: &Type, text: &str) -> Result<(), String> {
    if of.format == "byte" {
        STANDARD.decode(text).map_err(|_| format!("illegal base64 data at input byte {}", first_illegal(text)))?;
    }
    Ok(())
}

/// Where Go's decoder stops: at the first character that is none of the alphabet, or at the end.
pub(crate) fn first_illegal(text: &str) -> usize {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let end = text.trim_end_matches('=').len();
    text.bytes().take(end).position(|byte| !legal(byte)).unwrap_or(end / 4 * 4)
}

fn canonical(text: &str) -> Result<String, String> {
    Quantity::parse(text).map(|quantity| quantity.canonical()).ok_or_else(|| MALFORMED.to_owned())
}

fn time(text: &str, form: &str, digits: usize) -> Result<String, String> {
    match text.parse::<Timestamp>() {
        Ok(at) if digits == 0 => Ok(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        Ok(at) => Ok(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
        Err(_) => Err(format!("parsing time {text:?} as {form:?}: cannot parse {text:?} as \"2006\"")),
    }
}

fn without_indices(place: &str) -> String {
    let mut inside = false;
    place
        .chars()
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

/// What Go calls a value of JSON.
pub(crate) fn kind_of(value: &Value) -> &'static str {
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
    fn unknown_fields_are_told_with_their_place() {
        let of = types().of_kind("apps", "v1", "Deployment").expect("recorded");
        let mut decoded =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}}, "x": 1});
        let mut unknown = Vec::new();
        decode(of, &mut decoded, &mut unknown).expect("of the right types");
        assert_eq!(unknown, ["spec.template.spec.containers[0].imagee", "x"]);
        assert_eq!(decoded, json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}));
    }

    #[test]
    fn a_wrong_type_is_told_as_go_does() {
        let of = types().of_kind("apps", "v1", "Deployment").expect("recorded");
        let error = decode(of, &mut json!({"spec": {"replicas": 1.5}}), &mut Vec::new()).unwrap_err();
        let expected =
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32";
        assert_eq!(error, expected);
    }
}
