//! The garbage collector: deletes dependents after their owners, or orphans them.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{array_at, finalizers, is_deleting, metadata, set_finalizers, string_at, uid};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::verbs::delete::{Propagation, delete_stored};
use crate::writes::commit::remove;
use crate::writes::owners::find_owners;
use crate::writes::tracked::write_tracked;

const COLLECTOR: &str = "generic-garbage-collector";

pub(crate) fn collect_dependents(state: &mut ServerState, now: Timestamp, owner_uid: &str) {
    for key in state.store.dependents(owner_uid) {
        check_owners(state, now, &key);
    }
}

/// Deletes an object if none of its owners exists, or removes its references to absent owners if others exist.
pub(crate) fn check_owners(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(object) = state.store.find_key(key).cloned() else {
        return;
    };
    let owners = find_owners(state, key, &object);
    if !owners.iter().any(|owner| owner.is_absent) {
        return;
    }
    if owners.iter().all(|owner| owner.is_absent) {
        let attribution = Attribution::controller(COLLECTOR, Verb::Delete);
        delete_stored(state, now, &attribution, key, Propagation::Background);
    } else {
        let absent: Vec<&str> = owners.iter().filter(|owner| owner.is_absent).map(|owner| owner.uid.as_str()).collect();
        remove_owner_references(state, now, key, &object, &absent);
    }
}

fn remove_owner_references(
    state: &mut ServerState,
    now: Timestamp,
    key: &StoredKey,
    object: &Value,
    owner_uids: &[&str],
) {
    let mut updated = object.clone();
    let references = array_at(object, "/metadata/ownerReferences");
    let remaining: Vec<Value> =
        references.iter().filter(|reference| !owner_uids.contains(&string_at(reference, "/uid"))).cloned().collect();
    if remaining.is_empty() {
        metadata(&mut updated).remove("ownerReferences");
    } else {
        metadata(&mut updated).insert("ownerReferences".to_owned(), Value::Array(remaining));
    }
    let attribution = Attribution::controller(COLLECTOR, Verb::Patch);
    write_tracked(state, now, &attribution, "kube-controller-manager", key, &updated);
}

/// Continues the deletion of an object that waits for its dependents: deletes or orphans them, then removes the object.
pub(crate) fn finish_deletion(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(object) = state.store.find_key(key).filter(|object| is_deleting(object)).cloned() else {
        return;
    };
    let pending = finalizers(&object);
    let owner_uid = uid(&object);
    if pending.contains(&ORPHAN) {
        for dependent in state.store.dependents(owner_uid) {
            if let Some(owned) = state.store.find_key(&dependent).cloned() {
                remove_owner_references(state, now, &dependent, &owned, &[owner_uid]);
            }
        }
    } else if pending.contains(&FOREGROUND) {
        let attribution = Attribution::controller(COLLECTOR, Verb::Delete);
        for dependent in state.store.dependents(owner_uid) {
            // Only a dependent with dependents of its own needs foreground deletion.
            let dependent_uid =
                state.store.find_key(&dependent).map(|object| uid(object).to_owned()).unwrap_or_default();
            let is_leaf = state.store.dependents(&dependent_uid).is_empty();
            let policy = if is_leaf { Propagation::Background } else { Propagation::Foreground };
            delete_stored(state, now, &attribution, &dependent, policy);
        }
        if !state.store.dependents(owner_uid).is_empty() {
            return;
        }
    } else {
        return;
    }
    let remaining: Vec<&str> =
        pending.into_iter().filter(|finalizer| ![ORPHAN, FOREGROUND].contains(finalizer)).collect();
    let attribution = Attribution::controller(COLLECTOR, Verb::Delete);
    if remaining.is_empty() {
        remove(state, now, &attribution, key);
    } else {
        let mut released = Value::clone(&object);
        set_finalizers(&mut released, &remaining);
        write_tracked(state, now, &attribution, "kube-controller-manager", key, &released);
    }
}
