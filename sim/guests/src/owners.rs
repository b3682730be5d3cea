//! Owner references: by them the garbage collector and the controller know to which parent a child belongs.

use serde_json::{Value, json};

use crate::client::ResourceKind;
use crate::object::{name, text, uid};

/// Returns the owner reference of a child to its parent.
pub fn owner_reference(kind: ResourceKind, parent: &Value) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "name": name(parent),
        "uid": uid(parent),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns the owner references of a child to parents of a kind.
pub fn owner_references(child: &Value, kind: ResourceKind) -> impl Iterator<Item = &Value> {
    let references = child.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter(move |owner| text(owner, "/kind") == kind.kind)
}

/// Returns true if an owner reference of the child has the UID of the parent.
pub fn has_owner(child: &Value, kind: ResourceKind, parent: &Value) -> bool {
    owner_references(child, kind).any(|owner| text(owner, "/uid") == uid(parent))
}
