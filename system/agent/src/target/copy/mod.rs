//! Copy of the last target state, in Secrets of the agent's own namespace. An agent that starts while the broker cannot be
//! reached corrects drift from it, and deletes nothing.

#[cfg(test)]
pub(crate) mod fixtures;
mod layout;
mod record;
mod secrets;

pub use layout::{CopyChanges, CopyContent, CopyHeader, CopyLayout};
pub use record::StackCopy;
pub use secrets::{has_copy, is_copy_name, load_copy, read_layout, write_chunk};
