//! What an object of ours carries: whose it is, of which revision, and its own key.
//!
//! The annotations are the truth. The label only lets the server select. The object's own key tells it
//! apart from a copy: controllers copy annotations to what they create.

use serde_json::{Map, Value, json};
use sindri_model::{Checksum, ObjectKey, StackId};

/// The stack that declares the object.
pub const STACK_ANNOTATION: &str = "brokkr.io/stack-id";
/// The checksum of the revision that was last applied to it.
pub const CHECKSUM_ANNOTATION: &str = "brokkr.io/checksum";
/// The object's own key, which a copy would have wrong.
pub const OBJECT_ANNOTATION: &str = "brokkr.io/object";
/// The stack again, for selection by the server.
pub const STACK_LABEL: &str = "brokkr.io/stack";

/// The marks that a live object carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The stack named by the annotation.
    pub stack: Option<String>,
    /// The key named by the annotation.
    pub object: Option<String>,
    /// The stack named by the label, by which the object was found.
    pub label: Option<String>,
}

impl Marks {
    /// Reads the marks of an object's metadata.
    pub fn of(metadata: &Value) -> Self {
        let annotation = |name: &str| metadata["annotations"][name].as_str().map(str::to_owned);
        let label = metadata["labels"][STACK_LABEL].as_str().map(str::to_owned);
        Self { stack: annotation(STACK_ANNOTATION), object: annotation(OBJECT_ANNOTATION), label }
    }

    /// Whether they say that the object at `key` belongs to `stack`, and are no copy.
    pub fn prove(&self, stack: StackId, key: &ObjectKey) -> bool {
        self.stack.as_deref() == Some(&stack.to_string()) && self.object.as_deref() == Some(&key.to_string())
    }

    /// Another stack that they prove to own the object at `key`.
    pub fn other_owner(&self, stack: StackId, key: &ObjectKey) -> Option<&str> {
        let owner = self.stack.as_deref().filter(|owner| *owner != stack.to_string())?;
        (self.object.as_deref() == Some(&key.to_string())).then_some(owner)
    }
}

/// Adds the marks to a manifest, next to whatever labels and annotations it declares.
pub fn mark(manifest: &mut Value, stack: StackId, checksum: &Checksum, key: &ObjectKey) {
    let metadata = entry(manifest, "metadata");
    let annotations = entry(metadata, "annotations");
    annotations[STACK_ANNOTATION] = json!(stack);
    annotations[CHECKSUM_ANNOTATION] = json!(checksum);
    annotations[OBJECT_ANNOTATION] = json!(key.to_string());
    entry(metadata, "labels")[STACK_LABEL] = json!(stack);
}

/// The mapping at `field`; a manifest may write an empty one as null.
fn entry<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    let child = &mut parent[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
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

    #[test]
    fn marks_prove_ownership_of_the_object_itself_and_not_of_a_copy() {
        let mut manifest = json!({"metadata": {"name": "a", "annotations": null, "labels": {"app": "shop"}}});
        mark(&mut manifest, stack('1'), &Checksum::of("x"), &key("a"));
        let marks = Marks::of(&manifest["metadata"]);
        assert!(marks.prove(stack('1'), &key("a")));
        assert!(!marks.prove(stack('1'), &key("copy-of-a")));
        assert!(!marks.prove(stack('2'), &key("a")));
        assert_eq!(marks.other_owner(stack('2'), &key("a")), Some(&*stack('1').to_string()));
        assert_eq!(marks.other_owner(stack('2'), &key("copy-of-a")), None);
        assert_eq!(manifest["metadata"]["labels"]["app"], "shop");
    }
}
