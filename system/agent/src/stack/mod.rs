//! Passes of stacks in order, and the reports about them: outcome, conditions, health.

pub(crate) mod conditions;
pub(crate) mod dependencies;
mod drift;
pub(crate) mod health;
pub(crate) mod object_events;
pub(crate) mod outcome;
pub(crate) mod reconciler;
pub(crate) mod report_session;
mod state;
pub(crate) mod worker;
