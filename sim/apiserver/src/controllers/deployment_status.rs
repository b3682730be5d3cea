//! What a deployment says about itself: counts, availability, and whether it gets on.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::deployment::{CONTROLLER, Rollout, wanted};
use super::writes::{MANAGER, condition, number, set_count};
use crate::object::fields::{later, list, name, stamp, text};
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};

/// Sets a condition as the deployment controller does: a new one goes to the end, and one that says the same stays.
pub(super) fn set_condition(object: &mut Value, at: &str, (kind, status): (&str, &str), reason: &str, message: &str) {
    let known = condition(object, kind).cloned();
    if known.as_ref().is_some_and(|known| known["status"] == status && known["reason"] == reason) {
        return;
    }
    renew_condition(object, at, (kind, status), reason, message);
}

/// Sets a condition anew; the time of its change stays when its status does.
fn renew_condition(object: &mut Value, at: &str, (kind, status): (&str, &str), reason: &str, message: &str) {
    let known = condition(object, kind).filter(|known| known["status"] == status);
    let since = known.map_or_else(|| json!(at), |known| known["lastTransitionTime"].clone());
    let others = list(object, "/status/conditions").iter().filter(|condition| condition["type"] != kind);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": at, "lastTransitionTime": since,
    }));
    object["status"]["conditions"] = json!(conditions);
}

/// Whether a deployment says how long it may be stuck.
pub(super) fn has_deadline(deployment: &Value) -> bool {
    deployment.pointer("/spec/progressDeadlineSeconds").is_some_and(|seconds| *seconds != i32::MAX)
}

/// Whether everything is new and available.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let count = |field: &str| number(status, field);
    let all = wanted(deployment);
    count("/updatedReplicas") == all
        && count("/replicas") == all
        && count("/availableReplicas") == all
        && count("/observedGeneration") >= number(deployment, "/metadata/generation")
}

/// Whether more is new, or ready, than before.
fn gets_on(before: &Value, after: &Value) -> bool {
    let more = |field: &str| number(after, field) > number(before, field);
    let old = |status: &Value| number(status, "/replicas") - number(status, "/updatedReplicas");
    more("/updatedReplicas") || old(after) < old(before) || more("/readyReplicas") || more("/availableReplicas")
}

impl ApiServer {
    /// Writes the status; `judges` says whether it is also judged how the rollout gets on.
    pub(super) fn tell_progress(&mut self, now: Timestamp, rollout: &Rollout, judges: bool) {
        let Some(live) = self.stored(&rollout.key).cloned() else { return };
        let mut told = Value::clone(&live);
        count(rollout, &mut told);
        let at = stamp(now);
        let available = number(&told, "/status/availableReplicas") >= rollout.wanted() - rollout.may_miss();
        let (status, reason, message) = if available {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        set_condition(&mut told, &at, ("Available", status), reason, message);
        if judges {
            judge(rollout, &live, &mut told, now);
            tell_failures(rollout, &mut told, &at);
        }
        self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &told);
        if judges {
            self.plan_deadline(now, rollout);
        }
    }

    /// Looks again when a rollout that is not complete may have been stuck for too long.
    fn plan_deadline(&mut self, now: Timestamp, rollout: &Rollout) {
        let Some(live) = self.stored(&rollout.key) else { return };
        let seconds = number(live, "/spec/progressDeadlineSeconds");
        let Some(progress) = condition(live, "Progressing") else { return };
        let over = matches!(text(progress, "/reason"), "NewReplicaSetAvailable" | "ProgressDeadlineExceeded");
        if !has_deadline(live) || over {
            return;
        }
        let since: Timestamp = text(progress, "/lastUpdateTime").parse().unwrap_or(now);
        let due = later(since, SignedDuration::from_secs(seconds.saturating_add(1)));
        let task = Task::Reconcile(Workload::Deployment, rollout.key.clone());
        self.schedule_after(now, due.duration_since(now).max(SignedDuration::from_secs(1)), task);
    }
}

fn count(rollout: &Rollout, told: &mut Value) {
    let available = rollout.sum("/status/availableReplicas");
    let updated = rollout.new.as_ref().map_or(0, |set| number(&set.object, "/status/replicas"));
    let generation = told["metadata"]["generation"].clone();
    let status = &mut told["status"];
    status["observedGeneration"] = generation;
    set_count(status, "replicas", rollout.sum("/status/replicas"));
    set_count(status, "updatedReplicas", updated);
    set_count(status, "readyReplicas", rollout.sum("/status/readyReplicas"));
    set_count(status, "availableReplicas", available);
    set_count(status, "unavailableReplicas", (rollout.sum("/spec/replicas") - available).max(0));
    status["terminatingReplicas"] = json!(rollout.sum("/status/terminatingReplicas"));
}

/// Whether the rollout is over, gets on, or is stuck.
fn judge(rollout: &Rollout, live: &Value, told: &mut Value, now: Timestamp) {
    let at = stamp(now);
    if !has_deadline(live) {
        return;
    }
    let known = condition(live, "Progressing").cloned();
    let done = known.as_ref().is_some_and(|known| known["reason"] == "NewReplicaSetAvailable");
    if done && number(told, "/status/replicas") == number(told, "/status/updatedReplicas") {
        return;
    }
    let what = match &rollout.new {
        Some(set) => format!("ReplicaSet {:?}", set.key.name),
        None => format!("Deployment {:?}", name(live)),
    };
    let holds = ("Progressing", "True");
    if is_complete(live, &told["status"]) {
        let message = format!("{what} has successfully progressed.");
        renew_condition(told, &at, holds, "NewReplicaSetAvailable", &message);
    } else if gets_on(&live["status"], &told["status"]) {
        renew_condition(told, &at, holds, "ReplicaSetUpdated", &format!("{what} is progressing."));
    } else if is_stuck(live, known.as_ref(), now) {
        let message = format!("{what} has timed out progressing.");
        set_condition(told, &at, ("Progressing", "False"), "ProgressDeadlineExceeded", &message);
    }
}

fn is_stuck(deployment: &Value, known: Option<&Value>, now: Timestamp) -> bool {
    let Some(known) = known else { return false };
    match text(known, "/reason") {
        "NewReplicaSetAvailable" => return false,
        "ProgressDeadlineExceeded" => return true,
        _ => {}
    }
    let since: Timestamp = text(known, "/lastUpdateTime").parse().unwrap_or(now);
    let seconds = number(deployment, "/spec/progressDeadlineSeconds");
    later(since, SignedDuration::from_secs(seconds)) < now
}

/// What keeps replica sets from making pods is the deployment's failure too.
fn tell_failures(rollout: &Rollout, told: &mut Value, at: &str) {
    let failures = rollout.new.iter().chain(&rollout.old);
    let failure = failures.filter_map(|set| condition(&set.object, "ReplicaFailure")).next().cloned();
    match failure {
        Some(failure) => {
            let (reason, message) = (text(&failure, "/reason"), text(&failure, "/message"));
            set_condition(told, at, ("ReplicaFailure", "True"), reason, message);
        }
        None => {
            let conditions = told.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            conditions.into_iter().for_each(|all| all.retain(|condition| condition["type"] != "ReplicaFailure"));
        }
    }
}
