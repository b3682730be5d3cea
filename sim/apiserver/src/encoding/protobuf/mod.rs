//! The protobuf encoding that Go clients use for built-in kinds: decoded to JSON, which the rest of the server works with,
//! and encoded from it.
//!
//! `protobuf/types.json` holds the number of each field; `protobuf/main.go` wrote it.

mod decode;
mod encode;
mod media;
mod message_table;
mod wire;

pub use decode::{ProtobufError, decode, decode_event};
pub use encode::{encode, encode_content, encode_envelope, encode_event};
pub use media::MEDIA;

pub(crate) use decode::decode_as;
pub(crate) use media::{STREAM, is_media};

#[cfg(test)]
mod tests;
