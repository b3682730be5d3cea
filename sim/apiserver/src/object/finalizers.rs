//! Finalizers that the API server and its controllers set themselves.

/// Keeps an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Keeps an object until its dependents no longer name it.
pub(crate) const ORPHAN: &str = "orphan";

/// Keeps a definition until its instances are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
