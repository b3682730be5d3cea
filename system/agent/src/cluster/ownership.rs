//! What an object of ours carries: whose it is, of which revision, and its own key.
//!
//! The annotations are the truth. The label only lets the server select. The object's own key tells it
//! apart from a copy: controllers copy annotations to what they create.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use sindri_model::{Checksum, ObjectKey, StackId};

/// The stack that declares the object.
pub const STACK_ANNOTATION: &str = "brokkr.io/stack-id";
/// The checksum of the revision that was last applied to it.
pub const CHECKSUM_ANNOTATION: &str = "brokkr.io/checksum";
/// The object's own key, which a copy would have wrong.
pub const OBJECT_ANNOTATION: &str = "brokkr.io/object";
/// The stack again, for selection by the server.
pub const STACK_LABEL: &str = "brokkr.io/stack";

/// All of them.
const ANNOTATIONS: [&str; 3] = [CHECKSUM_ANNOTATION, OBJECT_ANNOTATION, STACK_ANNOTATION];
const LABELS: [&str; 1] = [STACK_LABEL];

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

    /// Those of an object whose key reads like this.
    fn annotations<'a>(&'a self, object: &'a str) -> [(&'static str, Added<'a>); 3] {
        let [checksum, own_key, stack] = ANNOTATIONS;
        [(checksum, Added::Text(&self.checksum)), (own_key, Added::Text(object)), (stack, Added::Text(&self.stack))]
    }

    fn labels(&self) -> [(&'static str, Added<'_>); 1] {
        let [stack] = LABELS;
        [(stack, Added::Text(&self.stack))]
    }
}

/// Whether these are the name of a section of metadata and that of a mark in it.
pub fn is_mark(section: &str, name: &str) -> bool {
    match section {
        "annotations" => ANNOTATIONS.contains(&name),
        "labels" => LABELS.contains(&name),
        _ => false,
    }
}

/// An object as it is sent: what is declared, with its name and namespace as they are in its key, and the marks beside its own
/// labels and annotations. A mark that is declared, as by an object that was read from a cluster, is not its author's to say.
pub struct Sent<'a> {
    /// What is declared.
    pub manifest: &'a Value,
    /// Whose it is.
    pub owner: &'a Owner,
    /// Which object.
    pub key: &'a ObjectKey,
}

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = self.key.to_string();
        let (annotations, labels) = (self.owner.annotations(&object), self.owner.labels());
        let metadata = &self.manifest["metadata"];
        let annotations = With { fields: &metadata["annotations"], added: &annotations };
        let labels = With { fields: &metadata["labels"], added: &labels };
        let name = ("name", Added::Text(&self.key.name));
        let marks = [("annotations", Added::Mapping(annotations)), ("labels", Added::Mapping(labels))];
        let namespace = self.key.namespace.as_deref().map(|namespace| ("namespace", Added::Text(namespace)));
        let added: Vec<_> = marks.into_iter().chain([name]).chain(namespace).collect();
        let metadata = With { fields: metadata, added: &added };
        With { fields: self.manifest, added: &[("metadata", Added::Mapping(metadata))] }.serialize(serializer)
    }
}

/// What is added to a mapping.
enum Added<'a> {
    Text(&'a str),
    Mapping(With<'a>),
}

impl Serialize for Added<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Mapping(mapping) => mapping.serialize(serializer),
        }
    }
}

/// A mapping and further fields, which replace its own of the same names. They are added during serialization, so
/// that the mapping is not copied. A value that is no mapping counts as an empty one.
struct With<'a> {
    fields: &'a Value,
    added: &'a [(&'static str, Added<'a>)],
}

impl Serialize for With<'_> {
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
        serde_json::to_value(Sent { manifest, owner: &owner(), key: &key("a") }).unwrap()
    }

    #[test]
    fn marks_prove_ownership_of_the_object_itself_and_not_of_a_copy() {
        let sections = marked(&json!({"metadata": {"name": "a", "annotations": [1], "labels": null}}));
        assert!(Marks::of(&sections["metadata"]).prove(stack('1'), &key("a")));
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
        let labels = json!({"app": "shop", STACK_LABEL: stack('1')});
        let metadata = json!({"name": "a", "namespace": "shop", "annotations": annotations, "labels": labels});
        assert_eq!(sent, json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}));
    }

    #[test]
    fn name_and_namespace_are_those_of_the_key() {
        let sent = marked(&json!({"metadata": {"name": "b", "uid": "7"}, "data": {}}));
        assert_eq!((&sent["metadata"]["name"], &sent["metadata"]["namespace"]), (&json!("a"), &json!("shop")));
        assert_eq!((&sent["metadata"]["uid"], &sent["data"]), (&json!("7"), &json!({})));
    }

    #[test]
    fn what_is_written_out_says_nothing_twice() {
        let declared = json!({"metadata": {"name": "a", "namespace": "x", "labels": {STACK_LABEL: "another"}}});
        let text = serde_json::to_string(&Sent { manifest: &declared, owner: &owner(), key: &key("a") }).unwrap();
        for name in ["metadata", "name", "namespace", "labels", "annotations", STACK_LABEL, STACK_ANNOTATION] {
            assert_eq!(text.matches(&format!("\"{name}\":")).count(), 1, "{name} in {text}");
        }
    }
}
