//! The target state of the agent: polled from the broker, parsed, and shared with the passes.

pub(crate) mod claims;
pub(crate) mod policy;
pub(crate) mod poller;
pub(crate) mod revision;
pub(crate) mod state;
