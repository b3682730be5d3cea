//! The third step of a pass: executes a plan.

mod backoff;
mod delete;
mod executor;
mod isolate;
mod namespaces;
mod once;
mod recheck;
mod replace;
mod result;
mod write;

pub use executor::Executor;
pub use result::{ActError, DeleteError};
pub use write::is_explained_by_earlier_write;
