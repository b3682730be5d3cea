//! Images and archives of the project: static binaries of the architecture of this machine.

mod archive;
mod binaries;
mod dist;
mod files;
mod images;
mod sbom;

pub use binaries::version;
pub use dist::make_archives;
pub use images::make_images;
