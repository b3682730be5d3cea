//! CEL rules with the libraries of Kubernetes, and Kubernetes quantities.
//!
//! Pure: [`Program::compile`] parses a rule and checks it against the types of its variables; [`Program::evaluate`] returns
//! its value, or an error with the message of the real API server. Rules are not trusted: their length, number of tokens,
//! nesting and evaluation steps are limited, and nothing panics.

mod budget;
mod check;
mod evaluate;
mod evaluation_error;
mod functions;
mod issue;
mod network;
mod node;
mod number;
mod parse;
mod pattern;
mod program;
pub mod quantity;
mod shape;
mod signatures;
pub mod time;
mod types;
mod value;

pub use budget::STEPS_MAX;
pub use evaluation_error::EvaluationError;
pub use issue::{Issue, Issues};
pub use pattern::{Pattern, PatternError};
pub use program::Program;
pub use quantity::Quantity;
pub use shape::{ListKind, ObjectShape, Shape, escape};
pub use types::Type;
pub use value::{Cel, Entries, Key, List, Text};
