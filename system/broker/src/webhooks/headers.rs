//! Headers that a subscription adds to its messages, such as `Authorization`. Their values are secret.

use std::collections::BTreeMap;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use sindri_model::limits::WEBHOOK_AUTH_HEADER_CHARS_MAX;
use thiserror::Error;

const HEADERS_MAX: usize = 20;
const NAME_CHARS_MAX: usize = 128;
/// Headers that the broker sets itself, or that control the length of the body.
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Prefixes of headers of the signature and of proxies.
const RESERVED_PREFIXES: [&str; 2] = ["webhook-", "proxy-"];

/// Headers of a subscription. `Debug` prints only their names.
#[derive(Clone, Default)]
pub(crate) struct ExtraHeaders(HeaderMap);

/// An invalid header of a subscription. The error never contains the value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum HeaderError {
    #[error("a subscription has at most {HEADERS_MAX} headers, not {0}")]
    TooMany(usize),
    #[error("{0:?} is not a valid header name")]
    Name(String),
    #[error("the header {0} is set by the broker")]
    Reserved(String),
    #[error("the header {0} is given twice")]
    Duplicate(String),
    #[error("the value of the header {0} must have at most {WEBHOOK_AUTH_HEADER_CHARS_MAX} visible characters")]
    Value(String),
}

impl ExtraHeaders {
    /// Parses headers from names and values.
    pub(crate) fn parse(headers: &BTreeMap<String, String>) -> Result<Self, HeaderError> {
        if headers.len() > HEADERS_MAX {
            return Err(HeaderError::TooMany(headers.len()));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = parse_name(name)?;
            let value = parse_value(&name, value)?;
            if map.insert(name.clone(), value).is_some() {
                return Err(HeaderError::Duplicate(name.to_string()));
            }
        }
        Ok(Self(map))
    }

    /// Returns the headers of a request.
    pub(crate) fn as_map(&self) -> &HeaderMap {
        &self.0
    }
}

impl fmt::Debug for ExtraHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn parse_name(text: &str) -> Result<HeaderName, HeaderError> {
    let parsed = (text.len() <= NAME_CHARS_MAX).then(|| HeaderName::try_from(text).ok()).flatten();
    let name = parsed.ok_or_else(|| HeaderError::Name(text.chars().take(NAME_CHARS_MAX).collect()))?;
    let is_reserved =
        RESERVED.contains(&name.as_str()) || RESERVED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
    if is_reserved { Err(HeaderError::Reserved(name.to_string())) } else { Ok(name) }
}

fn parse_value(name: &HeaderName, text: &str) -> Result<HeaderValue, HeaderError> {
    let is_visible =
        text.len() <= WEBHOOK_AUTH_HEADER_CHARS_MAX && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let value = is_visible.then(|| HeaderValue::try_from(text).ok()).flatten();
    let mut value = value.ok_or_else(|| HeaderError::Value(name.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &[(&str, &str)]) -> Result<ExtraHeaders, HeaderError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ExtraHeaders::parse(&headers.collect())
    }

    #[test]
    fn values_are_kept_and_not_printed() {
        let headers = parse(&[("Authorization", "Bearer abc"), ("X-Team", "a b")]).unwrap();
        assert_eq!(headers.as_map()["authorization"], "Bearer abc");
        assert_eq!(headers.as_map()["x-team"], "a b");
        assert_eq!(format!("{headers:?}"), r#"{"authorization", "x-team"}"#);
        assert!(!format!("{:?}", headers.as_map()).contains("abc"));
    }

    #[test]
    fn reserved_invalid_and_duplicate_names_are_rejected() {
        for name in ["Host", "content-length", "Transfer-Encoding", "webhook-signature", "Proxy-Authorization"] {
            assert_eq!(parse(&[(name, "secret")]).unwrap_err(), HeaderError::Reserved(name.to_ascii_lowercase()));
        }
        assert_eq!(parse(&[("a b", "secret")]).unwrap_err(), HeaderError::Name("a b".to_owned()));
        assert_eq!(parse(&[("", "secret")]).unwrap_err(), HeaderError::Name(String::new()));
        assert_eq!(parse(&[("X-A", "1"), ("x-a", "2")]).unwrap_err(), HeaderError::Duplicate("x-a".to_owned()));
    }

    #[test]
    fn an_invalid_value_is_rejected_and_not_repeated_in_the_error() {
        for value in ["secret\r\nHost: other", "secret\0", "sécret", &"secret".repeat(WEBHOOK_AUTH_HEADER_CHARS_MAX)] {
            let error = parse(&[("X-Key", value)]).unwrap_err();
            assert_eq!(error, HeaderError::Value("x-key".to_owned()));
            assert!(!error.to_string().contains("cret"), "{error}");
        }
    }

    #[test]
    fn a_subscription_has_at_most_20_headers() {
        let headers = |count: usize| (0..count).map(|number| (format!("x-{number}"), String::new())).collect();
        assert!(ExtraHeaders::parse(&headers(HEADERS_MAX)).is_ok());
        assert_eq!(ExtraHeaders::parse(&headers(HEADERS_MAX + 1)).unwrap_err(), HeaderError::TooMany(HEADERS_MAX + 1));
    }
}
