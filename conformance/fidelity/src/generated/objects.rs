//! The objects of a sequence, and complete random content for them.

use serde_json::{Map, Value, json};

use super::kinds::ResourceKind;
use super::random::RandomSource;

/// Namespace of every sequence, and the second one of some.
pub(super) const NAMESPACES: [&str; 2] = ["${namespace}", "${namespace}-b"];
/// Field managers.
pub(super) const MANAGERS: [&str; 3] = ["first", "second", "third"];
/// Label that distinguishes the cluster-scoped objects of one sequence from those of others.
pub(super) const SEQUENCE_LABEL: &str = "of";

/// One object of a sequence.
#[derive(Clone, Debug)]
pub(super) struct SequenceObject {
    pub kind: &'static ResourceKind,
    pub namespace: &'static str,
    /// Name; that of a cluster-scoped object contains the sequence's name.
    pub name: String,
    /// Suffix of the variables about it.
    pub suffix: String,
    /// True if it should exist.
    pub exists: bool,
    /// True if it was ever created, so that the variables about it have values.
    pub was_created: bool,
}

impl SequenceObject {
    pub fn path(&self) -> String {
        format!("{}/{}", self.kind.collection(self.namespace), self.name)
    }

    pub fn collection(&self) -> String {
        self.kind.collection(self.namespace)
    }
}

/// Returns a complete random object.
pub(super) fn whole_object(random: &mut RandomSource, object: &SequenceObject) -> Value {
    let mut manifest = (object.kind.content)(random);
    manifest["apiVersion"] = json!(object.kind.api_version);
    manifest["kind"] = json!(object.kind.name);
    manifest["metadata"] = metadata(random, object);
    manifest
}

fn metadata(random: &mut RandomSource, object: &SequenceObject) -> Value {
    let mut metadata = json!({ "name": object.name });
    if object.kind.namespaced && random.percent(30) {
        metadata["namespace"] = json!(object.namespace);
    }
    let mut labels = Map::new();
    if random.percent(60) {
        labels.insert("app".to_owned(), json!(random.one(&["a", "b"])));
    }
    if random.percent(20) {
        labels.insert("tier".to_owned(), json!(random.one(&["x", "y", ""])));
    }
    if !object.kind.namespaced {
        labels.insert(SEQUENCE_LABEL.to_owned(), json!(NAMESPACES[0]));
    }
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    random.maybe_set(25, &mut metadata, "annotations", |random| json!({"note": random.one(&["1", "2"])}));
    random.maybe_set(10, &mut metadata, "finalizers", |random| {
        let (one, two) = ("example.com/one", "example.com/two");
        random.one(&[json!([one]), json!([two]), json!([one, two])]).clone()
    });
    metadata
}
