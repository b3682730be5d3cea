//! Every other kind, custom resources included, by the usual conventions for conditions.

use super::observed::not_observed;
use crate::conditions::{ConditionStatus, Conditions};
use crate::health::{Health, HealthState};
use crate::object::Object;

/// Conditions that mean readiness, in order of precedence.
const READINESS: [&str; 2] = ["Ready", "Available"];

pub(super) fn assess_other(object: Object<'_>) -> Health {
    if let Some(health) = not_observed(object) {
        return health;
    }
    let find_true = |name| object.condition(name).filter(|condition| condition.is_true());
    if let Some(condition) = find_true("Stalled") {
        return condition.to_health(HealthState::Failing, "Stalled");
    }
    if let Some(condition) = find_true("Reconciling") {
        return condition.to_health(HealthState::Progressing, "Reconciling");
    }
    let Some(condition) = READINESS.iter().find_map(|name| object.condition(name)) else {
        return if object.has_status() { Health::ready("NoCondition", "") } else { Health::ready("Exists", "") };
    };
    match condition.status {
        ConditionStatus::True => Health::new(HealthState::Ready, condition.reason, condition.message),
        ConditionStatus::False | ConditionStatus::Unknown => condition.to_health(HealthState::Progressing, "NotReady"),
    }
}
