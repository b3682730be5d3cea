//! Growth of PersistentVolumeClaims, which their storage class must allow.

use serde_json::{Value, json};
use sindri_cel::Quantity;

use crate::object::fields::string_at;
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
    let size = |claim: &Value| Quantity::parse(string_at(claim, "/spec/resources/requests/storage"));
    if size(object)? <= size(live)? {
        return None;
    }
    let class = string_at(object, "/spec/storageClassName");
    let class = store.find("storage.k8s.io", "storageclasses", None, class);
    let grows = class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&json!(true)));
    let reason = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    (!grows).then_some(reason)
}
