//! Leader election: only one process of an agent acts at a time.

pub(crate) mod election;
pub(crate) mod lease;
