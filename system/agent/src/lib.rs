//! The agent: one per cluster. It polls the broker and keeps the cluster at the declared state.
//!
//! One pass of one stack is four steps, a module each: observe, plan (pure), act, report. Entropy, the
//! client of the broker and the client of the cluster are handed in.

mod agent;
pub mod cluster;
mod inspect;
mod leader;
mod pass;
mod pass_queue;
mod settings;
mod stack;
mod target;
mod telemetry;

pub use agent::{Agent, AgentError};
pub use cluster::ignore::Ignored;
pub use cluster::ownership::{CHECKSUM_ANNOTATION, Marks, OBJECT_ANNOTATION, STACK_ANNOTATION, STACK_LABEL};
pub use cluster::retry::RetryPolicy;
pub use leader::lease::LEASE_NAME;
pub use pass::inventory::{INVENTORY_LABEL, INVENTORY_NAMESPACE};
pub use pass::observe::REPLACE_ANNOTATION;
pub use settings::{Brake, DriftMode, Settings};
pub use telemetry::metrics::{Metrics, PassOutcome};
pub use telemetry::probes::Probes;
pub use telemetry::readiness::{Missing, Readiness};
