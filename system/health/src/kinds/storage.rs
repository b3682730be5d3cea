//! PersistentVolumeClaims and PersistentVolumes.

use crate::health::Health;
use crate::object::Object;

/// A claim that waits for its first consumer is pending like any other: its status does not distinguish the two.
pub(super) fn assess_claim(object: Object<'_>) -> Health {
    match object.text(&["status", "phase"]) {
        Some("Bound") => Health::ready("Bound", ""),
        Some("Lost") => Health::failing("Lost", "the volume that it was bound to is gone"),
        Some("Pending") => Health::progressing("Pending", "no volume is bound to it yet"),
        Some(_) | None => Health::progressing("NoPhase", "it has no phase yet"),
    }
}

pub(super) fn assess_volume(object: Object<'_>) -> Health {
    let message = object.text(&["status", "message"]).unwrap_or_default();
    match object.text(&["status", "phase"]) {
        Some(phase @ ("Available" | "Bound" | "Released")) => Health::ready(phase, message),
        Some("Failed") => Health::failing(object.text(&["status", "reason"]).unwrap_or("Failed"), message),
        Some(_) | None => Health::progressing("Pending", message),
    }
}
