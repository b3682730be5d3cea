//! The third step of a pass: carries out a plan.

mod backoff;
mod delete;
mod executor;
mod namespaces;
mod replace;
mod write;

pub use executor::{ActError, Executor};
