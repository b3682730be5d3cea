//! The agent: one per cluster. It polls the broker and keeps the cluster at the declared state.
//!
//! One pass of one stack is four steps, a module each: observe, plan (pure), act, report. Entropy, the
//! client of the broker and the client of the cluster are handed in.

mod act;
mod agent;
mod approval;
mod at_once;
mod claims;
pub mod cluster;
mod conditions;
mod drift;
mod health;
mod holding;
mod ignore;
mod inspect;
mod inventory;
mod lease;
mod marks;
mod metrics;
mod observe;
mod pass;
mod plan;
mod policy;
mod poll;
mod probes;
mod queue;
mod readiness;
mod report;
mod retry;
mod revision;
mod round;
mod settings;
mod stacks;
mod stop;
mod watches;

pub use agent::{Agent, AgentError};
pub use ignore::Ignored;
pub use inventory::{INVENTORY_LABEL, INVENTORY_NAMESPACE};
pub use lease::LEASE_NAME;
pub use marks::{CHECKSUM_ANNOTATION, Marks, OBJECT_ANNOTATION, STACK_ANNOTATION, STACK_LABEL};
pub use metrics::{Metrics, PassOutcome};
pub use observe::REPLACE_ANNOTATION;
pub use probes::Probes;
pub use readiness::{Missing, Readiness};
pub use retry::RetryPolicy;
pub use settings::{Brake, DriftMode, Settings};
