//! What the agent's process owns: its table of settings, and what it makes of them.

pub mod handed;
pub mod key;
pub mod settings;
