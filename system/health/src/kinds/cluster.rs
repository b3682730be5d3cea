//! Namespaces, CustomResourceDefinitions and APIServices.

use crate::conditions::{ConditionStatus, Conditions};
use crate::health::{Health, HealthState};
use crate::object::Object;

pub(super) fn assess_namespace(object: Object<'_>) -> Health {
    match object.text(&["status", "phase"]) {
        Some("Active") => Health::ready("Active", ""),
        Some("Terminating") => Health::progressing("Terminating", "being deleted"),
        Some(_) | None => Health::progressing("NoPhase", "it has no phase yet"),
    }
}

/// Custom resources can be written when the names are accepted and the CRD is established.
pub(super) fn assess_custom_resource_definition(object: Object<'_>) -> Health {
    let (names, established) = (object.condition("NamesAccepted"), object.condition("Established"));
    if let Some(condition) = names.filter(|condition| condition.is_false()) {
        return condition.to_health(HealthState::Failing, "NamesNotAccepted");
    }
    match established {
        Some(condition) if condition.is_true() && names.is_some_and(|names| names.is_true()) => {
            Health::ready("Established", "")
        }
        // `Installing` is a short state after the names are accepted.
        Some(condition) if condition.is_false() && condition.reason != "Installing" && names.is_some() => {
            condition.to_health(HealthState::Failing, "NotEstablished")
        }
        Some(condition) => condition.to_health(HealthState::Progressing, "NotEstablished"),
        None => Health::progressing("NotEstablished", "the API server has not observed it yet"),
    }
}

pub(super) fn assess_api_service(object: Object<'_>) -> Health {
    let Some(condition) = object.condition("Available") else {
        return Health::progressing("NotObserved", "the API server has not observed it yet");
    };
    match condition.status {
        ConditionStatus::True => Health::ready("Available", ""),
        ConditionStatus::False | ConditionStatus::Unknown => {
            condition.to_health(HealthState::Progressing, "NotAvailable")
        }
    }
}
