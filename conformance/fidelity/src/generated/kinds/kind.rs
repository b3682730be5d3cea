//! A generated kind.

use serde_json::Value;

use crate::generated::random::RandomSource;

/// A kind, with functions that generate its objects.
#[derive(Debug)]
pub struct ResourceKind {
    /// Kind.
    pub name: &'static str,
    /// API version, such as `apps/v1`.
    pub api_version: &'static str,
    /// Plural name in paths.
    pub plural: &'static str,
    /// True if its objects are in namespaces.
    pub namespaced: bool,
    /// True for a custom resource.
    pub custom: bool,
    /// Subresources that are generated.
    pub subresources: &'static [&'static str],
    /// Generates an object without metadata, mostly a valid one.
    pub content: fn(&mut RandomSource) -> Value,
    /// Generates a status.
    pub status: fn(&mut RandomSource) -> Value,
    /// Weight in the random choice.
    pub weight: u32,
}

impl ResourceKind {
    /// Returns the path of its objects in a namespace, or in the cluster.
    #[must_use]
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let scope = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("{root}/{}{scope}/{}", self.api_version, self.plural)
    }
}

/// Generates no status.
pub(super) fn nothing(_: &mut RandomSource) -> Value {
    Value::Null
}
