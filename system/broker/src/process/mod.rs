//! Parts of the broker process: settings, commands, files, and limits of the operating system.

pub mod commands;
pub mod database;
pub mod descriptors;
pub mod key;
pub mod oidc;
pub mod pages;
pub mod reload;
pub mod settings;
pub mod start_error;
pub mod system;
pub mod tls_files;
pub mod webhooks;
