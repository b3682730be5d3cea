//! Reports of agents about their stacks, and the approvals that agents request.

pub(crate) mod approvals;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod named_events;
pub(crate) mod outcomes;
pub(crate) mod overview;
pub(crate) mod proposals;
pub(crate) mod status;
