//! Health of Kubernetes objects: readiness as `kubectl rollout status` and `kubectl wait` determine it, with a reason.
//!
//! Pure: input are a live object and its pods as JSON. [`assess`] reads the object alone, [`explain`] adds the reason of
//! its worst pod, [`summarize`] aggregates the objects of a stack. Fields of an unexpected type count as missing, so that
//! no object causes a panic. Messages never contain values of a Secret.

mod assess;
mod conditions;
mod explain;
mod health;
mod kinds;
mod object;
mod pods;
mod rule;
mod selector;
mod summary;

pub use assess::{assess, assess_before_deletion};
pub use explain::explain;
pub use health::{Health, HealthState, MESSAGE_CHARACTERS_MAX, REASON_CHARACTERS_MAX};
pub use rule::{READY_ANNOTATION, RULE_BYTES_MAX};
pub use selector::{PodSelector, pod_selector};
pub use summary::{
    AssessedObject, CONDITIONS_MAX, HealthSummary, OverallHealth, PodKey, RESOURCES_MAX, ResourceHealth, summarize,
};
