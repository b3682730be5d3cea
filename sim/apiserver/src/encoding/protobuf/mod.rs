//! Protobuf, as Go's clients speak it about built-in kinds: read into the JSON that everything else understands, and written
//! from it.
//!
//! `protobuf/types.json` says which number each field has; `protobuf/main.go` wrote it.

mod read;
mod table;
mod wire;
mod write;

pub use read::{ReadError, read, read_event};
pub use write::{content, envelope, write, write_event};

pub(crate) use read::{in_json, read_as};

/// The type of these bodies.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// The type of a stream of events.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// How every body begins.
const MAGIC: &[u8] = b"k8s\0";

/// Whether a content type is this one, whatever parameters it has.
pub(crate) fn is_media(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|media| media.trim() == MEDIA)
}

#[cfg(test)]
mod tests;
