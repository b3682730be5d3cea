//! The agent's process: its table of settings, and the values built from them.

pub mod access_key;
pub mod settings;
pub mod setup;
