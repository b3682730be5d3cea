//! Data about an exchange besides its recorded steps.

use std::collections::BTreeSet;

use serde_json::Value;

/// Data about an exchange besides its recorded steps.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeData<'a> {
    /// Text of the script: values that it contains literally are not replaced.
    pub script: &'a str,
    /// All complete bodies of responses, also where a step records only a part.
    pub bodies: &'a [Value],
    /// resourceVersions of objects that later steps used.
    pub object_versions: &'a BTreeSet<String>,
    /// resourceVersions of lists that later steps used.
    pub list_versions: &'a BTreeSet<String>,
    /// Host and port of the server.
    pub authority: &'a str,
}
