//! Growth of PersistentVolumeClaims, which their storage class must allow.

use serde_json::{Value, json};
use sindri_cel::Quantity;

use crate::object::fields::text;
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Returns the reason for which admission rejects the growth of a claim.
pub(crate) fn resize_violation(
    store: &Store,
    resource: &Resource,
    live: &Value,
    object: &Value,
) -> Option<&'static str> {
    if !resource.is("", "persistentvolumeclaims") {
        return None;
    }
    let size = |claim: &Value| Quantity::parse(text(claim, "/spec/resources/requests/storage"));
    if size(object)? <= size(live)? {
        return None;
    }
    let class = text(object, "/spec/storageClassName");
    let class = store.find("storage.k8s.io", "storageclasses", None, class);
    let grows = class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&json!(true)));
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    (!grows).then_some(why)
}
