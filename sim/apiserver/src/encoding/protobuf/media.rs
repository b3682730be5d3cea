//! Media types and the prefix of protobuf bodies.

/// Media type of protobuf bodies.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// Media type of a protobuf watch stream.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// Prefix of every body.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// True if a content type is protobuf, with any parameters.
pub(crate) fn is_media(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|media| media.trim() == MEDIA)
}
