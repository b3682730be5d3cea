//! Pods.

use crate::health::Health;
use crate::object::Object;
use crate::pods;

pub(super) fn assess_pod(object: Object<'_>) -> Health {
    match object.text(&["status", "phase"]) {
        Some("Succeeded") => Health::ready("Completed", "every container succeeded"),
        Some("Running") if pods::is_ready(object) => Health::ready("Ready", ""),
        Some("Failed" | "Running" | "Pending") => pods::find_problem(object).into_health(),
        Some("Unknown") => Health::unknown("NodeLost", "its node does not report"),
        Some(_) | None => Health::progressing("NoPhase", "it has no phase yet"),
    }
}
