//! What is shipped: static binaries of this machine's architecture, as container images and as archives.

mod archive;
mod binaries;
mod dist;
mod files;
mod images;
mod sbom;

pub use dist::make_archives;
pub use images::make_images;
