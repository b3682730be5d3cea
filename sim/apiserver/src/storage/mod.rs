//! The store of objects, the journal of writes, and the source of generated values.

pub(crate) mod ids;
pub(crate) mod journal;
pub(crate) mod store;
