//! The protobuf encoding that Go clients use for built-in kinds: decoded to JSON, which the rest of the server works with,
//! and encoded from it.
//!
//! `protobuf/types.json` holds the number of each field; `protobuf/main.go` wrote it.

mod decode;
mod encode;
mod message_table;
mod wire;

pub use decode::{ProtobufError, decode, decode_event};
pub use encode::{encode, encode_content, encode_envelope, encode_event};

pub(crate) use decode::{decode_as, to_json_request};

/// Media type of protobuf bodies.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// Media type of a protobuf watch stream.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";

/// True if a content type is protobuf, with any parameters.
pub(crate) fn is_media(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|media| media.trim() == MEDIA)
}

#[cfg(test)]
mod tests;
