//! Owner references of objects that a controller manages.

use serde_json::{Value, json};

use super::fields::{array_at, name, uid};

/// Returns the owner reference of an object that `owner` controls.
pub(crate) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Returns the owner reference of an object's controller.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    array_at(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}
