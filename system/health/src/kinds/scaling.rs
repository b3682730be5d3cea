//! HorizontalPodAutoscalers and PodDisruptionBudgets.

use serde_json::Value;

use super::{not_observed, not_yet_observed};
use crate::conditions::{Condition, ConditionTruth, Conditions};
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Annotation with the conditions in autoscaling/v1, whose status has none.
const CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Maximum length of that annotation: three conditions take less than a tenth of it.
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
        return Health::progressing("NotObserved", "its controller has not observed it yet");
    };
    match (able.truth, named("ScalingActive")) {
        (ConditionTruth::False | ConditionTruth::Unknown, _) => {
            able.to_health(HealthState::Progressing, "NotAbleToScale")
        }
        // The target is scaled to zero, which disables autoscaling.
        (ConditionTruth::True, Some(active)) if active.reason == "ScalingDisabled" => {
            Health::ready("ScalingDisabled", active.message)
        }
        (ConditionTruth::True, Some(active)) if active.is_true() => scaled(object),
        (ConditionTruth::True, Some(active)) => active.to_health(HealthState::Progressing, "ScalingNotActive"),
        (ConditionTruth::True, None) => Health::progressing("NotObserved", "it has not measured anything yet"),
    }
}

fn scaled(object: Object<'_>) -> Health {
    let (have, want) = (object.count(&["status", "currentReplicas"]), object.count(&["status", "desiredReplicas"]));
    Health::ready("ScalingActive", format!("{have} replicas, {want} desired"))
}

/// Ready as soon as its controller has counted the pods; the pods' health belongs to their owners.
pub(super) fn disruption_budget(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let failed = object.condition("DisruptionAllowed").filter(|condition| condition.reason == "SyncFailed");
    if let Some(condition) = failed {
        return condition.to_health(HealthState::Progressing, "SyncFailed");
    }
    let (healthy, want) = (object.count(&["status", "currentHealthy"]), object.count(&["status", "desiredHealthy"]));
    let allowed = object.count(&["status", "disruptionsAllowed"]);
    let message = format!("{healthy} healthy pods, {want} must stay, {allowed} disruptions are allowed");
    Health::ready("Counted", message)
}
