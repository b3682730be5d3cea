//! Keys of stored objects.

/// Key of a stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredKey {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version in which the object is stored.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The resource, such as `deployments`.
    pub plural: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// Returns the storage key of an object of a built-in kind.
pub(crate) fn builtin_key(group: &str, kind: &str, plural: &str, namespace: Option<&str>, name: &str) -> StoredKey {
    StoredKey {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}
