//! Oracles: properties that every run must have. They judge by the instructions of the operator and by the journals of
//! the API servers, never by what the system reports about itself.

mod event_oracle;
mod violation;
mod write_oracle;

pub use event_oracle::{judge_successes, judge_texts};
pub use violation::Violation;
pub use write_oracle::{NamespaceRollback, SuspectDeletion, WriteOracle};
