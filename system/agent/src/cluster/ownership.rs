//! Ownership label and annotations: the stack of an object, the checksum of its revision, and its own key.
//!
//! The annotations decide; the label only lets the server select objects. The object's own key distinguishes it from a
//! copy, because controllers copy annotations to the objects that they create.

use serde_json::{Map, Value, json};
use sindri_model::ownership::OWNERSHIP_ANNOTATIONS;
pub use sindri_model::ownership::{CHECKSUM_ANNOTATION, OBJECT_ANNOTATION, STACK_ANNOTATION, STACK_LABEL};
use sindri_model::{Checksum, ObjectKey, StackId};

/// Object annotation: `disabled` keeps the object when it is no longer declared, or when its stack is removed.
pub const PRUNE_ANNOTATION: &str = "sindri.dev/prune";

/// Ownership label and annotations of a live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Stack id in the annotation.
    pub stack: Option<String>,
    /// Object key in the annotation.
    pub object: Option<String>,
    /// Stack id in the label.
    pub stack_label: Option<String>,
}

impl Ownership {
    /// Reads label and annotations from an object's metadata.
    pub fn from_metadata(metadata: &Value) -> Self {
        let annotation = |name: &str| metadata["annotations"][name].as_str().map(str::to_owned);
        let stack_label = metadata["labels"][STACK_LABEL].as_str().map(str::to_owned);
        Self { stack: annotation(STACK_ANNOTATION), object: annotation(OBJECT_ANNOTATION), stack_label }
    }

    /// Returns true if they name `stack` and the object's own key: the object belongs to the stack and is not a copy.
    pub fn proves_owner(&self, stack: StackId, key: &ObjectKey) -> bool {
        self.stack.as_deref() == Some(&stack.to_string()) && self.object.as_deref() == Some(&key.to_string())
    }

    /// Returns the id of another stack in the annotation of an object that is not a copy. An object without its own key was
    /// created by another implementation of the same annotations.
    pub fn annotated_owner(&self, stack: StackId, key: &ObjectKey) -> Option<&str> {
        let owner = self.stack.as_deref().filter(|owner| *owner != stack.to_string())?;
        self.object.as_ref().is_none_or(|object| *object == key.to_string()).then_some(owner)
    }

    /// Returns the id of another stack that is proved to own the object at `key`.
    pub fn other_owner(&self, stack: StackId, key: &ObjectKey) -> Option<&str> {
        let owner = self.stack.as_deref().filter(|owner| *owner != stack.to_string())?;
        (self.object.as_deref() == Some(&key.to_string())).then_some(owner)
    }
}

/// Ownership values that all objects of a revision share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionOwner {
    stack: String,
    checksum: String,
}

impl RevisionOwner {
    /// Returns the values for the objects of this revision.
    pub fn new(stack: StackId, checksum: &Checksum) -> Self {
        Self { stack: stack.to_string(), checksum: checksum.to_string() }
    }
}

/// Returns the manifest as it is applied: with the name and namespace of the key, and with the ownership label and
/// annotations. Ownership keys that the bundle declares itself, for example because it was exported from a cluster, are replaced.
pub fn add_ownership(manifest: &Value, owner: &RevisionOwner, key: &ObjectKey) -> Value {
    let mut manifest = manifest.clone();
    let metadata = &mut manifest["metadata"];
    metadata["name"] = json!(key.name);
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let annotations = ensure_mapping(metadata, "annotations");
    annotations[STACK_ANNOTATION] = json!(owner.stack);
    annotations[CHECKSUM_ANNOTATION] = json!(owner.checksum);
    annotations[OBJECT_ANNOTATION] = json!(key.to_string());
    ensure_mapping(metadata, "labels")[STACK_LABEL] = json!(owner.stack);
    manifest
}

/// Returns the mapping at `field`, after replacing null or a value of another type by an empty one.
pub fn ensure_mapping<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    let child = &mut parent[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
}

/// Returns a merge patch of metadata that removes the ownership label and annotations from exactly this version of an object.
pub fn without_ownership(uid: &str, resource_version: &str) -> Value {
    let annotations: Map<String, Value> =
        OWNERSHIP_ANNOTATIONS.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    json!({"uid": uid, "resourceVersion": resource_version, "annotations": annotations, "labels": {STACK_LABEL: null}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace: Some("shop".into()), name: name.into() }
    }

    fn stack(digit: char) -> StackId {
        format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
    }

    fn owner() -> RevisionOwner {
        RevisionOwner::new(stack('1'), &Checksum::compute("x"))
    }

    fn owned(manifest: &Value) -> Value {
        add_ownership(manifest, &owner(), &key("a"))
    }

    #[test]
    fn annotations_prove_ownership_of_the_object_itself_and_not_of_a_copy() {
        let sections = owned(&json!({"metadata": {"name": "a", "annotations": [1], "labels": null}}));
        assert!(Ownership::from_metadata(&sections["metadata"]).proves_owner(stack('1'), &key("a")));
        let manifest = owned(&json!({"metadata": {"name": "a", "annotations": null, "labels": {"app": "shop"}}}));
        let ownership = Ownership::from_metadata(&manifest["metadata"]);
        assert!(ownership.proves_owner(stack('1'), &key("a")));
        assert!(!ownership.proves_owner(stack('1'), &key("copy-of-a")));
        assert!(!ownership.proves_owner(stack('2'), &key("a")));
        assert_eq!(ownership.other_owner(stack('2'), &key("a")), Some(&*stack('1').to_string()));
        assert_eq!(ownership.other_owner(stack('2'), &key("copy-of-a")), None);
        assert_eq!(manifest["metadata"]["labels"]["app"], "shop");
    }

    #[test]
    fn ownership_keys_are_added_and_replace_declared_ones() {
        let others = json!({STACK_ANNOTATION: "another", "note": "kept"});
        let metadata = json!({"name": "a", "annotations": others, "labels": {"app": "shop"}});
        let sent = owned(&json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}));
        let checksum = Checksum::compute("x").to_string();
        let annotations = json!({
            STACK_ANNOTATION: stack('1'), CHECKSUM_ANNOTATION: checksum, OBJECT_ANNOTATION: "ConfigMap shop/a", "note": "kept",
        });
        let labels = json!({"app": "shop", STACK_LABEL: stack('1')});
        let metadata = json!({"name": "a", "namespace": "shop", "annotations": annotations, "labels": labels});
        assert_eq!(sent, json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}));
    }

    #[test]
    fn name_and_namespace_are_taken_from_the_key() {
        let sent = owned(&json!({"metadata": {"name": "b", "uid": "7"}, "data": {}}));
        assert_eq!((&sent["metadata"]["name"], &sent["metadata"]["namespace"]), (&json!("a"), &json!("shop")));
        assert_eq!((&sent["metadata"]["uid"], &sent["data"]), (&json!("7"), &json!({})));
    }
}
