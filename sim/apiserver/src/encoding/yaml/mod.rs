//! YAML: request bodies read as Go's library reads them, and responses written as it writes them.

mod lines;
mod reader;
pub(crate) mod writer;

pub(crate) use reader::{read_json, read_json_with_duplicates, read_yaml, read_yaml_with_duplicates};
