//! Columns of the objects that commands print.

mod admin;
mod agent;
mod context;
mod stack;

pub(crate) use context::ContextRow;
