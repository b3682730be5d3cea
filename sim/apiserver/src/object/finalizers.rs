//! Finalizers that the API server and its controllers set themselves.

use serde_json::{Value, json};

use super::fields::metadata;

/// Finalizer that keeps an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Finalizer that keeps an object until its dependents no longer reference it.
pub(crate) const ORPHAN: &str = "orphan";

/// Finalizer that keeps a CRD until its custom resources are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Adds a finalizer to an object unless it has it.
pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|known| !known.iter().any(|known| known == finalizer)) {
        finalizers.push(json!(finalizer));
    }
}
