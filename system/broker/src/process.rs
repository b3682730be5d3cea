//! What the broker's process owns: its settings, files, logs and signals.

pub mod config;
pub mod descriptors;
pub mod flags;
pub mod key;
pub mod logs;
pub mod pages;
pub mod settings;
pub mod signals;
pub mod tls_files;
