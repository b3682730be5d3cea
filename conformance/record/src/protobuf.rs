//! Bodies in protobuf: sent intact or damaged, and recorded as decoded JSON.
//!
//! Messages are decoded with the table of the simulated server. Its correctness is recorded too: each decoded message is encoded
//! again, and the bytes are compared.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Value, json};
use sindri_apiserver::protobuf as messages;

pub use sindri_apiserver::protobuf::MEDIA;

/// Size of the length of an event.
const LENGTH_BYTES: usize = 4;
/// An encoded field that no message has.
const UNKNOWN_FIELD: &[u8] = b"\xc2\x3e\x01x";

/// Returns true if a body is in protobuf.
pub fn is_protobuf(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.starts_with(MEDIA)
}

/// Decodes a body, if it is valid.
pub fn decode(body: &[u8]) -> Option<Value> {
    messages::decode(body).ok()
}

/// Returns the recorded form of a body: its decoded content, and whether encoding it again gives the same bytes.
pub fn record_body(body: &[u8]) -> Value {
    match messages::decode(body) {
        Ok(object) => {
            let bytes = describe_bytes(messages::encode(&object).as_deref() == Some(body));
            json!({"protobuf": object, "bytes": bytes})
        }
        Err(_) => json!({"binary": true}),
    }
}

/// Returns the recorded form of a watch event with its length.
pub fn record_event(frame: &[u8]) -> Value {
    let read = frame.get(LENGTH_BYTES..).and_then(|event| messages::decode_event(event).ok());
    let Some(mut event) = read else { return json!({"binary": true}) };
    let kind = event["type"].as_str().unwrap_or_default();
    let same = messages::encode_event(kind, &event["object"]).as_deref() == Some(frame);
    event["bytes"] = json!(describe_bytes(same));
    event
}

fn describe_bytes(same: bool) -> &'static str {
    if same { "the same when written again" } else { "others when written again" }
}

/// Deliberate damage of a message. The names of the variants are part of the recordings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// The last third is missing.
    Cut,
    /// The magic number is wrong.
    Magic,
    /// Only the magic number.
    Empty,
    /// The end of the content of the envelope is missing.
    Content,
    /// A field has a wrong wire type.
    Way,
    /// An end of a group without its start.
    Group,
    /// A field has the number 0.
    Zero,
    /// A varint that does not end.
    Endless,
    /// An unknown field, which is no error.
    Unknown,
    /// Another kind than that of the content.
    Kind,
    /// An unknown kind.
    NoKind,
    /// An unknown version.
    Version,
    /// Neither version nor kind.
    Unnamed,
}

/// Encodes a message in its envelope, with the damage.
pub fn encode_damaged(object: &Value, damage: Option<Damage>) -> Bytes {
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
    fn an_intact_message_is_recorded_as_its_content() {
        let recorded = record_body(&encode_damaged(&object(), None));
        assert_eq!(recorded, json!({"protobuf": object(), "bytes": describe_bytes(true)}));
    }

    #[test]
    fn a_damaged_message_is_not_decoded() {
        for damage in [Damage::Cut, Damage::Magic, Damage::Empty, Damage::Content, Damage::Way, Damage::Zero] {
            assert_eq!(record_body(&encode_damaged(&object(), Some(damage))), json!({"binary": true}), "{damage:?}");
        }
        let unknown = record_body(&encode_damaged(&object(), Some(Damage::Unknown)));
        assert_eq!(unknown["bytes"], describe_bytes(false));
    }
}
