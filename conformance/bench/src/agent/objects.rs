//! Objects for benchmarks: ConfigMaps as large as a small manifest, and bundles of any objects.

use serde_json::{Value, json};
use sindri_model::yaml;

/// Namespace of all objects of stacks.
pub const NAMESPACE: &str = "figures";
/// Size of the value in each ConfigMap.
const VALUE_BYTES: usize = 256;

/// An object with its path on the API server.
pub struct TestObject {
    /// Path of the object.
    pub path: String,
    /// The object.
    pub manifest: Value,
}

/// Returns a ConfigMap. Different content changes the object.
pub fn config_map(namespace: &str, name: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "data": {"content": content, "rest": "x".repeat(VALUE_BYTES)},
    })
}

/// Returns a Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns a number of ConfigMaps named `PREFIX-NUMBER`.
pub fn config_maps(prefix: &str, count: usize, content: &str) -> Vec<TestObject> {
    let object = |number| {
        let name = format!("{prefix}-{number}");
        TestObject { path: config_map_path(NAMESPACE, &name), manifest: config_map(NAMESPACE, &name, content) }
    };
    (0..count).map(object).collect()
}

/// Returns a bundle of the objects.
pub fn bundle(objects: &[TestObject]) -> String {
    objects.iter().map(|object| yaml::to_text(&object.manifest)).collect::<Vec<_>>().join("---\n")
}

/// Path of the ConfigMaps of a namespace.
pub fn config_map_collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Path of one ConfigMap.
pub fn config_map_path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", config_map_collection(namespace))
}

/// Path of a Namespace.
pub fn namespace_path(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

#[cfg(test)]
mod tests {
    use sindri_model::Bundle;

    use super::*;

    #[test]
    fn a_bundle_has_all_objects_and_different_content_changes_each() {
        let read = |content| Bundle::parse(&bundle(&config_maps("shop", 3, content))).unwrap().into_objects();
        let (one, other) = (read("one"), read("other"));
        assert_eq!(one.len(), 3);
        assert!(one.iter().zip(&other).all(|(one, other)| one.key == other.key && one.manifest != other.manifest));
    }
}
