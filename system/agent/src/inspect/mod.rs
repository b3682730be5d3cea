//! Read-only commands: preview of the next passes, and objects that belong to no stack.

mod orphans;
mod preview;

pub use orphans::list_orphans;
pub use preview::preview_passes;
