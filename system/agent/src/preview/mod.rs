//! Preview of a pass: its plan, with the fields that it would change. Reads and dry runs only.

mod changes;
mod diff;
mod stack;

pub use stack::{StackPreview, preview_stack};
