//! Columns of the objects that commands print.

mod admin;
mod agent;
mod audit;
mod context;
mod details;
mod generator;
mod key;
mod stack;
mod webhook;

pub(crate) use agent::AgentDetails;
pub(crate) use audit::AuditRow;
pub(crate) use context::ContextRow;
pub(crate) use generator::GeneratorDetails;
pub(crate) use stack::StackDetails;
