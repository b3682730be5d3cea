//! Rules in CEL as Kubernetes has them, and the amounts that they and the API speak of.
//!
//! Pure: a text goes in and is read and checked against what is known about the types of its names
//! ([`Program::compile`]); values go in and one comes out, or the words of the real API server about why there is none
//! ([`Program::evaluate`]). Whoever may write a rule is not trusted: a rule is bounded in length, in parts and in depth,
//! and its evaluation in steps. Nothing panics, nothing depends on anything but what goes in.

mod budget;
mod check;
mod evaluate;
mod failure;
mod functions;
mod issue;
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
pub use failure::Failure;
pub use issue::{Issue, Issues};
pub use pattern::{Pattern, PatternError};
pub use program::Program;
pub use quantity::Quantity;
pub use shape::{ListKind, ObjectShape, Shape, escape};
pub use types::Type;
pub use value::{Cel, Entries, Key, List, Text};
