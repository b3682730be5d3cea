//! Environments in which a scenario runs: the simulated world, or real processes on real ports, which the conformance
//! suite implements.

mod error;
mod interface;
mod operator_call;
mod registration;
mod simulated;
mod write_counts;

pub use error::StepError;
pub use interface::{ClusterCall, Environment, HostAction};
pub use operator_call::call_broker;
pub use registration::{RegisteredAgent, register_agent, register_agents};
pub use simulated::{Options, SimulatedWorld};
pub use write_counts::WriteCounts;

pub use crate::hosts::OperatorJob;
