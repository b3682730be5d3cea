//! Watches: each is a cursor into the history of the store, with a selection and a form.

use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::encoding::protobuf;
use crate::http::error::ApiError;
use crate::http::media::{Form, Notation, Wanted};
use crate::http::request::StreamEnd;
use crate::http::response::as_beta;
use crate::object::fields::later;
use crate::object::stored::Stored;
use crate::printing::render;
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::state::selector::Selector;
use crate::storage::store::{Event, Store};

/// How often a quiet watch is told how far it has come.
const BOOKMARK_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// What a watch is about.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) selector: Selector,
    pub(crate) wanted: Wanted,
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
    /// Lines or messages that wait to be read: the initial state, or an error.
    pending: Vec<Bytes>,
    bookmark_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    closed: bool,
    /// Whether something was sent already.
    began: bool,
    /// After how many more events it breaks, and how.
    breaks: Option<(usize, StreamEnd)>,
    cut: bool,
}

impl Watch {
    pub(crate) fn new(scope: Scope, now: Timestamp, cursor: u64, bookmarks: bool, timeout_secs: Option<u64>) -> Self {
        let timeout = timeout_secs.and_then(|seconds| i64::try_from(seconds).ok()).map(SignedDuration::from_secs);
        Self {
            scope,
            cursor,
            pending: Vec::new(),
            bookmark_at: bookmarks.then(|| later(now, BOOKMARK_INTERVAL)),
            ends_at: timeout.map(|timeout| later(now, timeout)),
            closed: false,
            began: false,
            breaks: None,
            cut: false,
        }
    }

    /// Lets the watch break after so many events.
    pub(crate) fn break_after(&mut self, events: usize, how: StreamEnd) {
        self.breaks = Some((events, how));
    }

    /// Whether its connection breaks where it ends.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Puts the objects that exist already in front of the stream.
    pub(crate) fn start_with(&mut self, now: Timestamp, objects: &[Arc<Stored>]) {
        for object in objects {
            let line = self.line("ADDED", now, object);
            self.pending.push(line);
        }
    }

    /// Says that the initial state is complete.
    pub(crate) fn end_initial_events(&mut self) {
        let bookmark = self.bookmark(self.cursor, true);
        self.pending.push(bookmark);
    }

    /// The type of what is sent.
    pub(crate) fn media(&self) -> &'static str {
        match self.scope.wanted.notation {
            Notation::Protobuf => protobuf::STREAM,
            Notation::Json | Notation::Yaml => "application/json",
        }
    }

    /// When this watch has something to say or to do although nothing changed.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        [self.bookmark_at, self.ends_at].into_iter().flatten().min()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed && self.pending.is_empty()
    }

    /// Ends the watch once what happened so far was read.
    pub(crate) fn close(&mut self) {
        self.ends_at = Some(Timestamp::MIN);
    }

    /// Everything since the last call.
    pub(crate) fn read(&mut self, store: &Store, now: Timestamp) -> Vec<Bytes> {
        let mut lines = self.unbroken(store, now);
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

    fn expired(&self, store: &Store) -> Bytes {
        let message = format!("too old resource version: {} ({})", self.cursor, store.compacted() + 1);
        self.encode("ERROR", ApiError::expired(message).to_value().to_string().as_bytes())
    }

    fn unbroken(&mut self, store: &Store, now: Timestamp) -> Vec<Bytes> {
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
            lines.extend(self.see(now, event));
        }
        // A client may know a revision that this server has not reached; it is not taken back.
        self.cursor = self.cursor.max(store.revision());
        if self.bookmark_at.is_some_and(|at| at <= now) {
            lines.push(self.bookmark(self.cursor, false));
            self.bookmark_at = Some(later(now, BOOKMARK_INTERVAL));
        }
        self.closed = self.ends_at.is_some_and(|at| at <= now);
        lines
    }

    /// A change seen through the selection: an object that begins to match is added, one that ceases to is deleted.
    fn see(&mut self, now: Timestamp, event: &Event) -> Option<Bytes> {
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
                // The last state that matched, at the revision at which it ceased to.
                let mut last = Value::clone(event.before.as_ref()?);
                crate::object::fields::metadata(&mut last)
                    .insert("resourceVersion".to_owned(), json!(event.revision.to_string()));
                Some(self.line("DELETED", now, &Stored::new(last)))
            }
        }
    }

    fn line(&mut self, kind: &str, now: Timestamp, object: &Stored) -> Bytes {
        let Form::Table(include) = self.scope.wanted.form else {
            return self.encode(kind, &render::object(&self.scope.target, self.scope.wanted.form, now, object));
        };
        let mut shown = render::table(&self.scope.target, include, now, object);
        // A stream of tables says once what its columns are.
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
        let object = match self.scope.wanted.form {
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Object => {
                json!({"kind": target.resource.kind, "apiVersion": target.api_version(), "metadata": metadata})
            }
            Form::Table(include) => {
                crate::printing::table::table(target, include, Timestamp::UNIX_EPOCH, &[], metadata)
            }
        };
        self.encode("BOOKMARK", object.to_string().as_bytes())
    }

    /// One event as it is sent, with an object in JSON.
    fn encode(&self, kind: &str, object: &[u8]) -> Bytes {
        self.in_another_form(kind, object).unwrap_or_else(|| line_of(kind, object))
    }

    /// The event as somebody wants it who does not want what everybody else does.
    fn in_another_form(&self, kind: &str, object: &[u8]) -> Option<Bytes> {
        let Wanted { is_beta, notation, .. } = self.scope.wanted;
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

/// One line of a stream.
fn line_of(kind: &str, object: &[u8]) -> Bytes {
    [b"{\"object\":", object, b",\"type\":\"", kind.as_bytes(), b"\"}\n"].concat().into()
}
