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
use crate::writes::owners::{Owner, find_owners};
use crate::writes::tracked::write_tracked;

const COLLECTOR: &str = "generic-garbage-collector";

pub(crate) fn collect_dependents(state: &mut ServerState, now: Timestamp, owner_uid: &str) {
    for key in state.store.dependents(owner_uid) {
        check_owners(state, now, &key);
    }
}

/// Deletes an object if each of its owners is absent or waits for its dependents, or removes its references to these
/// owners if it has another one.
pub(crate) fn check_owners(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(object) = state.store.find_key(key).filter(|object| !is_deleting(object)).cloned() else {
        return;
    };
    let owners = find_owners(state, key, &object);
    let is_waiting = |owner: &Owner| owner.key.as_ref().is_some_and(|key| is_deleting_dependents(state, key));
    let has_waiting = owners.iter().any(is_waiting);
    let (lost, solid): (Vec<&Owner>, Vec<&Owner>) =
        owners.iter().partition(|owner| owner.is_absent || is_waiting(owner));
    if lost.is_empty() {
        return;
    }
    if !solid.is_empty() {
        let lost: Vec<&str> = lost.iter().map(|owner| owner.uid.as_str()).collect();
        return remove_owner_references(state, now, key, &object, &lost);
    }
    let dependents = state.store.dependents(uid(&object));
    let pending = finalizers(&object);
    let policy = if pending.contains(&ORPHAN) {
        Propagation::Orphan
    } else if pending.contains(&FOREGROUND) || has_waiting && !dependents.is_empty() {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if has_waiting && dependents.iter().any(|dependent| is_deleting_dependents(state, dependent)) {
        unblock_owners(state, now, key, &object);
    }
    delete_stored(state, now, &Attribution::controller(COLLECTOR, Verb::Delete), key, policy);
}

/// True if an object is being deleted and waits for its dependents.
fn is_deleting_dependents(state: &ServerState, key: &StoredKey) -> bool {
    state.store.find_key(key).is_some_and(|object| is_deleting(object) && finalizers(object).contains(&FOREGROUND))
}

/// Lets the owners of an object be removed before it: in a circle, each would wait for the next one.
fn unblock_owners(state: &mut ServerState, now: Timestamp, key: &StoredKey, object: &Value) {
    let mut updated = object.clone();
    let references = updated.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for reference in references.into_iter().flatten().filter(|reference| reference["blockOwnerDeletion"] == true) {
        reference["blockOwnerDeletion"] = Value::Bool(false);
    }
    let attribution = Attribution::controller(COLLECTOR, Verb::Patch);
    write_tracked(state, now, &attribution, "kube-controller-manager", key, &updated);
}

/// True if an object keeps an owner from being removed.
fn blocks_owner(object: &Value, owner_uid: &str) -> bool {
    let mut references = array_at(object, "/metadata/ownerReferences").iter();
    references.any(|reference| string_at(reference, "/uid") == owner_uid && reference["blockOwnerDeletion"] == true)
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
        for dependent in state.store.dependents(owner_uid) {
            check_owners(state, now, &dependent);
        }
        let dependents = state.store.dependents(owner_uid);
        let mut dependents = dependents.iter().filter_map(|dependent| state.store.find_key(dependent));
        if dependents.any(|dependent| blocks_owner(dependent, owner_uid)) {
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
