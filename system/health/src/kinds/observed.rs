//! Generations that controllers have not observed yet.

use crate::health::Health;
use crate::object::Object;

/// Returns a health if the controller has not yet observed the newest generation. `None` if it has, or if it does not
/// record the observed generation.
pub(super) fn not_observed(object: Object<'_>) -> Option<Health> {
    let generation = object.number(&["metadata", "generation"])?;
    let observed = object.number(&["status", "observedGeneration"])?;
    let message = format!("generation {generation} is not observed yet, only {observed}");
    (observed < generation).then(|| Health::progressing("GenerationNotObserved", message))
}

/// Like [`not_observed`], for kinds whose controllers always record the observed generation.
pub(super) fn not_yet_observed(object: Object<'_>) -> Option<Health> {
    if object.count(&["status", "observedGeneration"]) == 0 {
        return Some(Health::progressing("NotObserved", "its controller has not observed it yet"));
    }
    not_observed(object)
}
