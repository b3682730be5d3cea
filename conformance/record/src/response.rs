//! A complete response, and its recorded form: status, relevant headers and body.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::protobuf;

/// Headers that are recorded. The others differ from response to response or are not specific to Kubernetes.
const RECORDED_HEADERS: [&str; 9] = [
    "Allow",
    "Content-Encoding",
    "Content-Type",
    "ETag",
    "Location",
    "Retry-After",
    "Vary",
    "Warning",
    "WWW-Authenticate",
];

/// A complete response.
#[derive(Clone, Debug)]
pub struct FullResponse {
    /// Status code.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl FullResponse {
    /// Returns true for a 2xx status.
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Returns the body as JSON, decoded from protobuf if needed; null if it is neither.
    pub fn json(&self) -> Value {
        if protobuf::is_protobuf(&self.headers) {
            return protobuf::decode(&self.body).unwrap_or_default();
        }
        if self.content_type().contains("json") {
            serde_json::from_slice(&self.body).unwrap_or_default()
        } else {
            Value::Null
        }
    }

    /// Converts the response to its recorded form.
    pub fn to_recorded(&self) -> Value {
        json!({"status": self.status.as_u16(), "headers": recorded_headers(&self.headers), "body": self.to_recorded_body()})
    }

    fn content_type(&self) -> &str {
        self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// JSON as it is, text as a string, protobuf decoded; for anything else only that there was a body.
    fn to_recorded_body(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        if self.headers.contains_key(http::header::CONTENT_ENCODING) {
            return json!({"encoded": true});
        }
        if protobuf::is_protobuf(&self.headers) {
            return protobuf::record_body(&self.body);
        }
        match (self.json(), std::str::from_utf8(&self.body)) {
            (Value::Null, Ok(text)) if !self.content_type().contains("protobuf") => json!(text),
            (Value::Null, _) => json!({"binary": true}),
            (value, _) => value,
        }
    }
}

/// Returns the headers that are recorded. A repeated header is a list.
pub fn recorded_headers(headers: &HeaderMap) -> BTreeMap<&'static str, Value> {
    let mut recorded = BTreeMap::new();
    for name in RECORDED_HEADERS {
        let values: Vec<Value> =
            headers.get_all(name).iter().map(|value| json!(String::from_utf8_lossy(value.as_bytes()))).collect();
        match <[Value; 1]>::try_from(values) {
            Ok([value]) => drop(recorded.insert(name, value)),
            Err(values) if values.is_empty() => {}
            Err(values) => drop(recorded.insert(name, Value::Array(values))),
        }
    }
    recorded
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_repeated_header_is_a_list_and_irrelevant_headers_are_left_out() {
        let mut headers = HeaderMap::new();
        headers.append("warning", HeaderValue::from_static("299 - \"a\""));
        headers.append("warning", HeaderValue::from_static("299 - \"b\""));
        headers.append("content-type", HeaderValue::from_static("text/plain"));
        headers.append("audit-id", HeaderValue::from_static("1"));
        let response = FullResponse { status: StatusCode::OK, headers, body: Bytes::from_static(b"ok") };
        let expected = json!({
            "status": 200, "body": "ok",
            "headers": {"Content-Type": "text/plain", "Warning": ["299 - \"a\"", "299 - \"b\""]},
        });
        assert_eq!(response.to_recorded(), expected);
    }
}
