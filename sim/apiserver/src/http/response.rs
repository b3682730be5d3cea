//! Responses.

use std::io::Write;

use bytes::Bytes;
use serde_json::Value;

use crate::encoding::protobuf;
use crate::encoding::yaml::writer;
use crate::http::media::Notation;
use crate::http::request::Request;
use crate::http::upgrade::Upgrade;
use crate::object::stored::append;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// Smallest body in bytes that is compressed.
const COMPRESS_BYTES_MIN: usize = 128 * 1024;

/// Compresses a body, without time and name in the header, so that equal bodies give equal bytes.
fn compressed(body: &Bytes) -> Bytes {
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::fast());
    // Writing into memory does not fail.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.map_or_else(|_| body.clone(), Bytes::from)
}

/// True if a request asks for indented JSON, or comes from a program that people use.
fn is_for_people(request: &Request) -> bool {
    match request.parameter("pretty") {
        Some(_) => request.flag("pretty"),
        None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|program| request.headers.user_agent.starts_with(program)),
    }
}

fn indent(body: &[u8]) -> Option<Bytes> {
    let document: Value = serde_json::from_slice(body).ok()?;
    serde_json::to_vec_pretty(&document).ok().map(Bytes::from)
}

/// Changes a table or a metadata object, and those inside it, to the version v1beta1.
pub(crate) fn as_beta(form: &mut Value) {
    if form.get("apiVersion").is_some_and(|version| version == "meta.k8s.io/v1") {
        form["apiVersion"] = "meta.k8s.io/v1beta1".into();
    }
    for part in ["items", "rows"] {
        form.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten().for_each(as_beta);
    }
    if let Some(object) = form.get_mut("object") {
        as_beta(object);
    }
}

/// Id of an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub u64);

/// Response to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A complete response.
    Full {
        /// The HTTP status.
        status: u16,
        /// Headers, including the content type.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: Bytes,
    },
    /// A stream of events: read it with `watch_events` and end it with `close_watch`.
    Watch(WatchId),
    /// The connection changes to another protocol, and the streams of a pod are served on it.
    Upgrade(Box<Upgrade>),
    /// The connection must be cut without a response.
    Cut,
}

impl Response {
    /// Creates a response in JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let mut json = Vec::new();
        append(&mut json, body);
        Self::from_json(status, json.into())
    }

    /// Creates a response in indented JSON, as the documents about the server have it.
    pub(crate) fn indented(status: u16, body: &Value) -> Self {
        Self::from_json(status, serde_json::to_vec_pretty(body).expect("JSON has string keys only").into())
    }

    /// Creates a response from serialized JSON.
    pub(crate) fn from_json(status: u16, json: Bytes) -> Self {
        Self::Full { status, headers: vec![("content-type", JSON.to_owned())], body: json }
    }

    /// Creates a response in plain text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        let headers = vec![
            ("content-type", "text/plain; charset=utf-8".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self::Full { status, headers, body: body.to_owned().into() }
    }

    /// Adds a header to a complete response.
    #[must_use]
    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        if let Self::Full { headers, .. } = &mut self {
            headers.retain(|(other, _)| *other != name || name == "warning");
            headers.push((name, value));
        }
        self
    }

    /// Adds a warning. As in the real server, one that no header can hold is left out.
    #[must_use]
    pub(crate) fn with_warning(self, warning: &str) -> Self {
        if warning.contains(char::is_control) {
            return self;
        }
        self.with_header("warning", warning_header(warning))
    }

    /// Returns the response without its body.
    pub(crate) fn without_body(mut self) -> Self {
        if let Self::Full { body, .. } = &mut self {
            *body = Bytes::new();
        }
        self
    }

    /// Returns a JSON response in the form that the real server writes: on one line that ends with a newline, or indented for
    /// people.
    pub(crate) fn in_form(self, request: &Request) -> Self {
        match self {
            Self::Full { status, headers, body } if headers.contains(&("content-type", JSON.to_owned())) => {
                let indented = if is_for_people(request) { indent(&body) } else { None };
                let body = indented.unwrap_or_else(|| [&body[..], b"\n"].concat().into());
                Self::Full { status, headers, body }
            }
            other => other,
        }
    }

    /// Returns the response compressed, if the client accepts it and it is large enough.
    pub(crate) fn encoded(self, request: &Request) -> Self {
        match self {
            Self::Full { status, mut headers, body } if body.len() >= COMPRESS_BYTES_MIN => {
                let takes = request.headers.accept_encoding.split(',').any(|encoding| encoding.trim() == "gzip");
                if !takes {
                    return Self::Full { status, headers, body };
                }
                headers.push(("content-encoding", "gzip".to_owned()));
                let vary = ("vary", "Accept-Encoding".to_owned());
                if !headers.contains(&vary) {
                    headers.push(vary);
                }
                Self::Full { status, headers, body: compressed(&body) }
            }
            other => other,
        }
    }

    /// Converts a JSON response to another format. An object without Protobuf encoding stays JSON.
    pub(crate) fn in_notation(self, notation: Notation) -> Self {
        if notation == Notation::Json || self.header("content-type") != Some(JSON) {
            return self;
        }
        let Some(document) = self.body_json() else { return self };
        let (media, written) = match notation {
            Notation::Json => return self,
            Notation::Yaml => (YAML, writer::write(&document).into()),
            Notation::Protobuf => match protobuf::encode(&document) {
                Some(written) => (protobuf::MEDIA, written),
                None => return self,
            },
        };
        self.with_body(written).with_header("content-type", media.to_owned())
    }

    /// Converts a table or metadata response to the version v1beta1.
    pub(crate) fn in_beta(self) -> Self {
        let document = self.body_json();
        match document {
            Some(mut document) => {
                as_beta(&mut document);
                self.with_body(document.to_string().into())
            }
            None => self,
        }
    }

    fn with_body(mut self, written: Bytes) -> Self {
        if let Self::Full { body, .. } = &mut self {
            *body = written;
        }
        self
    }

    /// Returns the status of a complete response; a watch has 200, an upgrade 101.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Full { status, .. } => Some(*status),
            Self::Watch(_) => Some(200),
            Self::Upgrade(_) => Some(101),
            Self::Cut => None,
        }
    }

    /// Returns the body of a complete response, if it is JSON.
    #[must_use]
    pub fn body_json(&self) -> Option<Value> {
        match self {
            Self::Full { body, .. } => serde_json::from_slice(body).ok(),
            Self::Watch(_) | Self::Upgrade(_) | Self::Cut => None,
        }
    }

    /// Returns the value of a header of a complete response.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Full { headers, .. } => {
                headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
            }
            Self::Watch(_) | Self::Upgrade(_) | Self::Cut => None,
        }
    }
}

/// Returns the value of a `Warning` header.
fn warning_header(warning: &str) -> String {
    format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""))
}
