//! Status of a Deployment: counts, availability and progress.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::deployment_rollout::{CONTROLLER, Rollout, desired_replicas};
use super::writes::{MANAGER, condition, number, replace_status, set_count};
use crate::object::fields::{add_duration, array_at, format_timestamp, name, string_at};
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;

/// Sets a condition as the deployment controller does: a new one is appended, and one with the same status and reason stays.
pub(super) fn set_condition(
    object: &mut Value,
    timestamp: &str,
    (condition_type, status): (&str, &str),
    reason: &str,
    message: &str,
) {
    let known = condition(object, condition_type).cloned();
    if known.as_ref().is_some_and(|known| known["status"] == status && known["reason"] == reason) {
        return;
    }
    replace_condition(object, timestamp, (condition_type, status), reason, message);
}

/// Replaces a condition. Its `lastTransitionTime` changes only with its status.
fn replace_condition(
    object: &mut Value,
    timestamp: &str,
    (condition_type, status): (&str, &str),
    reason: &str,
    message: &str,
) {
    let known = condition(object, condition_type).filter(|known| known["status"] == status);
    let since = known.map_or_else(|| json!(timestamp), |known| known["lastTransitionTime"].clone());
    let others = array_at(object, "/status/conditions").iter().filter(|condition| condition["type"] != condition_type);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(json!({
        "type": condition_type, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": timestamp, "lastTransitionTime": since,
    }));
    object["status"]["conditions"] = json!(conditions);
}

/// True if a deployment limits the time without progress.
pub(super) fn has_deadline(deployment: &Value) -> bool {
    deployment.pointer("/spec/progressDeadlineSeconds").is_some_and(|seconds| *seconds != i32::MAX)
}

/// True if all replicas are updated and available.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let count = |field: &str| number(status, field);
    let all = desired_replicas(deployment);
    count("/updatedReplicas") == all
        && count("/replicas") == all
        && count("/availableReplicas") == all
        && count("/observedGeneration") >= number(deployment, "/metadata/generation")
}

/// True if more replicas are updated or ready than before.
fn has_progressed(before: &Value, after: &Value) -> bool {
    let more = |field: &str| number(after, field) > number(before, field);
    let old = |status: &Value| number(status, "/replicas") - number(status, "/updatedReplicas");
    more("/updatedReplicas") || old(after) < old(before) || more("/readyReplicas") || more("/availableReplicas")
}

/// Writes the status; `with_progress` also updates the `Progressing` and `ReplicaFailure` conditions.
pub(crate) fn update_deployment_status(
    state: &mut ServerState,
    now: Timestamp,
    rollout: &Rollout,
    with_progress: bool,
) {
    let Some(live) = state.store.find_key(&rollout.key).cloned() else { return };
    let mut updated_object = Value::clone(&live);
    set_counts(rollout, &mut updated_object);
    let timestamp = format_timestamp(now);
    let available =
        number(&updated_object, "/status/availableReplicas") >= rollout.desired_replicas() - rollout.max_unavailable();
    let (status, reason, message) = if available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(&mut updated_object, &timestamp, ("Available", status), reason, message);
    if with_progress {
        update_progress(rollout, &live, &mut updated_object, now);
        update_failure(rollout, &mut updated_object, &timestamp);
    }
    replace_status(state, now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
    if with_progress {
        schedule_deadline_check(state, now, rollout);
    }
}

/// Schedules a reconciliation at the progress deadline of an incomplete rollout.
fn schedule_deadline_check(state: &mut ServerState, now: Timestamp, rollout: &Rollout) {
    let Some(live) = state.store.find_key(&rollout.key) else { return };
    let seconds = number(live, "/spec/progressDeadlineSeconds");
    let Some(progress) = condition(live, "Progressing") else { return };
    let is_over = matches!(string_at(progress, "/reason"), "NewReplicaSetAvailable" | "ProgressDeadlineExceeded");
    if !has_deadline(live) || is_over {
        return;
    }
    let since: Timestamp = string_at(progress, "/lastUpdateTime").parse().unwrap_or(now);
    let due = add_duration(since, SignedDuration::from_secs(seconds.saturating_add(1)));
    let task = Task::Reconcile(Workload::Deployment, rollout.key.clone());
    state.schedule_after(now, due.duration_since(now).max(SignedDuration::from_secs(1)), task);
}

fn set_counts(rollout: &Rollout, updated_object: &mut Value) {
    let available = rollout.sum("/status/availableReplicas");
    let updated = rollout.new.as_ref().map_or(0, |set| number(&set.object, "/status/replicas"));
    let generation = updated_object["metadata"]["generation"].clone();
    let status = &mut updated_object["status"];
    status["observedGeneration"] = generation;
    set_count(status, "replicas", rollout.sum("/status/replicas"));
    set_count(status, "updatedReplicas", updated);
    set_count(status, "readyReplicas", rollout.sum("/status/readyReplicas"));
    set_count(status, "availableReplicas", available);
    set_count(status, "unavailableReplicas", (rollout.sum("/spec/replicas") - available).max(0));
    status["terminatingReplicas"] = json!(rollout.sum("/status/terminatingReplicas"));
}

/// Sets the `Progressing` condition: the rollout is complete, progresses, or has timed out.
fn update_progress(rollout: &Rollout, live: &Value, updated_object: &mut Value, now: Timestamp) {
    let timestamp = format_timestamp(now);
    if !has_deadline(live) {
        return;
    }
    let known = condition(live, "Progressing").cloned();
    let done = known.as_ref().is_some_and(|known| known["reason"] == "NewReplicaSetAvailable");
    if done && number(updated_object, "/status/replicas") == number(updated_object, "/status/updatedReplicas") {
        return;
    }
    let subject = match &rollout.new {
        Some(set) => format!("ReplicaSet {:?}", set.key.name),
        None => format!("Deployment {:?}", name(live)),
    };
    let holds = ("Progressing", "True");
    if is_complete(live, &updated_object["status"]) {
        let message = format!("{subject} has successfully progressed.");
        replace_condition(updated_object, &timestamp, holds, "NewReplicaSetAvailable", &message);
    } else if has_progressed(&live["status"], &updated_object["status"]) {
        replace_condition(
            updated_object,
            &timestamp,
            holds,
            "ReplicaSetUpdated",
            &format!("{subject} is progressing."),
        );
    } else if is_stuck(live, known.as_ref(), now) {
        let message = format!("{subject} has timed out progressing.");
        set_condition(updated_object, &timestamp, ("Progressing", "False"), "ProgressDeadlineExceeded", &message);
    }
}

fn is_stuck(deployment: &Value, known: Option<&Value>, now: Timestamp) -> bool {
    let Some(known) = known else { return false };
    match string_at(known, "/reason") {
        "NewReplicaSetAvailable" => return false,
        "ProgressDeadlineExceeded" => return true,
        _ => {}
    }
    let since: Timestamp = string_at(known, "/lastUpdateTime").parse().unwrap_or(now);
    let seconds = number(deployment, "/spec/progressDeadlineSeconds");
    add_duration(since, SignedDuration::from_secs(seconds)) < now
}

/// Copies the `ReplicaFailure` condition of a replica set to the deployment.
fn update_failure(rollout: &Rollout, updated_object: &mut Value, timestamp: &str) {
    let failures = rollout.new.iter().chain(&rollout.old);
    let failure = failures.filter_map(|set| condition(&set.object, "ReplicaFailure")).next().cloned();
    match failure {
        Some(failure) => {
            let (reason, message) = (string_at(&failure, "/reason"), string_at(&failure, "/message"));
            set_condition(updated_object, timestamp, ("ReplicaFailure", "True"), reason, message);
        }
        None => {
            let conditions = updated_object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            conditions.into_iter().for_each(|all| all.retain(|condition| condition["type"] != "ReplicaFailure"));
        }
    }
}
