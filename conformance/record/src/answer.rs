//! What the server answered: the status, the headers that mean something, and the body.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::protobuf;

/// The headers that are kept. The others differ from answer to answer or say nothing about Kubernetes.
const KEPT_HEADERS: [&str; 9] = [
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

/// One answer, whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// Every header.
    pub headers: HeaderMap,
    /// The body, as it came.
    pub body: Bytes,
}

impl Answer {
    /// Whether it is a success.
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// The body as JSON, or null if it is none. A message that is known is as good.
    pub fn json(&self) -> Value {
        if protobuf::is_in(&self.headers) {
            return protobuf::read(&self.body).unwrap_or_default();
        }
        if self.content_type().contains("json") {
            serde_json::from_slice(&self.body).unwrap_or_default()
        } else {
            Value::Null
        }
    }

    /// The answer as it is written down.
    pub fn recorded(&self) -> Value {
        json!({"status": self.status.as_u16(), "headers": kept(&self.headers), "body": self.recorded_body()})
    }

    fn content_type(&self) -> &str {
        self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// JSON as it is, text as a string, messages as what is in them; of anything else only that there was something.
    fn recorded_body(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        if self.headers.contains_key(http::header::CONTENT_ENCODING) {
            return json!({"encoded": true});
        }
        if protobuf::is_in(&self.headers) {
            return protobuf::recorded(&self.body);
        }
        match (self.json(), std::str::from_utf8(&self.body)) {
            (Value::Null, Ok(text)) if !self.content_type().contains("protobuf") => json!(text),
            (Value::Null, _) => json!({"binary": true}),
            (value, _) => value,
        }
    }
}

/// The headers that are written down. A header that came more than once is a list.
pub fn kept(headers: &HeaderMap) -> BTreeMap<&'static str, Value> {
    let mut kept = BTreeMap::new();
    for name in KEPT_HEADERS {
        let values: Vec<Value> =
            headers.get_all(name).iter().map(|value| json!(String::from_utf8_lossy(value.as_bytes()))).collect();
        match <[Value; 1]>::try_from(values) {
            Ok([value]) => drop(kept.insert(name, value)),
            Err(values) if values.is_empty() => {}
            Err(values) => drop(kept.insert(name, Value::Array(values))),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_header_that_came_twice_is_a_list_and_unimportant_ones_are_left_out() {
        let mut headers = HeaderMap::new();
        headers.append("warning", HeaderValue::from_static("299 - \"a\""));
        headers.append("warning", HeaderValue::from_static("299 - \"b\""));
        headers.append("content-type", HeaderValue::from_static("text/plain"));
        headers.append("audit-id", HeaderValue::from_static("1"));
        let answer = Answer { status: StatusCode::OK, headers, body: Bytes::from_static(b"ok") };
        let expected = json!({
            "status": 200, "body": "ok",
            "headers": {"Content-Type": "text/plain", "Warning": ["299 - \"a\"", "299 - \"b\""]},
        });
        assert_eq!(answer.recorded(), expected);
    }
}
