//! `build`: builds the control plane, unless it is in the cache.

use sindri_cluster::binaries::Binaries;
use sindri_cluster::program::print_line;
use sindri_cluster::{ClusterError, Home, Stop, Version};

pub fn build(home: &Home, version: Version, stop: &Stop) -> Result<(), ClusterError> {
    let binaries = Binaries::prepare(home, version, stop)?;
    let directories: Vec<String> = binaries.directories.iter().map(|path| path.display().to_string()).collect();
    print_line(format!("Kubernetes {} is built: {}", version.release(), directories.join(", ")));
    Ok(())
}
