//! Encodings other than JSON: YAML, Protobuf, and certificates in PEM.

pub(crate) mod certificates;
pub mod protobuf;
pub(crate) mod yaml;
