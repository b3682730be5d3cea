//! Passes of stacks in order, and the reports about them: outcome, conditions, health.

pub(crate) mod conditions;
mod drift;
pub(crate) mod health;
pub(crate) mod outcome;
pub(crate) mod reconciler;
mod state;
pub(crate) mod worker;
