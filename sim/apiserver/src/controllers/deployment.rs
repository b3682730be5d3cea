//! The Deployment controller: finds and creates its replica sets, and chooses what to do with each.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::deployment_rollout::{CONTROLLER, DESIRED_REPLICAS, Rollout, annotation, desired_replicas};
use super::deployment_sets::{delete_old_sets, observe_rollout, sync_new_set};
use super::deployment_status::{has_deadline, set_condition, update_deployment_status};
use super::rollout::{recreate, roll_out, scale_sets};
use super::writes::{MANAGER, condition, replace_status};
use crate::object::fields::{format_timestamp, is_deleting, string_at};
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;

pub(crate) fn reconcile_deployment(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(mut rollout) = observe_rollout(state, now, key) else { return };
    if is_deleting(&rollout.deployment) {
        return update_deployment_status(state, now, &rollout, false);
    }
    record_pause(state, now, &rollout);
    rollout.deployment = state.store.find_key(key).cloned().unwrap_or(rollout.deployment);
    let paused = rollout.deployment.pointer("/spec/paused") == Some(&json!(true));
    if paused || is_rescaled(&rollout) {
        let Some(mut rollout) = sync_new_set(state, now, rollout, false) else { return };
        scale_sets(state, now, &mut rollout);
        if paused {
            delete_old_sets(state, now, &rollout);
        }
        return update_deployment_status(state, now, &rollout, false);
    }
    if rollout.is_rolling_update() {
        let Some(mut rollout) = sync_new_set(state, now, rollout, true) else { return };
        roll_out(state, now, &mut rollout);
    } else {
        let Some(mut rollout) = sync_new_set(state, now, rollout, false) else { return };
        recreate(state, now, &mut rollout);
    }
}

/// True if the desired replicas differ from those that the active sets were scaled for.
fn is_rescaled(rollout: &Rollout) -> bool {
    let desired = rollout.desired_replicas().to_string();
    let mut active = rollout.sets().filter(|set| desired_replicas(&set.object) > 0);
    active.any(|set| {
        let known = annotation(&set.object, DESIRED_REPLICAS);
        !known.is_empty() && known != desired
    })
}

fn record_pause(state: &mut ServerState, now: Timestamp, rollout: &Rollout) {
    let deployment = &rollout.deployment;
    let reason = condition(deployment, "Progressing").map(|known| string_at(known, "/reason")).unwrap_or_default();
    if !has_deadline(deployment) || reason == "ProgressDeadlineExceeded" {
        return;
    }
    let paused = deployment.pointer("/spec/paused") == Some(&json!(true));
    let (reason, message) = match (paused, reason == "DeploymentPaused") {
        (true, false) => ("DeploymentPaused", "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        (true, true) | (false, false) => return,
    };
    let mut updated_object = Value::clone(deployment);
    set_condition(&mut updated_object, &format_timestamp(now), ("Progressing", "Unknown"), reason, message);
    replace_status(state, now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
}
