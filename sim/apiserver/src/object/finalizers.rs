//! Finalizers that the API server and its controllers set themselves.

/// Finalizer that keeps an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Finalizer that keeps an object until its dependents no longer reference it.
pub(crate) const ORPHAN: &str = "orphan";

/// Finalizer that keeps a CRD until its custom resources are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
