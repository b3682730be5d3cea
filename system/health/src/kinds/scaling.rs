//! HorizontalPodAutoscalers and PodDisruptionBudgets.

use serde_json::Value;

use super::observed::{not_observed, not_yet_observed};
use crate::conditions::{Condition, ConditionStatus, Conditions};
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Annotation with the conditions in autoscaling/v1, whose status has none.
const CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Maximum length of that annotation: three conditions take less than a tenth of it.
const ANNOTATION_BYTES_MAX: usize = 16 * 1024;

pub(super) fn assess_autoscaler(object: Object<'_>) -> Health {
    if let Some(health) = not_observed(object) {
        return health;
    }
    let annotation = object.annotation(CONDITIONS_ANNOTATION).filter(|text| text.len() <= ANNOTATION_BYTES_MAX);
    let from_annotation: Vec<Value> = annotation.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let conditions: Vec<Condition<'_>> =
        object.conditions().chain(from_annotation.iter().filter_map(Condition::read)).collect();
    let find = |name: &str| conditions.iter().copied().find(|condition| condition.name == name);
    let Some(able) = find("AbleToScale") else {
        return Health::progressing("NotObserved", "its controller has not observed it yet");
    };
    match (able.status, find("ScalingActive")) {
        (ConditionStatus::False | ConditionStatus::Unknown, _) => {
            able.to_health(HealthState::Progressing, "NotAbleToScale")
        }
        // The target is scaled to zero, which disables autoscaling.
        (ConditionStatus::True, Some(active)) if active.reason == "ScalingDisabled" => {
            Health::ready("ScalingDisabled", active.message)
        }
        (ConditionStatus::True, Some(active)) if active.is_true() => assess_replicas(object),
        (ConditionStatus::True, Some(active)) => active.to_health(HealthState::Progressing, "ScalingNotActive"),
        (ConditionStatus::True, None) => Health::progressing("NotObserved", "it has no metrics yet"),
    }
}

fn assess_replicas(object: Object<'_>) -> Health {
    let (current, desired) =
        (object.count(&["status", "currentReplicas"]), object.count(&["status", "desiredReplicas"]));
    Health::ready("ScalingActive", format!("{current} replicas, {desired} desired"))
}

/// Ready as soon as its controller has counted the pods; the pods' health belongs to their owners.
pub(super) fn assess_disruption_budget(object: Object<'_>) -> Health {
    if let Some(health) = not_yet_observed(object) {
        return health;
    }
    let failed = object.condition("DisruptionAllowed").filter(|condition| condition.reason == "SyncFailed");
    if let Some(condition) = failed {
        return condition.to_health(HealthState::Progressing, "SyncFailed");
    }
    let (healthy, desired) = (object.count(&["status", "currentHealthy"]), object.count(&["status", "desiredHealthy"]));
    let allowed = object.count(&["status", "disruptionsAllowed"]);
    let message = format!("{healthy} healthy pods, {desired} required, {allowed} disruptions allowed");
    Health::ready("Counted", message)
}
