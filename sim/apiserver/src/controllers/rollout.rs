//! Rollout strategies of a Deployment: rolling update, recreate, and proportional scaling.

use jiff::Timestamp;
use serde_json::Value;

use super::deployment_rollout::{CONTROLLER, Rollout, desired_replicas, revision};
use super::deployment_sets::{finish_sync, observe_rollout, scale_set, sync_new_set};
use super::deployment_status::update_deployment_status;
use super::owned_objects::{OwnedObject, claim_objects, has_ended};
use super::writes::number;
use crate::object::fields::string_at;
use crate::state::server_state::ServerState;

fn available(set: &OwnedObject) -> i64 {
    number(&set.object, "/status/availableReplicas")
}

/// Rolling update: the new set grows up to the surge limit, the old ones shrink while enough pods are available.
pub(crate) fn roll_out(state: &mut ServerState, now: Timestamp, rollout: &mut Rollout) {
    let Some(new) = rollout.new.clone() else { return };
    let size = desired_replicas(&new.object);
    let target = if size > rollout.desired_replicas() { rollout.desired_replicas() } else { rollout.new_set_size() };
    let grown = size != rollout.desired_replicas() && scale_set(state, now, rollout, &new, target);
    if grown || scale_down_old_sets(state, now, rollout) {
        return update_status_from_store(state, now, rollout);
    }
    finish_sync(state, now, rollout);
}

fn update_status_from_store(state: &mut ServerState, now: Timestamp, rollout: &Rollout) {
    if let Some(rollout) = observe_rollout(state, now, &rollout.key) {
        update_deployment_status(state, now, &rollout, true);
    }
}

/// Scales the old sets down: first by their unavailable replicas, then by as many available ones as the limits allow.
fn scale_down_old_sets(state: &mut ServerState, now: Timestamp, rollout: &Rollout) -> bool {
    if rollout.old.iter().all(|set| desired_replicas(&set.object) == 0) {
        return false;
    }
    let min_available = rollout.desired_replicas() - rollout.max_unavailable();
    let starting = rollout.new.as_ref().map_or(0, |set| desired_replicas(&set.object) - available(set));
    let max_removed = rollout.sum("/spec/replicas") - min_available - starting;
    if max_removed <= 0 {
        return false;
    }
    let mut sizes: Vec<i64> = rollout.old.iter().map(|set| desired_replicas(&set.object)).collect();
    let mut cleaned = 0;
    for (size, set) in sizes.iter_mut().zip(&rollout.old) {
        let unavailable = (*size - available(set)).max(0).min(max_removed - cleaned);
        *size -= unavailable;
        cleaned += unavailable;
    }
    let mut spare = rollout.sum("/status/availableReplicas") - min_available;
    for size in &mut sizes {
        let taken = (*size).min(spare.max(0));
        *size -= taken;
        spare -= taken;
    }
    let mut shrunk = false;
    for (size, set) in sizes.into_iter().zip(&rollout.old) {
        if size != desired_replicas(&set.object) {
            shrunk |= scale_set(state, now, rollout, set, size);
        }
    }
    shrunk
}

/// Recreate: deletes all old pods before it creates the new set.
pub(crate) fn recreate(state: &mut ServerState, now: Timestamp, rollout: &mut Rollout) {
    let mut shrunk = false;
    for set in rollout.old.iter().filter(|set| desired_replicas(&set.object) > 0) {
        shrunk |= scale_set(state, now, rollout, set, 0);
    }
    if shrunk || has_old_pods(state, now, rollout) {
        return update_status_from_store(state, now, rollout);
    }
    let current = observe_rollout(state, now, &rollout.key);
    let Some(current) = current.and_then(|current| sync_new_set(state, now, current, true)) else { return };
    let Some(new) = current.new.clone() else { return };
    if scale_set(state, now, &current, &new, current.desired_replicas()) {
        return update_status_from_store(state, now, &current);
    }
    finish_sync(state, now, &current);
}

fn has_old_pods(state: &mut ServerState, now: Timestamp, rollout: &Rollout) -> bool {
    let sets: Vec<Value> = rollout.old.iter().map(|set| Value::clone(&set.object)).collect();
    sets.iter().any(|set| {
        let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
        pods.iter().any(|pod| !has_ended(&pod.object))
    })
}

/// Scales a deployment without a rollout: the only active set gets all replicas, several share them.
pub(crate) fn scale_sets(state: &mut ServerState, now: Timestamp, rollout: &mut Rollout) {
    let active: Vec<OwnedObject> = rollout.sets().filter(|set| desired_replicas(&set.object) > 0).cloned().collect();
    if active.len() <= 1 {
        let newest = rollout.old.iter().max_by_key(|set| revision(&set.object));
        let only = active.first().or(rollout.new.as_ref()).or(newest).cloned();
        if let Some(only) = only {
            scale_set(state, now, rollout, &only, rollout.desired_replicas());
        }
    } else if rollout.new.as_ref().is_some_and(|new| is_saturated(rollout, new)) {
        for set in rollout.old.iter().filter(|set| desired_replicas(&set.object) > 0) {
            scale_set(state, now, rollout, set, 0);
        }
    } else if rollout.is_rolling_update() {
        for (set, size) in proportional_sizes(rollout, active) {
            scale_set(state, now, rollout, &set, size);
        }
    }
    if let Some(observed) = observe_rollout(state, now, &rollout.key.clone()) {
        *rollout = observed;
    }
}

fn is_saturated(rollout: &Rollout, new: &OwnedObject) -> bool {
    let desired = new.object.pointer("/metadata/annotations/deployment.kubernetes.io~1desired-replicas");
    let desired = desired.and_then(Value::as_str).and_then(|text| text.parse().ok());
    desired_replicas(&new.object) == rollout.desired_replicas()
        && desired == Some(rollout.desired_replicas())
        && available(new) == rollout.desired_replicas()
}

/// Divides a new size among the sets in proportion; the largest set gets the rounding remainder.
fn proportional_sizes(rollout: &Rollout, mut active: Vec<OwnedObject>) -> Vec<(OwnedObject, i64)> {
    let allowed = if rollout.desired_replicas() > 0 { rollout.desired_replicas() + rollout.max_surge() } else { 0 };
    let before: i64 = active.iter().map(|set| desired_replicas(&set.object)).sum();
    let missing = allowed - before;
    // Largest first; of equal ones the newer first when growing, the older first when shrinking.
    active.sort_by(|one, other| {
        let created = |set: &OwnedObject| string_at(&set.object, "/metadata/creationTimestamp").to_owned();
        let age = if missing > 0 { created(other).cmp(&created(one)) } else { created(one).cmp(&created(other)) };
        desired_replicas(&other.object).cmp(&desired_replicas(&one.object)).then(age)
    });
    let mut distributed = 0;
    let mut sizes: Vec<(OwnedObject, i64)> = Vec::new();
    for set in active {
        let size = desired_replicas(&set.object);
        let part = proportion(&set, rollout, missing, distributed);
        distributed += part;
        sizes.push((set, size + part));
    }
    if let Some((_, first)) = sizes.first_mut() {
        *first = (*first + missing - distributed).max(0);
    }
    sizes
}

fn proportion(set: &OwnedObject, rollout: &Rollout, missing: i64, distributed: i64) -> i64 {
    let size = desired_replicas(&set.object);
    let remaining = missing - distributed;
    if size == 0 || missing == 0 || remaining == 0 {
        return 0;
    }
    let annotated = set.object.pointer("/metadata/annotations/deployment.kubernetes.io~1max-replicas");
    let annotated: i64 = annotated.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or_default();
    let base = if annotated > 0 { annotated } else { number(&rollout.deployment, "/status/replicas").max(1) };
    // Rounded half up, without floating point.
    let scaled = 2 * size * (rollout.desired_replicas() + rollout.max_surge()) + base;
    let part = scaled.div_euclid(2 * base) - size;
    if missing > 0 { part.min(remaining) } else { part.max(remaining) }
}
