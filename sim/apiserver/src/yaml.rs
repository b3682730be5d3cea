//! Reading bodies. The only place that knows which YAML library there is.
//!
//! Bodies are bounded before they come here; nesting and aliases are bounded by the parsers.

use serde_json::Value;

/// Reads one JSON document.
pub(crate) fn read_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Reads one YAML document, of which JSON is a part.
pub(crate) fn read_yaml(body: &[u8]) -> Result<Value, String> {
    match serde_json::from_slice(body) {
        Ok(value) => Ok(value),
        Err(_) => serde_yaml::from_slice(body).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_read() {
        assert_eq!(read_yaml(b"a: 1\nb: [x]\n"), Ok(json!({"a": 1, "b": ["x"]})));
        assert_eq!(read_yaml(br#"{"a": 1}"#), Ok(json!({"a": 1})));
        assert!(read_yaml(b"a: [").is_err());
        assert!(read_json(b"a: 1").is_err());
    }
}
