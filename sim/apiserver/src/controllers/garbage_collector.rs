//! The garbage collector: deletes dependents after their owners, or orphans them.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{finalizers, group_version, is_deleting, list, metadata, set_finalizers, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;
use crate::verbs::{FOREGROUND, ORPHAN, Propagation};

const COLLECTOR: &str = "generic-garbage-collector";

/// The owner that an owner reference names.
pub(super) struct Owner {
    /// Key of the owner, if an object with the referenced UID exists.
    pub(super) key: Option<StoredKey>,
    /// True if the owner does not exist. False if its kind is not served: then it is unknown.
    is_absent: bool,
    uid: String,
}

impl ApiServer {
    /// Returns the owners that an object references.
    pub(super) fn owners_of(&self, key: &StoredKey, object: &Value) -> Vec<Owner> {
        list(object, "/metadata/ownerReferences").iter().map(|reference| self.resolve_owner(key, reference)).collect()
    }

    fn resolve_owner(&self, dependent: &StoredKey, reference: &Value) -> Owner {
        let (group, _) = group_version(text(reference, "/apiVersion"));
        let owner_uid = text(reference, "/uid").to_owned();
        let unknown = Owner { key: None, is_absent: false, uid: owner_uid.clone() };
        let Some(resource) = self.registry.by_kind(group, text(reference, "/kind")) else {
            return unknown;
        };
        // An owner is in the namespace of its dependent, or cluster-scoped.
        let namespace = if resource.namespaced { dependent.namespace.clone() } else { None };
        if resource.namespaced && namespace.is_none() {
            return unknown;
        }
        let key = StoredKey {
            group: resource.group.clone(),
            version: resource.storage.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespace,
            name: text(reference, "/name").to_owned(),
        };
        let exists = self.stored(&key).is_some_and(|owner| uid(owner) == owner_uid);
        Owner { key: exists.then_some(key), is_absent: !exists, uid: owner_uid }
    }

    pub(super) fn collect_dependents(&mut self, now: Timestamp, owner_uid: &str) {
        for key in self.store.dependents(owner_uid) {
            self.check_owners(now, &key);
        }
    }

    /// Deletes an object if none of its owners exists, or removes its references to absent owners if others exist.
    pub(super) fn check_owners(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(object) = self.stored(key).cloned() else {
            return;
        };
        let owners = self.owners_of(key, &object);
        if !owners.iter().any(|owner| owner.is_absent) {
            return;
        }
        if owners.iter().all(|owner| owner.is_absent) {
            let who = Authorship::controller(COLLECTOR, Verb::Delete);
            self.delete_key(now, &who, key, Propagation::Background);
        } else {
            let absent: Vec<&str> =
                owners.iter().filter(|owner| owner.is_absent).map(|owner| owner.uid.as_str()).collect();
            self.remove_owner_references(now, key, &object, &absent);
        }
    }

    fn remove_owner_references(&mut self, now: Timestamp, key: &StoredKey, object: &Value, owner_uids: &[&str]) {
        let mut updated = object.clone();
        let references = list(object, "/metadata/ownerReferences");
        let remaining: Vec<Value> =
            references.iter().filter(|reference| !owner_uids.contains(&text(reference, "/uid"))).cloned().collect();
        if remaining.is_empty() {
            metadata(&mut updated).remove("ownerReferences");
        } else {
            metadata(&mut updated).insert("ownerReferences".to_owned(), Value::Array(remaining));
        }
        let who = Authorship::controller(COLLECTOR, Verb::Patch);
        self.write_as(now, &who, "kube-controller-manager", key, &updated);
    }

    /// Continues the deletion of an object that waits for its dependents: deletes or orphans them, then removes the object.
    pub(super) fn finish_deletion(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(object) = self.stored(key).filter(|object| is_deleting(object)).cloned() else {
            return;
        };
        let pending = finalizers(&object);
        let owner_uid = uid(&object);
        if pending.contains(&ORPHAN) {
            for dependent in self.store.dependents(owner_uid) {
                if let Some(owned) = self.stored(&dependent).cloned() {
                    self.remove_owner_references(now, &dependent, &owned, &[owner_uid]);
                }
            }
        } else if pending.contains(&FOREGROUND) {
            let who = Authorship::controller(COLLECTOR, Verb::Delete);
            for dependent in self.store.dependents(owner_uid) {
                // Only a dependent with dependents of its own needs foreground deletion.
                let dependent_uid = self.stored(&dependent).map(|object| uid(object).to_owned()).unwrap_or_default();
                let is_leaf = self.store.dependents(&dependent_uid).is_empty();
                let policy = if is_leaf { Propagation::Background } else { Propagation::Foreground };
                self.delete_key(now, &who, &dependent, policy);
            }
            if !self.store.dependents(owner_uid).is_empty() {
                return;
            }
        } else {
            return;
        }
        let remaining: Vec<&str> =
            pending.into_iter().filter(|finalizer| ![ORPHAN, FOREGROUND].contains(finalizer)).collect();
        let who = Authorship::controller(COLLECTOR, Verb::Delete);
        if remaining.is_empty() {
            self.expunge(now, &who, key);
        } else {
            let mut released = Value::clone(&object);
            set_finalizers(&mut released, &remaining);
            self.write_as(now, &who, "kube-controller-manager", key, &released);
        }
    }
}
