//! Lifecycle of a CRD: its names are accepted, it is established, served, and finally cleaned up.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::conditions::set_condition;
use crate::object::fields::{finalizers, format_timestamp, is_deleting, set_finalizers, string_at};
use crate::object::finalizers::CLEANUP;
use crate::state::crd_serving::{CRDS, crd_key, serve_crd, stop_serving};
use crate::state::schedule::Task;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::verbs::delete::{Propagation, delete_stored};
use crate::writes::commit::remove;
use crate::writes::tracked::write_tracked;

/// Accepts the names of a CRD, unless another CRD already has its kind.
pub(crate) fn establish_crd(state: &mut ServerState, now: Timestamp, name: &str) {
    let key = crd_key(name);
    let Some(live) = state.store.find_key(&key).filter(|object| !is_deleting(object)).cloned() else {
        return;
    };
    let mut object = Value::clone(&live);
    let is_taken = is_kind_taken(state, name, &live);
    let timestamp = format_timestamp(now);
    if is_taken {
        let names = &live["spec"]["names"];
        object["status"]["acceptedNames"] =
            json!({"plural": names["plural"], "singular": names["singular"], "kind": ""});
        let message = format!("{} is already in use", names["listKind"]);
        set_condition(&mut object, &timestamp, "NamesAccepted", false, "ListKindConflict", &message);
        set_condition(&mut object, &timestamp, "Established", false, "NotAccepted", "not all names are accepted");
    } else {
        object["status"]["acceptedNames"] = live["spec"]["names"].clone();
        set_condition(&mut object, &timestamp, "NamesAccepted", true, "NoConflicts", "no conflicts found");
        set_condition(
            &mut object,
            &timestamp,
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        );
    }
    let mut attribution = Attribution::controller("crd-establishing-controller", Verb::Update);
    attribution.subresource = "status";
    write_tracked(state, now, &attribution, "kube-apiserver", &key, &object);
    if is_taken {
        return;
    }
    if state.delays.crd_served.is_zero() {
        serve_crd(state, name);
    } else {
        state.schedule_after(now, state.delays.crd_served, Task::ServeCrd(name.to_owned()));
    }
}

fn is_kind_taken(state: &ServerState, name: &str, crd: &Value) -> bool {
    let (group, kind) = (string_at(crd, "/spec/group"), string_at(crd, "/spec/names/kind"));
    let collection = state.store.collection(CRDS.0, CRDS.1);
    let taken = collection.into_iter().flat_map(|collection| collection.values()).any(|other| {
        other.key.name != name
            && string_at(&other.object, "/spec/group") == group
            && string_at(&other.object, "/status/acceptedNames/kind") == kind
    });
    taken || state.registry.by_kind(group, kind).is_some_and(|resource| !resource.custom)
}

/// Deletes the custom resources of a CRD, and the CRD itself once none is left.
pub(crate) fn finalize_crd(state: &mut ServerState, now: Timestamp, name: &str) {
    let key = crd_key(name);
    let Some(live) = state.store.find_key(&key).filter(|object| is_deleting(object)).cloned() else {
        return;
    };
    let (group, plural) = (string_at(&live, "/spec/group"), string_at(&live, "/spec/names/plural"));
    let attribution = Attribution::controller("crd-finalizer", Verb::Delete);
    let custom_resources: Vec<_> =
        state.store.collection(group, plural).into_iter().flatten().map(|(_, entry)| entry.key.clone()).collect();
    for custom_resource in &custom_resources {
        delete_stored(state, now, &attribution, custom_resource, Propagation::Background);
    }
    if state.store.collection(group, plural).is_some_and(|collection| !collection.is_empty()) {
        return;
    }
    stop_serving(state, &live);
    let mut released = Value::clone(&live);
    let remaining: Vec<&str> = finalizers(&live).into_iter().filter(|finalizer| *finalizer != CLEANUP).collect();
    set_finalizers(&mut released, &remaining);
    if remaining.is_empty() {
        remove(state, now, &attribution, &key);
    } else {
        write_tracked(state, now, &attribution, "kube-apiserver", &key, &released);
    }
}
