//! Namespaces and CustomResourceDefinitions that accept no new objects because they are being deleted, and namespaces that
//! cannot be deleted.

use crate::http::error::ApiError;
use crate::object::fields::is_deleting;
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Namespaces that cannot be deleted.
const UNDELETABLE: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Checks that a delete does not remove a namespace that the control plane needs.
pub(crate) fn check_namespace_deletable(resource: &Resource, name: &str) -> Result<(), ApiError> {
    if resource.is_namespace() && UNDELETABLE.contains(&name) {
        return Err(ApiError::forbidden(resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Checks that the namespace of a new object exists and is not being deleted.
pub(crate) fn check_namespace(
    store: &Store,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Result<(), ApiError> {
    let Some(namespace) = namespace else {
        return Ok(());
    };
    match store.find("", "namespaces", None, namespace) {
        None => Err(ApiError::namespace_not_found(namespace)),
        Some(found) if is_deleting(found) => Err(ApiError::namespace_terminating(resource, name, namespace)),
        Some(_) => Ok(()),
    }
}

/// Checks that the CRD of a new custom resource is not being deleted.
pub(crate) fn check_crd_not_terminating(store: &Store, resource: &Resource, name: &str) -> Result<(), ApiError> {
    let crd = format!("{}.{}", resource.plural, resource.group);
    let terminating = resource.custom
        && store
            .find("apiextensions.k8s.io", "customresourcedefinitions", None, &crd)
            .is_none_or(|found| is_deleting(found));
    if terminating {
        let reason = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(resource, name, reason));
    }
    Ok(())
}
