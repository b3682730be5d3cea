//! Watches: each is a cursor into the history of the store, with a selector and a format.

use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::encoding::protobuf;
use crate::http::error::ApiError;
use crate::http::media::{Notation, Representation, ResponseFormat};
use crate::http::request::StreamEnd;
use crate::http::response::as_beta;
use crate::object::fields::add_duration;
use crate::object::stored::Stored;
use crate::printing::render;
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::state::selector::Selector;
use crate::storage::store::{Event, Store};

/// Interval of bookmarks.
const BOOKMARK_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// Objects and format of a list or a watch.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) selector: Selector,
    pub(crate) format: ResponseFormat,
}

impl Scope {
    pub(crate) fn selects(&self, namespace: Option<&str>, object: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| namespace == Some(wanted))
            && self.name.as_deref().is_none_or(|wanted| crate::object::fields::name(object) == wanted)
            && self.selector.matches(object)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) scope: Scope,
    cursor: u64,
    /// Events that were not read yet: the initial state, or an error.
    pending: Vec<Bytes>,
    bookmark_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    closed: bool,
    /// True once a table was sent.
    began: bool,
    /// Injected fault: number of events left, and the kind of the break.
    breaks: Option<(usize, StreamEnd)>,
    cut: bool,
    /// Headers that name the FlowSchema of the request.
    pub(crate) flow_headers: Vec<(&'static str, String)>,
}

impl Watch {
    pub(crate) fn new(scope: Scope, now: Timestamp, cursor: u64, bookmarks: bool, timeout_secs: Option<u64>) -> Self {
        let timeout = timeout_secs.and_then(|seconds| i64::try_from(seconds).ok()).map(SignedDuration::from_secs);
        Self {
            scope,
            cursor,
            pending: Vec::new(),
            bookmark_at: bookmarks.then(|| add_duration(now, BOOKMARK_INTERVAL)),
            ends_at: timeout.map(|timeout| add_duration(now, timeout)),
            closed: false,
            began: false,
            breaks: None,
            cut: false,
            flow_headers: Vec::new(),
        }
    }

    /// Injects a break after a number of events.
    pub(crate) fn break_after(&mut self, events: usize, how: StreamEnd) {
        self.breaks = Some((events, how));
    }

    /// True if its connection is cut at its end.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Adds the existing objects to the start of the stream.
    pub(crate) fn start_with(&mut self, now: Timestamp, objects: &[Arc<Stored>]) {
        for object in objects {
            let line = self.line("ADDED", now, object);
            self.pending.push(line);
        }
    }

    /// Adds the bookmark that ends the initial events.
    pub(crate) fn end_initial_events(&mut self) {
        let bookmark = self.bookmark(self.cursor, true);
        self.pending.push(bookmark);
    }

    /// Returns the content type of the stream.
    pub(crate) fn media(&self) -> &'static str {
        match self.scope.format.notation {
            Notation::Protobuf => protobuf::STREAM,
            Notation::Json | Notation::Yaml => "application/json",
        }
    }

    /// Returns the time of the next bookmark or of the timeout.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        [self.bookmark_at, self.ends_at].into_iter().flatten().min()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed && self.pending.is_empty()
    }

    /// Ends the watch after the events so far.
    pub(crate) fn close(&mut self) {
        self.ends_at = Some(Timestamp::MIN);
    }

    /// Returns the events since the last call.
    pub(crate) fn read(&mut self, store: &Store, now: Timestamp) -> Vec<Bytes> {
        let mut lines = self.read_events(store, now);
        let Some((left, how)) = self.breaks else { return lines };
        if lines.len() < left {
            self.breaks = Some((left - lines.len(), how));
            return lines;
        }
        lines.truncate(left);
        if how == StreamEnd::Expired {
            lines.push(self.expired(store));
        }
        self.breaks = None;
        self.closed = true;
        self.cut = how == StreamEnd::Cut;
        lines
    }

    /// Returns the objects of the events that were not read yet.
    pub(crate) fn unread_objects<'a>(&self, store: &'a Store) -> Vec<&'a Value> {
        let resource = &self.scope.target.resource;
        let events = store.events_after(self.cursor);
        let events = events.filter(|event| event.key.group == resource.group && event.key.plural == resource.plural);
        events.flat_map(|event| event.before.iter().chain([&event.object])).map(|object| &****object).collect()
    }

    fn expired(&self, store: &Store) -> Bytes {
        let message = format!("too old resource version: {} ({})", self.cursor, store.compacted() + 1);
        self.encode("ERROR", ApiError::expired(message).to_value().to_string().as_bytes())
    }

    fn read_events(&mut self, store: &Store, now: Timestamp) -> Vec<Bytes> {
        let mut lines = std::mem::take(&mut self.pending);
        if self.closed {
            return lines;
        }
        if self.cursor < store.compacted() {
            lines.push(self.expired(store));
            self.closed = true;
            return lines;
        }
        for event in store.events_after(self.cursor) {
            lines.extend(self.event_for(now, event));
        }
        // A client may start at a revision that this server has not reached; the cursor never moves back.
        self.cursor = self.cursor.max(store.revision());
        if self.bookmark_at.is_some_and(|at| at <= now) {
            lines.push(self.bookmark(self.cursor, false));
            self.bookmark_at = Some(add_duration(now, BOOKMARK_INTERVAL));
        }
        self.closed = self.ends_at.is_some_and(|at| at <= now);
        lines
    }

    /// Returns the event of a change: an object that starts to match is added, one that ceases to match is deleted.
    fn event_for(&mut self, now: Timestamp, event: &Event) -> Option<Bytes> {
        let resource = &self.scope.target.resource;
        if event.key.group != conversion::storage_group(resource) || event.key.plural != resource.plural {
            return None;
        }
        let namespace = event.key.namespace.as_deref();
        let before = event.before.as_ref().is_some_and(|before| self.scope.selects(namespace, before));
        let after = !event.gone && self.scope.selects(namespace, &event.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", now, &event.object)),
            (true, true) => Some(self.line("MODIFIED", now, &event.object)),
            (true, false) => {
                // The last matching state, at the revision of the change.
                let mut last = Value::clone(event.before.as_ref()?);
                crate::object::fields::metadata(&mut last)
                    .insert("resourceVersion".to_owned(), json!(event.revision.to_string()));
                Some(self.line("DELETED", now, &Stored::new(last)))
            }
        }
    }

    fn line(&mut self, kind: &str, now: Timestamp, object: &Stored) -> Bytes {
        let Representation::Table(include) = self.scope.format.representation else {
            return self
                .encode(kind, &render::object(&self.scope.target, self.scope.format.representation, now, object));
        };
        let mut shown = render::table(&self.scope.target, include, now, object);
        // Only the first table of a stream has column definitions.
        if std::mem::replace(&mut self.began, true) {
            shown["columnDefinitions"] = Value::Null;
        }
        self.encode(kind, shown.to_string().as_bytes())
    }

    fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let target = &self.scope.target;
        let object = match self.scope.format.representation {
            Representation::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Representation::Object => {
                json!({"kind": target.resource.kind, "apiVersion": target.api_version(), "metadata": metadata})
            }
            Representation::Table(include) => {
                crate::printing::table::table(target, include, Timestamp::UNIX_EPOCH, &[], metadata)
            }
        };
        self.encode("BOOKMARK", object.to_string().as_bytes())
    }

    /// Serializes an event with an object in JSON.
    fn encode(&self, kind: &str, object: &[u8]) -> Bytes {
        self.encode_converted(kind, object).unwrap_or_else(|| line_of(kind, object))
    }

    /// Serializes an event in v1beta1 or Protobuf; `None` for plain JSON.
    fn encode_converted(&self, kind: &str, object: &[u8]) -> Option<Bytes> {
        let ResponseFormat { is_beta, notation, .. } = self.scope.format;
        let is_protobuf = match notation {
            Notation::Protobuf => true,
            Notation::Json | Notation::Yaml => false,
        };
        if !is_beta && !is_protobuf {
            return None;
        }
        let mut object: Value = serde_json::from_slice(object).ok()?;
        if is_beta {
            as_beta(&mut object);
        }
        let message = if is_protobuf { protobuf::encode_event(kind, &object) } else { None };
        Some(message.unwrap_or_else(|| line_of(kind, object.to_string().as_bytes())))
    }
}

/// Returns one line of a JSON stream.
fn line_of(kind: &str, object: &[u8]) -> Bytes {
    [b"{\"object\":", object, b",\"type\":\"", kind.as_bytes(), b"\"}\n"].concat().into()
}
