//! Deployments, DaemonSets, StatefulSets and ReplicaSets, with the checks of `kubectl rollout status` in its order.

use super::observed::not_yet_observed;
use crate::conditions::Conditions;
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Returns the desired number of replicas; the default is 1.
fn read_desired_replicas(object: Object<'_>) -> i64 {
    object.number(&["spec", "replicas"]).unwrap_or(1)
}

/// Returns the controller's message about pods that it cannot create.
fn find_replica_failure(object: Object<'_>) -> Option<Health> {
    let condition = object.condition("ReplicaFailure").filter(|condition| condition.is_true())?;
    Some(condition.to_health(HealthState::Progressing, "ReplicaFailure"))
}

fn rolling_out(state: &str, current: i64, desired: i64) -> Health {
    Health::progressing("RollingOut", format!("{current} of {desired} replicas are {state}"))
}

pub(super) fn assess_deployment(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let exceeded = object.condition("Progressing").filter(|condition| condition.reason == "ProgressDeadlineExceeded");
    if let Some(condition) = exceeded {
        return condition.to_health(HealthState::Failing, "ProgressDeadlineExceeded");
    }
    let desired = read_desired_replicas(object);
    let updated = object.count(&["status", "updatedReplicas"]);
    let available = object.count(&["status", "availableReplicas"]);
    let old = object.count(&["status", "replicas"]).saturating_sub(updated);
    let incomplete = if updated < desired {
        rolling_out("updated", updated, desired)
    } else if old > 0 {
        Health::progressing("RollingOut", format!("{old} old replicas are pending termination"))
    } else if available < updated {
        rolling_out("available", available, updated)
    } else {
        return Health::ready("Available", format!("{available} of {desired} replicas are available"));
    };
    if object.flag(&["spec", "paused"]) && updated < desired {
        return Health::progressing("Paused", format!("paused; {}", incomplete.message));
    }
    find_replica_failure(object).unwrap_or(incomplete)
}

pub(super) fn assess_daemon_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let desired = object.count(&["status", "desiredNumberScheduled"]);
    let updated = object.count(&["status", "updatedNumberScheduled"]);
    let available = object.count(&["status", "numberAvailable"]);
    // With `OnDelete`, old pods stay until they are deleted.
    let is_rolling_update = object.text(&["spec", "updateStrategy", "type"]) != Some("OnDelete");
    if is_rolling_update && updated < desired {
        return Health::progressing("RollingOut", format!("{updated} of {desired} pods are updated"));
    }
    if available < desired {
        return Health::progressing("RollingOut", format!("{available} of {desired} pods are available"));
    }
    Health::ready("Available", format!("{available} of {desired} pods are available"))
}

pub(super) fn assess_stateful_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let desired = read_desired_replicas(object);
    let ready = object.count(&["status", "readyReplicas"]);
    if ready < desired {
        return rolling_out("ready", ready, desired);
    }
    let existing = object.count(&["status", "replicas"]);
    if existing > desired {
        return Health::progressing("ScalingDown", format!("{existing} replicas exist, {desired} are desired"));
    }
    // Older API servers do not report this count.
    let available = object.number(&["status", "availableReplicas"]).unwrap_or(ready);
    if available < desired {
        return rolling_out("available", available, desired);
    }
    if let Some(health) = check_rollout(object, desired) {
        return health;
    }
    Health::ready("Available", format!("{ready} of {desired} replicas are ready"))
}

/// Returns a health if some pods of a StatefulSet are not of the update revision.
fn check_rollout(object: Object<'_>, desired: i64) -> Option<Health> {
    if object.text(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return None;
    }
    let updated = object.count(&["status", "updatedReplicas"]);
    let partition = object.number(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let to_update = desired.saturating_sub(partition.unwrap_or(0)).max(0);
    let revision = |field| object.text(&["status", field]).unwrap_or_default();
    let is_single_revision = revision("currentRevision") == revision("updateRevision");
    if updated < to_update && !(is_single_revision && partition.is_none()) {
        return Some(rolling_out("updated", updated, to_update));
    }
    let message = format!("{} is not the current revision yet", revision("updateRevision"));
    (partition.is_none() && !is_single_revision).then(|| Health::progressing("RollingOut", message))
}

/// Applies to ReplicationControllers too.
pub(super) fn assess_replica_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let desired = read_desired_replicas(object);
    let existing = object.count(&["status", "replicas"]);
    let available = object.count(&["status", "availableReplicas"]);
    if available < desired {
        return find_replica_failure(object).unwrap_or_else(|| rolling_out("available", available, desired));
    }
    if existing > desired {
        return Health::progressing("ScalingDown", format!("{existing} replicas exist, {desired} are desired"));
    }
    Health::ready("Available", format!("{available} of {desired} replicas are available"))
}
