//! Controller tasks that a committed change schedules.

use jiff::Timestamp;
use serde_json::Value;

use super::owners::find_owners;
use super::workload_triggers::schedule_workloads;
use crate::admission::disruption_budget::BUDGETS;
use crate::object::fields::{array_at, finalizers, is_deleting, uid};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::object::key::StoredKey;
use crate::object::protection::protection_finalizer;
use crate::state::crd_serving::{CRDS, stop_serving};
use crate::state::schedule::Task;
use crate::state::server_state::ServerState;
use crate::storage::store::Event;

/// Schedules the consequences of a change.
pub(crate) fn trigger_controllers(state: &mut ServerState, now: Timestamp, event: &Event) {
    let key = &event.key;
    match (key.group.as_str(), key.plural.as_str()) {
        ("", "namespaces") => on_namespace_change(state, now, event),
        CRDS => on_crd_change(state, now, event),
        ("rbac.authorization.k8s.io", "clusterroles") => {
            state.schedule_after(now, state.delays.role_aggregation, Task::AggregateRoles);
        }
        ("certificates.k8s.io", "certificatesigningrequests") if state.signer.is_some() && !event.gone => {
            let task = Task::SignCertificate(key.name.clone());
            state.schedule_after(now, state.delays.certificate_signing, task);
        }
        _ => {}
    }
    if let Some(namespace) = &key.namespace {
        schedule_counting(state, now, namespace);
    }
    schedule_workloads(state, now, event);
    if event.gone {
        on_removal(state, now, event);
    } else {
        schedule_unprotecting(state, now, key, &event.object);
        on_write(state, now, event);
    }
}

fn on_namespace_change(state: &mut ServerState, now: Timestamp, event: &Event) {
    let name = event.key.name.clone();
    if event.before.is_none() {
        state.schedule_after(now, state.delays.namespace_defaults, Task::PopulateNamespace(name));
    } else if !event.gone && is_deleting(&event.object) {
        state.schedule_after(now, state.delays.namespace_termination, Task::TerminateNamespace(name));
    }
}

fn on_crd_change(state: &mut ServerState, now: Timestamp, event: &Event) {
    let name = event.key.name.clone();
    if event.gone {
        stop_serving(state, &event.object);
    } else if is_deleting(&event.object) {
        state.schedule_after(now, state.delays.crd_finalization, Task::FinalizeCrd(name));
    } else if event.before.as_ref().is_none_or(|before| before.get("spec") != event.object.get("spec")) {
        state.schedule_after(now, state.delays.crd_established, Task::EstablishCrd(name));
    }
}

fn on_removal(state: &mut ServerState, now: Timestamp, event: &Event) {
    let key = &event.key;
    let removed_uid = uid(&event.object);
    if !state.store.dependents(removed_uid).is_empty() {
        state.schedule_after(now, state.delays.garbage_collection, Task::CollectDependents(removed_uid.to_owned()));
    }
    schedule_waiting_owners(state, now, key, &event.object);
    if let (Some(namespace), "", "pods") = (&key.namespace, key.group.as_str(), key.plural.as_str()) {
        schedule_unprotecting_claims(state, now, namespace);
    }
    if let Some(namespace) = &key.namespace {
        let terminating = state.store.find("", "namespaces", None, namespace).is_some_and(|object| is_deleting(object));
        let default_objects = [("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")];
        if terminating {
            state.schedule_after(now, state.delays.namespace_termination, Task::TerminateNamespace(namespace.clone()));
        } else if key.group.is_empty() && default_objects.contains(&(key.plural.as_str(), key.name.as_str())) {
            state.schedule_after(now, state.delays.namespace_defaults, Task::PopulateNamespace(namespace.clone()));
        }
    }
    let crd = format!("{}.{}", key.plural, key.group);
    if state.store.find(CRDS.0, CRDS.1, None, &crd).is_some_and(|object| is_deleting(object)) {
        state.schedule_after(now, state.delays.crd_finalization, Task::FinalizeCrd(crd));
    }
}

/// Schedules the deletion of owners that may have waited for this object.
fn schedule_waiting_owners(state: &mut ServerState, now: Timestamp, key: &StoredKey, object: &Value) {
    for owner in find_owners(state, key, object).into_iter().filter_map(|owner| owner.key) {
        let is_waiting = state.store.find_key(&owner).is_some_and(|owner| finalizers(owner).contains(&FOREGROUND));
        if is_waiting {
            state.schedule_after(now, state.delays.garbage_collection, Task::FinishDeletion(owner));
        }
    }
}

fn on_write(state: &mut ServerState, now: Timestamp, event: &Event) {
    let pointer = "/metadata/ownerReferences";
    let owners = array_at(&event.object, pointer);
    let previous_owners = event.before.as_ref().map_or(&[] as &[Value], |before| array_at(before, pointer));
    if !owners.is_empty() && owners != previous_owners {
        state.schedule_after(now, state.delays.garbage_collection, Task::CheckOwners(StoredKey::clone(&event.key)));
    }
    if let Some(before) = event.before.as_ref().filter(|_| owners != previous_owners) {
        schedule_waiting_owners(state, now, &event.key, before);
    }
    let pending = finalizers(&event.object);
    if is_deleting(&event.object) && (pending.contains(&FOREGROUND) || pending.contains(&ORPHAN)) {
        state.schedule_after(now, state.delays.garbage_collection, Task::FinishDeletion(StoredKey::clone(&event.key)));
    }
}

/// Schedules the recount that a change in a namespace requires.
pub(crate) fn schedule_counting(state: &mut ServerState, now: Timestamp, namespace: &str) {
    for (group, plural) in [("", "resourcequotas"), BUDGETS] {
        let collection = state.store.collection(group, plural).into_iter().flat_map(|collection| collection.values());
        let in_namespace = collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        let keys: Vec<StoredKey> = in_namespace.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            state.schedule_after(now, state.delays.namespace_defaults, Task::Count(key));
        }
    }
}

/// Schedules the removal of the protection finalizer of an object that is being deleted.
pub(crate) fn schedule_unprotecting(state: &mut ServerState, now: Timestamp, key: &StoredKey, object: &Value) {
    if let Some(finalizer) = protection_finalizer(key)
        && is_deleting(object)
        && finalizers(object).contains(&finalizer)
    {
        state.schedule_after(now, state.delays.garbage_collection, Task::Unprotect(key.clone()));
    }
}

/// Schedules a check of the claims that are being deleted, after a pod was removed.
pub(crate) fn schedule_unprotecting_claims(state: &mut ServerState, now: Timestamp, namespace: &str) {
    let collection =
        state.store.collection("", "persistentvolumeclaims").into_iter().flat_map(|collection| collection.values());
    let waiting =
        collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace) && is_deleting(&entry.object));
    let keys: Vec<StoredKey> = waiting.map(|entry| StoredKey::clone(&entry.key)).collect();
    for key in keys {
        state.schedule_after(now, state.delays.garbage_collection, Task::Unprotect(key));
    }
}
