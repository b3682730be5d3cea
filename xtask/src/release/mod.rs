//! Images and archives of the project: static binaries of the architecture of this machine.

mod archive;
mod binaries;
mod dist;
mod files;
mod images;
mod licences;
mod sbom;
mod shipped_crates;

pub use binaries::version;
pub use dist::make_archives;
pub use images::make_images;
