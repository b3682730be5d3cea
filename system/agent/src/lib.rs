//! The agent: one per cluster. It polls the broker and keeps the cluster at the declared state.
//!
//! One pass of one stack has four steps: observe, plan (pure), act, report. The clock, entropy, the client of the broker and
//! the client of the cluster are passed in.

mod agent;
pub mod cluster;
mod inspect;
mod leader;
mod panics;
mod pass;
mod pass_queue;
mod preview;
mod proposals;
mod settings;
mod stack;
mod target;
mod telemetry;

pub use agent::{Agent, AgentError};
pub use cluster::namespaces::AGENT_NAMESPACE;
pub use cluster::ownership::{
    CHECKSUM_ANNOTATION, OBJECT_ANNOTATION, Ownership, PRUNE_ANNOTATION, STACK_ANNOTATION, STACK_LABEL,
};
pub use cluster::{Limits, RetryPolicy};
pub use inspect::{list_orphans, preview_passes};
pub use leader::lease::LEASE_NAME;
pub use pass::inventory::INVENTORY_LABEL;
pub use pass::resolve::{APPLY_ANNOTATION, REPLACE_ANNOTATION};
pub use settings::{Brake, Settings};
pub use telemetry::metrics::{Metrics, PassOutcome};
pub use telemetry::probes::Probes;
pub use telemetry::readiness::{NotReadyReason, Readiness};
