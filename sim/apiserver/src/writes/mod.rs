//! Committing changes: the store, the journal, and the controller tasks that follow.

pub(crate) mod commit;
pub(crate) mod namespace_defaults;
pub(crate) mod owners;
pub(crate) mod tracked;
pub(crate) mod triggers;
pub(crate) mod workload_triggers;
