//! Reads and writes of single tables, without consequences for other tables.

pub(crate) mod keys;
pub(crate) mod revisions;
