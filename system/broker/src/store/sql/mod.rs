//! The verbs, once for both databases: a file per subject.
//!
//! Every verb that changes what is wanted of some agent first takes the next number of the one counter ([`shared::epoch::tick`]),
//! and so waits for every other that does: such changes happen one after another, and their numbers become visible in
//! their order.

pub(super) mod assignments;
pub(super) mod database;
pub(super) mod fleet;
pub(super) mod reports;
pub(super) mod shared;
pub(super) mod stacks;
pub(super) mod tables;
pub(super) mod webhooks;
