//! Requests, and the faults that a simulation injects into them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use sindri_merge::merge_patch;

use crate::http::subject::Subject;
use crate::http::upgrade::UpgradeHeaders;

/// Largest request body in bytes, as in the real server.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// One request, reduced to the parts that an API server reads.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The path, decoded and without the query.
    pub path: String,
    /// Query parameters. Of a repeated parameter most readers use the first value, as the real server does.
    pub query: BTreeMap<String, String>,
    /// Repeated parameters with their later values.
    pub repeated: Vec<(String, String)>,
    /// Headers that the server reads.
    pub headers: Headers,
    /// Body; empty if there is none.
    pub body: Bytes,
}

/// Headers that an API server reads. An absent header is empty.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// `Accept`.
    pub accept: String,
    /// `Content-Type`.
    pub content_type: String,
    /// `User-Agent`; the default field manager comes from it.
    pub user_agent: String,
    /// `If-None-Match`: the entity tag of a cached discovery document.
    pub if_none_match: String,
    /// `Accept-Encoding`.
    pub accept_encoding: String,
    /// `Authorization`.
    pub authorization: Credentials,
    /// Subject of the client's certificate, if it presented one.
    pub certificate: Option<Subject>,
    /// Impersonation headers.
    pub impersonation: Impersonation,
    /// Headers that ask for another protocol.
    pub upgrade: UpgradeHeaders,
}

/// Value of `Authorization`. Its Debug form hides it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials(pub String);

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "none" } else { "hidden" })
    }
}

/// The headers `Impersonate-…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// Name of the user, if given.
    pub user: Option<String>,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// UID of the user.
    pub uid: Option<String>,
    /// Extra attributes of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Headers {
    /// Reads the headers of a request.
    #[must_use]
    pub fn read(headers: &http::HeaderMap) -> Self {
        let header = |name: &str| {
            // Several lines of one header are equivalent to one line with commas.
            let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
            values.join(",")
        };
        let optional = |name: &str| headers.contains_key(name).then(|| header(name));
        let all = |name: &http::HeaderName| -> Vec<String> {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
        };
        let extra = headers.keys().filter_map(|name| Some((name.as_str().strip_prefix("impersonate-extra-")?, name)));
        Self {
            accept: header("accept"),
            content_type: header("content-type"),
            user_agent: header("user-agent"),
            if_none_match: header("if-none-match"),
            accept_encoding: header("accept-encoding"),
            authorization: Credentials(header("authorization")),
            certificate: None,
            impersonation: Impersonation {
                user: optional("impersonate-user"),
                groups: all(&http::HeaderName::from_static("impersonate-group")),
                uid: optional("impersonate-uid"),
                extra: extra.map(|(key, name)| (key.to_owned(), all(name))).collect(),
            },
            upgrade: UpgradeHeaders {
                connection: header("connection"),
                upgrade: header("upgrade"),
                websocket_protocols: header("sec-websocket-protocol"),
                websocket_key: header("sec-websocket-key"),
                websocket_version: header("sec-websocket-version"),
                stream_protocols: optional("x-stream-protocol-version"),
            },
        }
    }
}

/// A malformed request target.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the request target {0:?} is not valid")]
pub struct RequestError(pub String);

impl Request {
    /// Creates a request from a method and a target such as `/api/v1/namespaces?limit=5`.
    ///
    /// # Errors
    /// When the target holds a malformed percent escape.
    pub fn new(method: Method, target: &str) -> Result<Self, RequestError> {
        let malformed = || RequestError(target.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (mut parameters, mut repeated) = (BTreeMap::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, true).ok_or_else(malformed)?;
            let value = decode(value, true).ok_or_else(malformed)?;
            match parameters.entry(name) {
                Entry::Occupied(known) => repeated.push((known.key().clone(), value)),
                Entry::Vacant(place) => drop(place.insert(value)),
            }
        }
        let path = decode(path, false).ok_or_else(malformed)?;
        Ok(Self { method, path, query: parameters, repeated, headers: Headers::default(), body: Bytes::new() })
    }

    /// Returns the request with its body changed by a merge patch; a body that is not JSON stays unchanged.
    pub(crate) fn with_patched_body(&self, patch: &Value) -> Self {
        let body = serde_json::from_slice(&self.body).map(|sent: Value| merge_patch(&sent, patch).to_string());
        Self { body: body.map_or_else(|_| self.body.clone(), Bytes::from), ..self.clone() }
    }

    /// Returns the request with a body.
    #[must_use]
    pub fn with_body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        content_type.clone_into(&mut self.headers.content_type);
        self.body = body.into();
        self
    }

    /// Returns the request as a watch.
    pub(crate) fn as_watch(&self) -> Self {
        let mut watch = self.clone();
        watch.query.insert("watch".to_owned(), "true".to_owned());
        watch
    }

    /// Returns the value of a query parameter that is present and not empty.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns every value of a query parameter.
    pub(crate) fn all_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let later = self.repeated.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str());
        self.parameter(name).into_iter().chain(later)
    }

    /// True if a query parameter is true by Go's `strconv.ParseBool`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
    }
}

/// Decodes percent-encoding. As in Go, a malformed escape is an error; the crate `percent-encoding` would accept it.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Fault that is injected into one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server rejects the request and changes nothing. A 429 is plain text, as API priority and fairness sends it;
    /// any other status is a `Status` object.
    Refuse {
        /// HTTP status: 429, 500, 503, 504, or any other.
        status: u16,
        /// Value of `Retry-After` in seconds.
        retry_after_secs: Option<u64>,
    },
    /// The request is executed, and the connection breaks before the response.
    LoseResponse,
    /// The connection breaks before anything is executed.
    CutBeforeCommit,
    /// The body is changed by a merge patch before it is handled, as a mutating webhook would change it.
    Rewrite(Value),
    /// A watch breaks after a number of events. Other requests are not affected.
    BreakStream {
        /// Number of events before the break.
        after_events: usize,
        /// Kind of the break.
        how: StreamEnd,
    },
}

/// End of a broken watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamEnd {
    /// It ends as after its timeout.
    Closed,
    /// It reports that its resourceVersion is too old, and ends.
    Expired,
    /// The connection breaks.
    Cut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_decoded() {
        let request = Request::new(Method::GET, "/a%2Fb?x=1%2C2&y&x=3").expect("valid");
        assert_eq!(request.path, "/a/b");
        assert_eq!(request.parameter("x"), Some("1,2"));
        assert_eq!(request.parameter("y"), None);
    }

    #[test]
    fn a_broken_escape_is_an_error() {
        assert!(Request::new(Method::GET, "/a%2").is_err());
        assert!(Request::new(Method::GET, "/a%fe").is_err());
    }
}
