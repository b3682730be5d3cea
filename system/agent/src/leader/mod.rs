//! Leader election: one process of an agent acts at a time.

pub(crate) mod lease;
