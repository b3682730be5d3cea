//! Agents, generators and their keys.

pub(crate) mod agents;
pub(crate) mod generators;
pub(crate) mod offline;
pub(crate) mod overview;
