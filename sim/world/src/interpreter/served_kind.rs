//! A kind as the discovery of a cluster describes it.

use serde_json::Value;
use sindri_model::ObjectKey;

/// A kind that a cluster serves.
pub struct ServedKind {
    pub kind: String,
    pub group: String,
    pub root: String,
    pub plural: String,
    pub namespaced: bool,
    /// Path of the list of all its objects.
    pub path: String,
}

impl ServedKind {
    /// Returns true if it is the kind of an object.
    pub fn is_of(&self, key: &ObjectKey) -> bool {
        self.kind == key.kind && self.group == key.group
    }

    /// Returns the path of an object.
    pub fn path_of(&self, key: &ObjectKey) -> String {
        match &key.namespace {
            Some(namespace) if self.namespaced => {
                format!("{}/namespaces/{namespace}/{}/{}", self.root, self.plural, key.name)
            }
            _ => format!("{}/{}/{}", self.root, self.plural, key.name),
        }
    }

    /// Writes the key of an object of this kind as scenarios do.
    pub fn key_of(&self, object: &Value) -> String {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]).unwrap_or_default());
        ObjectKey { group: self.group.clone(), kind: self.kind.clone(), namespace, name }.to_string()
    }
}
