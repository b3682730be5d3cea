//! Reads and writes of single tables, without consequences for other tables.

pub(crate) mod admins;
pub(crate) mod agents;
pub(crate) mod generators;
pub(crate) mod keys;
pub(crate) mod registrations;
pub(crate) mod revisions;
pub(crate) mod stacks;
