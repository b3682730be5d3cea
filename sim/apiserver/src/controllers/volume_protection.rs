//! Removes the protection finalizers of claims and volumes that are being deleted, once nothing uses them.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{array_at, finalizers, is_deleting, set_finalizers, string_at};
use crate::object::key::StoredKey;
use crate::object::protection::protection_finalizer;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::storage::store::Store;
use crate::writes::commit::remove;
use crate::writes::tracked::write_tracked;

/// Removes the protection finalizer of an object that is no longer used.
pub(crate) fn unprotect(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(live) = state.store.find_key(key).filter(|object| is_deleting(object)).cloned() else { return };
    let Some(finalizer) = protection_finalizer(key) else { return };
    if !finalizers(&live).contains(&finalizer) || is_used(&state.store, key, &live) {
        return;
    }
    let remaining: Vec<&str> = finalizers(&live).into_iter().filter(|other| *other != finalizer).collect();
    let attribution = Attribution::controller("protection-controller", Verb::Delete);
    if remaining.is_empty() {
        remove(state, now, &attribution, key);
    } else {
        let mut released = Value::clone(&live);
        set_finalizers(&mut released, &remaining);
        write_tracked(state, now, &attribution, "kube-controller-manager", key, &released);
    }
}

fn is_used(store: &Store, key: &StoredKey, object: &Value) -> bool {
    if key.plural == "persistentvolumes" {
        return string_at(object, "/status/phase") == "Bound";
    }
    let uses = |pod: &Value| {
        let claims = array_at(pod, "/spec/volumes").iter();
        claims.map(|volume| string_at(volume, "/persistentVolumeClaim/claimName")).any(|claim| claim == key.name)
    };
    let collection = store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    collection.filter(|entry| entry.key.namespace == key.namespace).any(|entry| uses(&entry.object))
}
