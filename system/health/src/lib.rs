//! Whether an object of Kubernetes is ready, and if not, why: as `kubectl rollout status` and `kubectl wait` would say.
//!
//! Pure: a live object and its pods go in as JSON, a word and a sentence come out. [`assess`] looks at the object alone,
//! [`explain`] adds what its pods say, [`summarise`] makes one answer of the many of a stack. Nothing here panics,
//! whatever an object looks like, and no value of a Secret is ever part of a message.

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

pub use assess::assess;
pub use explain::explain;
pub use health::{Health, HealthState, MESSAGE_CHARACTERS_MAX, REASON_CHARACTERS_MAX};
pub use rule::{READY_ANNOTATION, RULE_BYTES_MAX};
pub use selector::{PodSelector, pod_selector};
pub use summary::{
    AssessedObject, CONDITIONS_MAX, HealthSummary, OverallHealth, PodKey, RESOURCES_MAX, ResourceHealth, summarise,
};
