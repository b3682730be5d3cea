//! Reading an object of a built-in kind as Go does: fields that the type does not have are left out and told, a value of
//! another type is an error in Go's words.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Sort, Type};
use sindri_cel::quantity::{MALFORMED, Quantity};

const TIME_FORM: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_FORM: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Reads a value of a type. The names of unknown fields are added to `unknown`.
///
/// # Errors
/// In the words of the decoder, when a value has another type than its field.
pub(crate) fn decode(of: Type<'_>, value: &Value, unknown: &mut Vec<String>) -> Result<Value, String> {
    let mut decoding = Decoding { unknown, place: String::new(), holder: of.short_name().to_owned() };
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
    holder: String,
}

impl Decoding<'_> {
    fn value(&mut self, of: Type<'_>, value: &Value) -> Result<Value, String> {
        match (of.sort(), value) {
            (Sort::Any, value) => Ok(value.clone()),
            (Sort::Struct, Value::Object(map)) => self.structure(of, map),
            (Sort::Map, Value::Object(map)) => self.map(of, map),
            (Sort::List, Value::Array(list)) => self.list(of, list),
            (Sort::Boolean, Value::Bool(_)) | (Sort::Number, Value::Number(_)) => Ok(value.clone()),
            (Sort::Integer, Value::Number(number)) => self.integer(of, number),
            (Sort::Text, Value::String(text)) => text_of(of, text),
            (Sort::IntOrString, Value::String(_)) => Ok(value.clone()),
            (Sort::IntOrString, Value::Number(number)) if number.is_i64() => Ok(value.clone()),
            (Sort::Quantity, Value::String(text)) => canonical(text),
            (Sort::Quantity, Value::Number(number)) => canonical(&number.to_string()),
            (Sort::Time, Value::String(text)) => time(text, TIME_FORM, 0),
            (Sort::MicroTime, Value::String(text)) => time(text, MICRO_TIME_FORM, 6),
            (_, Value::Null) => Ok(Value::Null),
            (Sort::Quantity, _) => Err(MALFORMED.to_owned()),
            _ => Err(self.refused(of, kind_of(value))),
        }
    }

    fn refused(&self, of: Type<'_>, found: &str) -> String {
        let place: String = without_indices(&self.place);
        let field = place.rsplit('.').next().unwrap_or_default();
        let named = TEXTS.iter().find(|(holder, name, _)| *holder == self.holder && *name == field);
        let of = match (named, of.sort()) {
            (Some((_, _, go)), Sort::Text) => format!("v1.{go}"),
            (Some((_, _, go)), Sort::List) => format!("[]v1.{go}"),
            _ => of.go(),
        };
        format!("json: cannot unmarshal {found} into Go struct field {}.{place} of type {of}", self.holder)
    }

    fn integer(&self, of: Type<'_>, number: &serde_json::Number) -> Result<Value, String> {
        let fits = |number: i64| of.text("format") != "int32" || i32::try_from(number).is_ok();
        match number.as_i64() {
            Some(whole) if fits(whole) => Ok(json!(whole)),
            _ => Err(self.refused(of, &format!("number {number}"))),
        }
    }

    fn structure(&mut self, of: Type<'_>, map: &Map<String, Value>) -> Result<Value, String> {
        let mut decoded = Map::new();
        let outer = std::mem::replace(&mut self.holder, of.short_name().to_owned());
        for (name, value) in map {
            let before = self.place.len();
            if !self.place.is_empty() {
                self.place.push('.');
            }
            self.place.push_str(name);
            match of.property(name) {
                None => self.unknown.push(self.place.clone()),
                Some(schema) => {
                    let value = self.value(Type::new(schema), value)?;
                    decoded.insert(name.clone(), value);
                }
            }
            self.place.truncate(before);
        }
        self.holder = outer;
        Ok(Value::Object(decoded))
    }

    fn map(&mut self, of: Type<'_>, map: &Map<String, Value>) -> Result<Value, String> {
        let Some(values) = of.values() else { return Ok(Value::Object(map.clone())) };
        let mut decoded = Map::new();
        for (name, value) in map {
            decoded.insert(name.clone(), or_zero(values, self.value(values, value)?));
        }
        Ok(Value::Object(decoded))
    }

    fn list(&mut self, of: Type<'_>, list: &[Value]) -> Result<Value, String> {
        let Some(items) = of.items() else { return Ok(Value::Array(list.to_vec())) };
        let mut decoded = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            let before = self.place.len();
            self.place.push_str(&format!("[{index}]"));
            decoded.push(or_zero(items, self.value(items, value)?));
            self.place.truncate(before);
        }
        Ok(Value::Array(decoded))
    }
}

/// Null inside a map or a list is the zero of its type.
fn or_zero(of: Type<'_>, value: Value) -> Value {
    match (of.sort(), value) {
        (Sort::Text, Value::Null) => json!(""),
        (Sort::Struct, Value::Null) => json!({}),
        (_, value) => value,
    }
}

fn text_of(of: Type<'_>, text: &str) -> Result<Value, String> {
    if of.text("format") == "byte" {
        STANDARD.decode(text).map_err(|_| format!("illegal base64 data at input byte {}", first_illegal(text)))?;
    }
    Ok(json!(text))
}

/// Where Go's decoder stops: at the first character that is none of the alphabet, or at the end.
pub(crate) fn first_illegal(text: &str) -> usize {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let end = text.trim_end_matches('=').len();
    text.bytes().take(end).position(|byte| !legal(byte)).unwrap_or(end / 4 * 4)
}

fn canonical(text: &str) -> Result<Value, String> {
    Quantity::parse(text).map(|quantity| json!(quantity.canonical())).ok_or_else(|| MALFORMED.to_owned())
}

fn time(text: &str, form: &str, digits: usize) -> Result<Value, String> {
    match text.parse::<Timestamp>() {
        Ok(at) if digits == 0 => Ok(json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        Ok(at) => Ok(json!(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())),
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
        let object = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}}, "x": 1});
        let mut unknown = Vec::new();
        let decoded = decode(of, &object, &mut unknown).expect("of the right types");
        assert_eq!(unknown, ["spec.template.spec.containers[0].imagee", "x"]);
        assert_eq!(decoded, json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}));
    }

    #[test]
    fn a_wrong_type_is_told_as_go_does() {
        let of = types().of_kind("apps", "v1", "Deployment").expect("recorded");
        let error = decode(of, &json!({"spec": {"replicas": 1.5}}), &mut Vec::new()).unwrap_err();
        let expected =
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32";
        assert_eq!(error, expected);
    }
}
