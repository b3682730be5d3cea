//! Parts of the broker process: settings, files, and limits of the operating system.

pub mod descriptors;
pub mod key;
pub mod pages;
pub mod settings;
pub mod tls_files;
