//! Comparison of a live object with its manifest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// Returns true if a live object has every field that a manifest declares; it may have more.
pub fn has_declared_fields(live: &Value, declared: &Value) -> bool {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) => declared.iter().all(|(field, value)| match field.as_str() {
            // The API server stores the stringData of a Secret base64-encoded in data.
            "stringData" => live.get("data").is_some_and(|data| has_declared_fields(data, &encode_fields(value))),
            _ => value.is_null() || live.get(field).is_some_and(|live| has_declared_fields(live, value)),
        }),
        (Value::Array(live), Value::Array(declared)) => {
            live.len() == declared.len()
                && live.iter().zip(declared).all(|(live, declared)| has_declared_fields(live, declared))
        }
        _ => live == declared,
    }
}

fn encode_fields(plain: &Value) -> Value {
    let fields = plain.as_object().into_iter().flatten();
    let encode = |value: &Value| Value::String(BASE64.encode(value.as_str().unwrap_or_default()));
    fields.map(|(name, value)| (name.clone(), encode(value))).collect()
}
