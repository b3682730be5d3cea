//! The target state of the agent, as the broker last returned it.

pub(crate) mod claims;
pub(crate) mod policy;
pub(crate) mod poller;
pub(crate) mod revision;
