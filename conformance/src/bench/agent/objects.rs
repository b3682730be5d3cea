//! The objects of what is measured: ConfigMaps, each as large as a small manifest, and bundles of any.

use serde_json::{Value, json};
use sindri_model::{Checksum, DeclaredObject, JsonText, StackId, yaml};

/// Where the objects of stacks are.
pub const NAMESPACE: &str = "figures";
/// Says whose an object is, as the agent's label does. Not the agent's: it shall not hear of these objects.
pub const STACK_LABEL: &str = "figures.test/stack";
/// The size of what each holds.
const VALUE_BYTES: usize = 256;

/// What is declared, and where the server has it.
pub struct Part {
    /// The path of the object.
    pub path: String,
    /// The object.
    pub manifest: Value,
}

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

/// So many of them.
pub fn parts(prefix: &str, count: usize, content: &str) -> Vec<Part> {
    let part = |number| {
        let name = format!("{prefix}-{number}");
        Part { path: config_map_path(NAMESPACE, &name), manifest: config_map(NAMESPACE, &name, content) }
    };
    (0..count).map(part).collect()
}

/// The text of a bundle, as people write it.
pub fn bundle(parts: &[Part]) -> String {
    parts.iter().map(|part| yaml::to_text(&part.manifest)).collect::<Vec<_>>().join("---\n")
}

/// Adds as much to an object as the agent does, under other names.
pub fn mark(object: &mut DeclaredObject, stack: StackId, checksum: &Checksum) {
    let mut manifest = object.manifest.value();
    let metadata = &mut manifest["metadata"];
    metadata["labels"][STACK_LABEL] = json!(stack);
    metadata["annotations"]["figures.test/stack-id"] = json!(stack);
    metadata["annotations"]["figures.test/checksum"] = json!(checksum);
    metadata["annotations"]["figures.test/object"] = json!(object.key.to_string());
    object.manifest = JsonText::of(&manifest);
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
        let read = |content| Bundle::parse(&bundle(&parts("shop", 3, content))).unwrap().into_objects();
        let (one, other) = (read("one"), read("other"));
        assert_eq!(one.len(), 3);
        assert!(one.iter().zip(&other).all(|(one, other)| one.key == other.key && one.manifest != other.manifest));
    }
}
