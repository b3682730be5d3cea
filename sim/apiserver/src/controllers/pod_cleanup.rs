//! Removes pods whose node is gone: no kubelet ends them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::owned_objects::has_ended;
use super::writes::{delete_object, replace_status};
use crate::object::fields::string_at;
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;

const CONTROLLER: &str = "pod-garbage-collector";

/// Fails and deletes a pod whose node does not exist.
pub(super) fn remove_stranded_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(pod) = state.store.find_key(key).cloned() else { return };
    if state.store.find("", "nodes", None, string_at(&pod, "/spec/nodeName")).is_some() {
        return;
    }
    if !has_ended(&pod) {
        let mut failed = Value::clone(&pod);
        failed["status"]["phase"] = json!("Failed");
        replace_status(state, now, (CONTROLLER, "kube-controller-manager"), key, &failed);
    }
    // A pod that has ended has no grace period.
    delete_object(state, now, CONTROLLER, key);
}
