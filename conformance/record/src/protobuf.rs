//! Bodies in protobuf: sent whole or damaged, and recorded as what is in them.
//!
//! The table of messages is that of the simulated server. Whether it is right is recorded too: each message that is read is
//! written again, and has to be the same bytes.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Value, json};
use sindri_apiserver::protobuf as messages;

pub use sindri_apiserver::protobuf::MEDIA;

/// How many bytes tell the length of an event.
const LENGTH_BYTES: usize = 4;
/// A field that no message has, and what is in it.
const UNKNOWN_FIELD: &[u8] = b"\xc2\x3e\x01x";

/// Whether a body is in protobuf.
pub fn is_in(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.starts_with(MEDIA)
}

/// What is in a body, if it can be read.
pub fn read(body: &[u8]) -> Option<Value> {
    messages::decode(body).ok()
}

/// A body as it is written down: what is in it, and whether writing it again gives the same bytes.
pub fn recorded(body: &[u8]) -> Value {
    match messages::decode(body) {
        Ok(object) => {
            let bytes = likeness(messages::encode(&object).as_deref() == Some(body));
            json!({"protobuf": object, "bytes": bytes})
        }
        Err(_) => json!({"binary": true}),
    }
}

/// An event of a watch, with its length before it, as it is written down.
pub fn recorded_event(frame: &[u8]) -> Value {
    let read = frame.get(LENGTH_BYTES..).and_then(|event| messages::decode_event(event).ok());
    let Some(mut event) = read else { return json!({"binary": true}) };
    let kind = event["type"].as_str().unwrap_or_default();
    let same = messages::encode_event(kind, &event["object"]).as_deref() == Some(frame);
    event["bytes"] = json!(likeness(same));
    event
}

fn likeness(same: bool) -> &'static str {
    if same { "the same when written again" } else { "others when written again" }
}

/// What is wrong with a message on purpose.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// The last third is missing.
    Cut,
    /// It begins with something else.
    Magic,
    /// There is nothing behind its beginning.
    Empty,
    /// The end of what is in the envelope is missing.
    Content,
    /// A field is written in another way than its type is.
    Way,
    /// A group ends that never began.
    Group,
    /// A field has the number 0.
    Zero,
    /// A number that does not end.
    Endless,
    /// A field that nobody knows, which is no mistake.
    Unknown,
    /// It says that it is of another kind.
    Kind,
    /// It says that it is of a kind that there is not.
    NoKind,
    /// It says that it is of a version that there is not.
    Version,
    /// It does not say what it is.
    Unnamed,
}

/// A message in its envelope, with what is wrong with it.
pub fn written(object: &Value, damage: Option<Damage>) -> Bytes {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let content = messages::encode_content(object).unwrap_or_default();
    let with = |more: &[u8]| [&content, more].concat();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (version, kind, content) = match damage {
        Some(Damage::Content) => (version, kind, content[..content.len() - content.len().min(3)].to_vec()),
        Some(Damage::Way) => (version, kind, with(b"\x08\x01")),
        Some(Damage::Group) => (version, kind, with(b"\x0c")),
        Some(Damage::Zero) => (version, kind, with(b"\x00")),
        Some(Damage::Endless) => (version, kind, with(&[0xff; 12])),
        Some(Damage::Unknown) => (version, kind, with(UNKNOWN_FIELD)),
        Some(Damage::Kind) => ("v1", if kind == "Secret" { "ConfigMap" } else { "Secret" }, Vec::new()),
        Some(Damage::NoKind) => (version, "Nonsense", content.to_vec()),
        Some(Damage::Version) => ("v9", kind, content.to_vec()),
        Some(Damage::Unnamed) => ("", "", content.to_vec()),
        Some(Damage::Cut | Damage::Magic | Damage::Empty) | None => (version, kind, content.to_vec()),
    };
    let whole = messages::encode_envelope(version, kind, &content);
    match damage {
        Some(Damage::Cut) => whole.slice(..whole.len() * 2 / 3),
        Some(Damage::Magic) => [b"k9s\0", &whole[4..]].concat().into(),
        Some(Damage::Empty) => whole.slice(..4),
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}})
    }

    #[test]
    fn a_whole_message_is_recorded_as_what_is_in_it() {
        let recorded = recorded(&written(&object(), None));
        assert_eq!(recorded, json!({"protobuf": object(), "bytes": likeness(true)}));
    }

    #[test]
    fn a_damaged_message_is_not_taken_for_a_whole_one() {
        for damage in [Damage::Cut, Damage::Magic, Damage::Empty, Damage::Content, Damage::Way, Damage::Zero] {
            assert_eq!(recorded(&written(&object(), Some(damage))), json!({"binary": true}), "{damage:?}");
        }
        let unknown = recorded(&written(&object(), Some(Damage::Unknown)));
        assert_eq!(unknown["bytes"], likeness(false));
    }
}
