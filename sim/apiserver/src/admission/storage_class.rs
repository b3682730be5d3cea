//! Admission of claims: the default storage class. Claims that exist already do not get one later.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::object::fields::{name, string_at, value_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Annotations that make a storage class the default one.
const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"];
/// Pointer to the annotation in which claims named their class before there was a field for it.
pub(crate) const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// Gives a new claim that names no storage class the newest default one.
pub(crate) fn set_default_class(store: &Store, resource: &Resource, claim: &mut Value) {
    let is_set = |pointer: &str| value_at(claim, pointer).is_some_and(|class| !class.is_null());
    if !resource.is("", "persistentvolumeclaims") || is_set("/spec/storageClassName") || is_set(CLASS_ANNOTATION) {
        return;
    }
    let classes = store.collection("storage.k8s.io", "storageclasses").into_iter().flat_map(|all| all.values());
    let defaults = classes.map(|entry| &entry.object).filter(|class| is_default(class));
    let newest = defaults.min_by_key(|class| {
        (Reverse(string_at(class, "/metadata/creationTimestamp").to_owned()), name(class).to_owned())
    });
    if let (Some(class), Some(spec)) = (newest, claim.get_mut("spec").filter(|spec| spec.is_object())) {
        spec["storageClassName"] = json!(name(class));
    }
}

fn is_default(class: &Value) -> bool {
    DEFAULT_ANNOTATIONS
        .iter()
        .any(|annotation| string_at(class, &format!("/metadata/annotations/{annotation}")) == "true")
}
