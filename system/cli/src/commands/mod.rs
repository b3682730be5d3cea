//! One file per command.

pub(crate) mod admin;
pub(crate) mod agent;
pub(crate) mod apply;
pub(crate) mod approvals;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod events;
pub(crate) mod login;
pub(crate) mod stack;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod whoami;
