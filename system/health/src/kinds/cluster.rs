//! What belongs to a cluster as a whole: namespaces and what extends its API.

use crate::conditions::Truth;
use crate::health::{Health, HealthState};
use crate::object::Object;

pub(super) fn namespace(object: Object<'_>) -> Health {
    match object.text(&["status", "phase"]) {
        Some("Active") => Health::ready("Active", ""),
        Some("Terminating") => Health::progressing("Terminating", "being deleted"),
        Some(_) | None => Health::progressing("NoPhase", "the cluster has not looked at it yet"),
    }
}

/// Its instances can be written when its names are accepted and it is served.
pub(super) fn definition(object: Object<'_>) -> Health {
    let (names, established) = (object.condition("NamesAccepted"), object.condition("Established"));
    if let Some(condition) = names.filter(|condition| condition.is_false()) {
        return condition.health(HealthState::Failing, "NamesNotAccepted");
    }
    match established {
        Some(condition) if condition.is_true() && names.is_some_and(|names| names.is_true()) => {
            Health::ready("Established", "")
        }
        // It is being installed for a moment after its names were accepted.
        Some(condition) if condition.is_false() && condition.reason != "Installing" && names.is_some() => {
            condition.health(HealthState::Failing, "NotEstablished")
        }
        Some(condition) => condition.health(HealthState::Progressing, "NotEstablished"),
        None => Health::progressing("NotEstablished", "the cluster has not looked at it yet"),
    }
}

pub(super) fn api_service(object: Object<'_>) -> Health {
    let Some(condition) = object.condition("Available") else {
        return Health::progressing("NotObserved", "the cluster has not looked at it yet");
    };
    match condition.truth {
        Truth::True => Health::ready("Available", ""),
        Truth::False | Truth::Unknown => condition.health(HealthState::Progressing, "NotAvailable"),
    }
}
