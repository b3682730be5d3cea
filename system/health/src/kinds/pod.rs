//! A pod.

use crate::health::Health;
use crate::object::Object;
use crate::pods;

pub(super) fn pod(object: Object<'_>) -> Health {
    match object.text(&["status", "phase"]) {
        Some("Succeeded") => Health::ready("Completed", "every container ended well"),
        Some("Running") if pods::is_ready(object) => Health::ready("Ready", ""),
        Some("Failed" | "Running" | "Pending") => pods::trouble(object).health(),
        Some("Unknown") => Health::unknown("NodeLost", "nobody hears from its node"),
        Some(_) | None => Health::progressing("NoPhase", "the cluster has not looked at it yet"),
    }
}
