//! One file per command.

pub(crate) mod admin;
pub(crate) mod agent;
mod agent_labels;
pub(crate) mod apply;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod completion;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod decision;
pub(crate) mod events;
pub(crate) mod generator;
pub(crate) mod history;
pub(crate) mod key;
mod labels;
pub(crate) mod login;
mod losses;
mod removal;
pub(crate) mod rollback;
pub(crate) mod stack;
mod stack_labels;
pub(crate) mod status;
pub(crate) mod suspension;
pub(crate) mod target;
pub(crate) mod version;
pub(crate) mod webhook;
pub(crate) mod whoami;
