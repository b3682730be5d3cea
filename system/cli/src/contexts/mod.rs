//! Contexts: brokers with their keys, in one file of the user.

mod context;
mod file;
mod store;

pub(crate) use context::{Context, Secret, check_name};
pub(crate) use file::ContextFile;
pub(crate) use store::ContextStore;
