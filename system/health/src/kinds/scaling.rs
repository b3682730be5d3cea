//! What watches over the pods of others: autoscalers and disruption budgets.

use serde_json::Value;

use super::{not_observed, not_yet_observed};
use crate::conditions::{Condition, Truth};
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Where version 1 of the kind, which has no conditions, keeps them.
const CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// The longest annotation that is read: three conditions take less than a tenth of it.
const ANNOTATION_BYTES_MAX: usize = 16 * 1024;

pub(super) fn autoscaler(object: Object<'_>) -> Health {
    if let Some(health) = not_observed(object) {
        return health;
    }
    let kept = object.annotation(CONDITIONS_ANNOTATION).filter(|text| text.len() <= ANNOTATION_BYTES_MAX);
    let kept: Vec<Value> = kept.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let conditions: Vec<Condition<'_>> = object.conditions().chain(kept.iter().filter_map(Condition::read)).collect();
    let named = |name: &str| conditions.iter().copied().find(|condition| condition.name == name);
    let Some(able) = named("AbleToScale") else {
        return Health::progressing("NotObserved", "its controller has not looked at it yet");
    };
    match (able.truth, named("ScalingActive")) {
        (Truth::False | Truth::Unknown, _) => able.health(HealthState::Progressing, "NotAbleToScale"),
        // Somebody scaled the target to zero, and it is left alone.
        (Truth::True, Some(active)) if active.reason == "ScalingDisabled" => {
            Health::ready("ScalingDisabled", active.message)
        }
        (Truth::True, Some(active)) if active.is_true() => scaled(object),
        (Truth::True, Some(active)) => active.health(HealthState::Progressing, "ScalingNotActive"),
        (Truth::True, None) => Health::progressing("NotObserved", "it has not measured anything yet"),
    }
}

fn scaled(object: Object<'_>) -> Health {
    let (have, want) = (object.count(&["status", "currentReplicas"]), object.count(&["status", "desiredReplicas"]));
    Health::ready("ScalingActive", format!("{have} replicas, {want} desired"))
}

/// It does its work as soon as it has counted: how many pods are healthy is the concern of those who own them.
pub(super) fn disruption_budget(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let failed = object.condition("DisruptionAllowed").filter(|condition| condition.reason == "SyncFailed");
    if let Some(condition) = failed {
        return condition.health(HealthState::Progressing, "SyncFailed");
    }
    let (healthy, want) = (object.count(&["status", "currentHealthy"]), object.count(&["status", "desiredHealthy"]));
    let allowed = object.count(&["status", "disruptionsAllowed"]);
    let message = format!("{healthy} healthy pods, {want} must stay, {allowed} disruptions are allowed");
    Health::ready("Counted", message)
}
