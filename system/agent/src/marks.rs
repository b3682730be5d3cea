//! What an object of ours carries: whose it is, of which revision, and its own key.
//!
//! The annotations are the truth. The label only lets the server select. The object's own key tells it
//! apart from a copy: controllers copy annotations to what they create.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
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

/// What the marks of all objects of a revision say alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    stack: String,
    checksum: String,
}

impl Owner {
    /// Of the objects of this revision.
    pub fn new(stack: StackId, checksum: &Checksum) -> Self {
        Self { stack: stack.to_string(), checksum: checksum.to_string() }
    }

    /// The first mark that has another value on a live object than it was given.
    pub fn rewritten(&self, key: &ObjectKey, metadata: &Value) -> Option<String> {
        let object = key.to_string();
        let (annotations, labels) = (self.annotations(&object), self.labels());
        let is_other = |section: &str, name: &str, mark: &str| {
            metadata[section][name].as_str().filter(|live| *live != mark).map(|_| format!("metadata.{section}.{name}"))
        };
        let in_annotations = annotations.iter().find_map(|(name, mark)| is_other("annotations", name, mark));
        in_annotations.or_else(|| labels.iter().find_map(|(name, mark)| is_other("labels", name, mark)))
    }

    /// Those of an object whose key reads like this.
    fn annotations<'a>(&'a self, object: &'a str) -> [(&'static str, &'a str); 3] {
        [(CHECKSUM_ANNOTATION, &self.checksum), (OBJECT_ANNOTATION, object), (STACK_ANNOTATION, &self.stack)]
    }

    fn labels(&self) -> [(&'static str, &str); 1] {
        [(STACK_LABEL, &self.stack)]
    }
}

/// Whether these are the name of a section of metadata and that of a mark in it.
pub fn is_mark(section: &str, name: &str) -> bool {
    match section {
        "annotations" => [STACK_ANNOTATION, CHECKSUM_ANNOTATION, OBJECT_ANNOTATION].contains(&name),
        "labels" => name == STACK_LABEL,
        _ => false,
    }
}

/// Takes out the marks that a manifest declares, as one does that was read from a cluster: what they say is not its author's to
/// say.
pub fn unmark(manifest: &mut Value) {
    let Some(metadata) = manifest.get_mut("metadata") else { return };
    for section in ["annotations", "labels"] {
        let fields = metadata.get_mut(section).and_then(Value::as_object_mut);
        fields.into_iter().for_each(|fields| fields.retain(|name, _| !is_mark(section, name)));
    }
}

/// An object as it is sent: what is declared, and the marks beside its own labels and annotations. They are added while it is
/// written out, so that nobody copies them for thousands of objects.
pub struct Marked<'a> {
    /// What is declared.
    pub manifest: &'a Value,
    /// Whose it is.
    pub owner: &'a Owner,
    /// Which object.
    pub key: &'a ObjectKey,
}

impl Serialize for Marked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = self.key.to_string();
        let (annotations, labels) = (self.owner.annotations(&object), self.owner.labels());
        let metadata = &self.manifest["metadata"];
        let annotations = With { fields: &metadata["annotations"], added: &annotations };
        let labels = With { fields: &metadata["labels"], added: &labels };
        let metadata = With { fields: metadata, added: &[("annotations", &annotations), ("labels", &labels)] };
        With { fields: self.manifest, added: &[("metadata", &metadata)] }.serialize(serializer)
    }
}

/// A mapping and further fields, in place of its own of the same names. A manifest may write an empty mapping as null.
struct With<'a, T> {
    fields: &'a Value,
    added: &'a [(&'static str, T)],
}

impl<T: Serialize> Serialize for With<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut mapping = serializer.serialize_map(None)?;
        let is_kept = |name: &str| self.added.iter().all(|(added, _)| *added != name);
        for (name, value) in self.fields.as_object().into_iter().flatten().filter(|(name, _)| is_kept(name)) {
            mapping.serialize_entry(name, value)?;
        }
        for (name, value) in self.added {
            mapping.serialize_entry(name, value)?;
        }
        mapping.end()
    }
}

/// The mapping at `field`; a manifest may write an empty one as null.
pub fn entry<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    let child = &mut parent[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace: Some("shop".into()), name: name.into() }
    }

    fn stack(digit: char) -> StackId {
        format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
    }

    fn owner() -> Owner {
        Owner::new(stack('1'), &Checksum::of("x"))
    }

    fn marked(manifest: &Value) -> Value {
        serde_json::to_value(Marked { manifest, owner: &owner(), key: &key("a") }).unwrap()
    }

    #[test]
    fn marks_prove_ownership_of_the_object_itself_and_not_of_a_copy() {
        let manifest = marked(&json!({"metadata": {"name": "a", "annotations": null, "labels": {"app": "shop"}}}));
        let marks = Marks::of(&manifest["metadata"]);
        assert!(marks.prove(stack('1'), &key("a")));
        assert!(!marks.prove(stack('1'), &key("copy-of-a")));
        assert!(!marks.prove(stack('2'), &key("a")));
        assert_eq!(marks.other_owner(stack('2'), &key("a")), Some(&*stack('1').to_string()));
        assert_eq!(marks.other_owner(stack('2'), &key("copy-of-a")), None);
        assert_eq!(manifest["metadata"]["labels"]["app"], "shop");
    }

    #[test]
    fn an_object_is_sent_as_it_is_declared_with_its_marks_in_place_of_others_of_their_names() {
        let others = json!({STACK_ANNOTATION: "another", "note": "kept"});
        let metadata = json!({"name": "a", "annotations": others, "labels": {"app": "shop"}});
        let sent = marked(&json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}));
        let checksum = Checksum::of("x").to_string();
        let annotations = json!({
            STACK_ANNOTATION: stack('1'), CHECKSUM_ANNOTATION: checksum, OBJECT_ANNOTATION: "ConfigMap shop/a", "note": "kept",
        });
        let metadata =
            json!({"name": "a", "annotations": annotations, "labels": {"app": "shop", STACK_LABEL: stack('1')}});
        assert_eq!(sent, json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}));
    }

    #[test]
    fn marks_that_a_manifest_declares_are_taken_out_and_nothing_else() {
        let mut manifest = marked(&json!({"metadata": {"name": "a", "annotations": {"note": "kept"}}}));
        unmark(&mut manifest);
        assert_eq!(manifest, json!({"metadata": {"name": "a", "annotations": {"note": "kept"}, "labels": {}}}));
        let mut bare = json!({"metadata": {"name": "a", "labels": null}});
        unmark(&mut bare);
        assert_eq!(bare, json!({"metadata": {"name": "a", "labels": null}}));
    }

    #[test]
    fn a_mark_that_somebody_rewrites_is_found_and_one_that_is_missing_is_not() {
        let mut live = marked(&json!({"metadata": {"name": "a"}}));
        let rewritten = |live: &Value| owner().rewritten(&key("a"), &live["metadata"]);
        assert_eq!(rewritten(&live), None);
        live["metadata"]["labels"] = json!({STACK_LABEL: "another"});
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.labels.brokkr.io/stack"));
        live["metadata"]["annotations"][OBJECT_ANNOTATION] = json!("another");
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.annotations.brokkr.io/object"));
        assert_eq!(rewritten(&json!({"metadata": {}})), None);
    }
}
