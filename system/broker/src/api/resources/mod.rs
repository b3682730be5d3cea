//! The handlers, one file per noun of the API.

pub(crate) mod admins;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod events;
pub(crate) mod fleet;
pub(crate) mod generators;
pub(crate) mod health_reports;
pub(crate) mod keys;
pub(crate) mod labels;
mod owner_filter;
pub(crate) mod policies;
pub(crate) mod poll;
pub(crate) mod probes;
mod repeated_delete;
pub(crate) mod revisions;
mod stack_access;
mod stack_state;
pub(crate) mod stack_status;
pub(crate) mod stacks;
pub(crate) mod target_state;
mod target_state_body;
pub(crate) mod targets;
mod validation;
pub(crate) mod webhook_deliveries;
mod webhook_validation;
pub(crate) mod webhooks;
