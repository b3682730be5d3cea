//! The objects of what is measured: ConfigMaps, each as large as a small manifest.

use serde_json::{Value, json};

/// Where the objects of stacks are.
pub const NAMESPACE: &str = "figures";
/// The size of what each holds.
const VALUE_BYTES: usize = 256;

/// One object. Another content makes all of it another.
pub fn config_map(namespace: &str, name: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "data": {"content": content, "rest": "x".repeat(VALUE_BYTES)},
    })
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A bundle of so many objects, called after the stack.
pub fn bundle(stack: &str, count: usize, content: &str) -> String {
    let object = |number| config_map(NAMESPACE, &format!("{stack}-{number}"), content).to_string();
    (0..count).map(object).collect::<Vec<_>>().join("\n---\n")
}

/// Where ConfigMaps are.
pub fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Where one of them is.
pub fn config_map_path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", config_maps(namespace))
}

/// Where a namespace is.
pub fn namespace_path(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

#[cfg(test)]
mod tests {
    use sindri_model::Bundle;

    use super::*;

    #[test]
    fn a_bundle_has_its_objects_and_another_content_changes_each() {
        let read = |content| Bundle::parse(&bundle("shop", 3, content)).unwrap().into_objects();
        let (one, other) = (read("one"), read("other"));
        assert_eq!(one.len(), 3);
        assert!(one.iter().zip(&other).all(|(one, other)| one.key == other.key && one.manifest != other.manifest));
    }
}
