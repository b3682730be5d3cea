//! The target state of the agent: polled from the broker, parsed, shared with the passes, and
//! copied to the cluster.

pub(crate) mod claims;
pub(crate) mod copy;
pub(crate) mod copy_saver;
pub(crate) mod instruction;
pub(crate) mod policy;
pub(crate) mod poller;
pub(crate) mod revision;
pub(crate) mod state;
