//! Encodings of bodies other than JSON: YAML and Protobuf.

pub mod protobuf;
pub(crate) mod yaml;
