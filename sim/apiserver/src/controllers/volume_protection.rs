//! Removes the protection finalizers of claims and volumes that are being deleted, once nothing uses them.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{finalizers, is_deleting, list, set_finalizers, text};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::Task;
use crate::storage::journal::Verb;

/// Protected resources and their finalizers.
const PROTECTED: [(&str, &str); 2] =
    [("persistentvolumeclaims", "kubernetes.io/pvc-protection"), ("persistentvolumes", "kubernetes.io/pv-protection")];

fn protection_finalizer(key: &StoredKey) -> Option<&'static str> {
    let entry = PROTECTED.iter().find(|(plural, _)| key.group.is_empty() && key.plural == *plural);
    entry.map(|(_, finalizer)| *finalizer)
}

impl ApiServer {
    /// Schedules the removal of the protection finalizer of an object that is being deleted.
    pub(super) fn schedule_unprotecting(&mut self, now: Timestamp, key: &StoredKey, object: &Value) {
        if let Some(finalizer) = protection_finalizer(key)
            && is_deleting(object)
            && finalizers(object).contains(&finalizer)
        {
            self.schedule_after(now, self.lags.garbage_collection, Task::Unprotect(key.clone()));
        }
    }

    /// Schedules a check of the claims that are being deleted, after a pod was removed.
    pub(super) fn schedule_unprotecting_claims(&mut self, now: Timestamp, namespace: &str) {
        let shelf = self.store.shelf("", "persistentvolumeclaims").into_iter().flat_map(|shelf| shelf.values());
        let waiting =
            shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace) && is_deleting(&entry.object));
        let keys: Vec<StoredKey> = waiting.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.schedule_after(now, self.lags.garbage_collection, Task::Unprotect(key));
        }
    }

    /// Removes the protection finalizer of an object that is no longer used.
    pub(super) fn unprotect(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(live) = self.stored(key).filter(|object| is_deleting(object)).cloned() else { return };
        let Some(finalizer) = protection_finalizer(key) else { return };
        if !finalizers(&live).contains(&finalizer) || self.is_used(key, &live) {
            return;
        }
        let remaining: Vec<&str> = finalizers(&live).into_iter().filter(|other| *other != finalizer).collect();
        let who = Authorship::controller("protection-controller", Verb::Delete);
        if remaining.is_empty() {
            self.expunge(now, &who, key);
        } else {
            let mut released = Value::clone(&live);
            set_finalizers(&mut released, &remaining);
            self.write_as(now, &who, "kube-controller-manager", key, &released);
        }
    }

    fn is_used(&self, key: &StoredKey, object: &Value) -> bool {
        if key.plural == "persistentvolumes" {
            return text(object, "/status/phase") == "Bound";
        }
        let uses = |pod: &Value| {
            let claims = list(pod, "/spec/volumes").iter();
            claims.map(|volume| text(volume, "/persistentVolumeClaim/claimName")).any(|claim| claim == key.name)
        };
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        shelf.filter(|entry| entry.key.namespace == key.namespace).any(|entry| uses(&entry.object))
    }
}
