//! What comes out of the machine.

use std::io::Write;

use bytes::Bytes;
use serde_json::Value;

use crate::encoding::protobuf;
use crate::encoding::yaml::writer;
use crate::http::media::Notation;
use crate::http::request::Request;
use crate::object::stored::append;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// Smaller answers are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 128 * 1024;

/// Without a time or a name, so that the same answer is the same bytes.
fn compressed(body: &Bytes) -> Bytes {
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::fast());
    // Writing into memory does not fail.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.map_or_else(|_| body.clone(), Bytes::from)
}

/// Makes a form that is not the object itself the older version of it, with what is inside.
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

/// One open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub u64);

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A complete answer.
    Full {
        /// The HTTP status.
        status: u16,
        /// The headers, the content type among them.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: Bytes,
    },
    /// A stream of events: read it with `watch_events` and end it with `close_watch`.
    Watch(WatchId),
    /// The connection must be cut without an answer.
    Cut,
}

impl Response {
    /// An answer in JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let mut json = Vec::new();
        append(&mut json, body);
        Self::written(status, json.into())
    }

    /// An answer whose JSON is written already.
    pub(crate) fn written(status: u16, json: Bytes) -> Self {
        Self::Full { status, headers: vec![("content-type", JSON.to_owned())], body: json }
    }

    /// An answer in plain text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        let headers = vec![
            ("content-type", "text/plain; charset=utf-8".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self::Full { status, headers, body: body.to_owned().into() }
    }

    /// Adds a header to a complete answer.
    #[must_use]
    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        if let Self::Full { headers, .. } = &mut self {
            headers.retain(|(other, _)| *other != name || name == "warning");
            headers.push((name, value));
        }
        self
    }

    /// The head of an answer alone.
    pub(crate) fn without_body(mut self) -> Self {
        if let Self::Full { body, .. } = &mut self {
            *body = Bytes::new();
        }
        self
    }

    /// The answer in the encoding that the client takes.
    pub(crate) fn encoded(self, request: &Request) -> Self {
        match self {
            Self::Full { status, mut headers, body } if body.len() >= COMPRESS_BYTES_MIN => {
                let takes = request.headers.accept_encoding.split(',').any(|encoding| encoding.trim() == "gzip");
                if !takes {
                    return Self::Full { status, headers, body };
                }
                headers.push(("content-encoding", "gzip".to_owned()));
                headers.push(("vary", "Accept-Encoding".to_owned()));
                Self::Full { status, headers, body: compressed(&body) }
            }
            other => other,
        }
    }

    /// An answer of JSON in the notation that the client prefers. What has no message stays as it is.
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

    /// An answer in one of the forms that are not the objects themselves, as the older version of these has it.
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

    /// The same answer, unless it has no body, as this message.
    pub(crate) fn with_message(self, written: Bytes, media: &str) -> Self {
        if self.status() != Some(200) {
            return self;
        }
        self.with_body(written).with_header("content-type", media.to_owned())
    }

    fn with_body(mut self, written: Bytes) -> Self {
        if let Self::Full { body, .. } = &mut self {
            *body = written;
        }
        self
    }

    /// The status of a complete answer; a watch is 200.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Full { status, .. } => Some(*status),
            Self::Watch(_) => Some(200),
            Self::Cut => None,
        }
    }

    /// The body of a complete answer, when it is JSON.
    #[must_use]
    pub fn body_json(&self) -> Option<Value> {
        match self {
            Self::Full { body, .. } => serde_json::from_slice(body).ok(),
            Self::Watch(_) | Self::Cut => None,
        }
    }

    /// The value of a header of a complete answer.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Full { headers, .. } => {
                headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
            }
            Self::Watch(_) | Self::Cut => None,
        }
    }
}
