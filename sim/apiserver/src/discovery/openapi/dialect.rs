//! The versions of OpenAPI, and the names of schemas in both.

use crate::registry::resource::Target;

/// Version of OpenAPI, with the differences between the documents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// Returns the beginning of a reference to a schema.
    pub(super) fn reference(self) -> &'static str {
        match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        }
    }
}

/// Returns the name of the schema of a kind.
pub(super) fn model_name(target: &Target, kind: &str) -> String {
    let group: Vec<&str> = target.resource.group.rsplit('.').collect();
    format!("{}.{}.{kind}", group.join("."), target.version.name)
}
