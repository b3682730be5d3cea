//! The garbage collector: dependents follow their owners, or are let go.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{finalizers, group_version, is_deleting, list, metadata, set_finalizers, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;
use crate::verbs::{FOREGROUND, ORPHAN, Propagation};

const COLLECTOR: &str = "generic-garbage-collector";

/// What is known about an owner that an object names.
pub(super) struct Owner {
    /// The owner, when it exists with the identity that the object names.
    pub(super) key: Option<StoredKey>,
    /// Whether it is known not to exist. An owner of a kind that is not served is neither there nor gone.
    gone: bool,
    uid: String,
}

impl ApiServer {
    /// The owners that an object names.
    pub(super) fn owners_of(&self, key: &StoredKey, object: &Value) -> Vec<Owner> {
        list(object, "/metadata/ownerReferences").iter().map(|reference| self.owner(key, reference)).collect()
    }

    fn owner(&self, dependent: &StoredKey, reference: &Value) -> Owner {
        let (group, _) = group_version(text(reference, "/apiVersion"));
        let identity = text(reference, "/uid").to_owned();
        let unknown = Owner { key: None, gone: false, uid: identity.clone() };
        let Some(resource) = self.registry.by_kind(group, text(reference, "/kind")) else {
            return unknown;
        };
        // An owner lives in the namespace of its dependent or in none; elsewhere it counts as missing.
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
        let exists = self.stored(&key).is_some_and(|owner| uid(owner) == identity);
        Owner { key: exists.then_some(key), gone: !exists, uid: identity }
    }

    pub(super) fn collect_dependents(&mut self, now: Timestamp, identity: &str) {
        for key in self.store.dependents(identity) {
            self.check_owners(now, &key);
        }
    }

    /// Deletes an object all of whose owners are gone; forgets the owners that are gone when others are left.
    pub(super) fn check_owners(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(object) = self.stored(key).cloned() else {
            return;
        };
        let owners = self.owners_of(key, &object);
        if !owners.iter().any(|owner| owner.gone) {
            return;
        }
        if owners.iter().all(|owner| owner.gone) {
            let who = Authorship::controller(COLLECTOR, Verb::Delete);
            self.delete_key(now, &who, key, Propagation::Background);
        } else {
            let gone: Vec<&str> = owners.iter().filter(|owner| owner.gone).map(|owner| owner.uid.as_str()).collect();
            self.forget_owners(now, key, &object, &gone);
        }
    }

    fn forget_owners(&mut self, now: Timestamp, key: &StoredKey, object: &Value, identities: &[&str]) {
        let mut freed = object.clone();
        let references = list(object, "/metadata/ownerReferences");
        let left: Vec<Value> =
            references.iter().filter(|reference| !identities.contains(&text(reference, "/uid"))).cloned().collect();
        if left.is_empty() {
            metadata(&mut freed).remove("ownerReferences");
        } else {
            metadata(&mut freed).insert("ownerReferences".to_owned(), Value::Array(left));
        }
        let who = Authorship::controller(COLLECTOR, Verb::Patch);
        self.write_as(now, &who, "kube-controller-manager", key, &freed);
    }

    /// Goes on with an object that waits for its dependents: deletes them, or lets them go, then releases the object.
    pub(super) fn finish_deletion(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(object) = self.stored(key).filter(|object| is_deleting(object)).cloned() else {
            return;
        };
        let waiting = finalizers(&object);
        let identity = uid(&object);
        if waiting.contains(&ORPHAN) {
            for dependent in self.store.dependents(identity) {
                if let Some(owned) = self.stored(&dependent).cloned() {
                    self.forget_owners(now, &dependent, &owned, &[identity]);
                }
            }
        } else if waiting.contains(&FOREGROUND) {
            let who = Authorship::controller(COLLECTOR, Verb::Delete);
            for dependent in self.store.dependents(identity) {
                // Only who has dependents of its own has something to wait for.
                let identity = self.stored(&dependent).map(|found| uid(found).to_owned()).unwrap_or_default();
                let alone = self.store.dependents(&identity).is_empty();
                let policy = if alone { Propagation::Background } else { Propagation::Foreground };
                self.delete_key(now, &who, &dependent, policy);
            }
            if !self.store.dependents(identity).is_empty() {
                return;
            }
        } else {
            return;
        }
        let left: Vec<&str> =
            waiting.into_iter().filter(|finalizer| ![ORPHAN, FOREGROUND].contains(finalizer)).collect();
        let who = Authorship::controller(COLLECTOR, Verb::Delete);
        if left.is_empty() {
            self.expunge(now, &who, key);
        } else {
            let mut released = Value::clone(&object);
            set_finalizers(&mut released, &left);
            self.write_as(now, &who, "kube-controller-manager", key, &released);
        }
    }
}
