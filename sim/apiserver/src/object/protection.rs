//! Finalizers that protect volumes and claims in use.

use super::key::StoredKey;

/// Protected resources and their finalizers.
const PROTECTED: [(&str, &str); 2] =
    [("persistentvolumeclaims", "kubernetes.io/pvc-protection"), ("persistentvolumes", "kubernetes.io/pv-protection")];

pub(crate) fn protection_finalizer(key: &StoredKey) -> Option<&'static str> {
    let entry = PROTECTED.iter().find(|(plural, _)| key.group.is_empty() && key.plural == *plural);
    entry.map(|(_, finalizer)| *finalizer)
}
