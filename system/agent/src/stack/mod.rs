//! Passes of stacks, and the reports about them.

pub(crate) mod conditions;
pub(crate) mod drift;
pub(crate) mod health;
pub(crate) mod outcome;
pub(crate) mod reconcile;
pub(crate) mod worker;
