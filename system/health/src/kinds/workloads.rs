//! Deployments, DaemonSets, StatefulSets and ReplicaSets, with the checks of `kubectl rollout status` in its order.

use super::not_yet_observed;
use crate::conditions::Conditions;
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Returns the desired number of replicas; the default is 1.
fn desired_replicas(object: Object<'_>) -> i64 {
    object.number(&["spec", "replicas"]).unwrap_or(1)
}

/// Returns the controller's message about pods that it cannot create.
fn replica_failure(object: Object<'_>) -> Option<Health> {
    let condition = object.condition("ReplicaFailure").filter(|condition| condition.is_true())?;
    Some(condition.to_health(HealthState::Progressing, "ReplicaFailure"))
}

fn rolling_out(what: &str, have: i64, want: i64) -> Health {
    Health::progressing("RollingOut", format!("{have} of {want} replicas are {what}"))
}

pub(super) fn deployment(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let exceeded = object.condition("Progressing").filter(|condition| condition.reason == "ProgressDeadlineExceeded");
    if let Some(condition) = exceeded {
        return condition.to_health(HealthState::Failing, "ProgressDeadlineExceeded");
    }
    let want = desired_replicas(object);
    let updated = object.count(&["status", "updatedReplicas"]);
    let available = object.count(&["status", "availableReplicas"]);
    let old = object.count(&["status", "replicas"]).saturating_sub(updated);
    let missing = if updated < want {
        rolling_out("updated", updated, want)
    } else if old > 0 {
        Health::progressing("RollingOut", format!("old replicas that are not gone yet: {old}"))
    } else if available < updated {
        rolling_out("available", available, updated)
    } else {
        return Health::ready("Available", format!("{available} of {want} replicas are available"));
    };
    if object.flag(&["spec", "paused"]) && updated < want {
        return Health::progressing("Paused", format!("paused; {}", missing.message));
    }
    replica_failure(object).unwrap_or(missing)
}

pub(super) fn daemon_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let want = object.count(&["status", "desiredNumberScheduled"]);
    let updated = object.count(&["status", "updatedNumberScheduled"]);
    let available = object.count(&["status", "numberAvailable"]);
    // With `OnDelete`, old pods stay until they are deleted.
    let rolls = object.text(&["spec", "updateStrategy", "type"]) != Some("OnDelete");
    if rolls && updated < want {
        return Health::progressing("RollingOut", format!("{updated} of {want} pods are updated"));
    }
    if available < want {
        return Health::progressing("RollingOut", format!("{available} of {want} pods are available"));
    }
    Health::ready("Available", format!("{available} of {want} pods are available"))
}

pub(super) fn stateful_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let want = desired_replicas(object);
    let ready = object.count(&["status", "readyReplicas"]);
    if ready < want {
        return rolling_out("ready", ready, want);
    }
    let there = object.count(&["status", "replicas"]);
    if there > want {
        return Health::progressing("ScalingDown", format!("{there} replicas exist, {want} are desired"));
    }
    // Older API servers do not report this count.
    let available = object.number(&["status", "availableReplicas"]).unwrap_or(ready);
    if available < want {
        return rolling_out("available", available, want);
    }
    if let Some(health) = not_rolled_out(object, want) {
        return health;
    }
    Health::ready("Available", format!("{ready} of {want} replicas are ready"))
}

/// Returns a health if some pods of a StatefulSet are not of the update revision.
fn not_rolled_out(object: Object<'_>, want: i64) -> Option<Health> {
    if object.text(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return None;
    }
    let updated = object.count(&["status", "updatedReplicas"]);
    let partition = object.number(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let share = want.saturating_sub(partition.unwrap_or(0)).max(0);
    let revision = |field| object.text(&["status", field]).unwrap_or_default();
    let is_one = revision("currentRevision") == revision("updateRevision");
    if updated < share && !(is_one && partition.is_none()) {
        return Some(rolling_out("updated", updated, share));
    }
    let message = format!("{} is not the current revision yet", revision("updateRevision"));
    (partition.is_none() && !is_one).then(|| Health::progressing("RollingOut", message))
}

/// Applies to ReplicationControllers too.
pub(super) fn replica_set(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let want = desired_replicas(object);
    let there = object.count(&["status", "replicas"]);
    let available = object.count(&["status", "availableReplicas"]);
    if available < want {
        return replica_failure(object).unwrap_or_else(|| rolling_out("available", available, want));
    }
    if there > want {
        return Health::progressing("ScalingDown", format!("{there} replicas exist, {want} are desired"));
    }
    Health::ready("Available", format!("{available} of {want} replicas are available"))
}
