//! What the broker's process owns: its table of settings, its files, and what it asks of the system.

pub mod descriptors;
pub mod key;
pub mod pages;
pub mod settings;
pub mod tls_files;
