//! Every other kind, custom resources included, by the conventions that most controllers keep.

use super::not_observed;
use crate::conditions::Truth;
use crate::health::{Health, HealthState};
use crate::object::Object;

/// The conditions that say that all is well, the most telling first.
const GOOD: [&str; 2] = ["Ready", "Available"];

pub(super) fn other(object: Object<'_>) -> Health {
    if let Some(health) = not_observed(object) {
        return health;
    }
    let holds = |name| object.condition(name).filter(|condition| condition.is_true());
    if let Some(condition) = holds("Stalled") {
        return condition.health(HealthState::Failing, "Stalled");
    }
    if let Some(condition) = holds("Reconciling") {
        return condition.health(HealthState::Progressing, "Reconciling");
    }
    let Some(condition) = GOOD.iter().find_map(|name| object.condition(name)) else {
        return if object.has_status() { Health::ready("NoCondition", "") } else { Health::ready("Exists", "") };
    };
    match condition.truth {
        Truth::True => Health::new(HealthState::Ready, condition.reason, condition.message),
        Truth::False | Truth::Unknown => condition.health(HealthState::Progressing, "NotReady"),
    }
}
