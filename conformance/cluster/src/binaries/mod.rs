//! The binaries of the control plane: built once from pinned modules into a cache.
//!
//! The name of a cache entry contains a checksum of its sources, so that nothing is overwritten: another version of Go or a changed
//! module is another entry. An entry is complete when it appears, by a rename. A build holds a lock.

mod build;
mod component;
mod go;
mod manifest;
mod progress;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::ClusterError;
use crate::home::Home;
use crate::stop::Stop;
use crate::version::Version;

pub use build::Entry;
use component::Component;
use go::Go;
pub use manifest::Manifest;

/// Paths of the binaries of one control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// Program that supervises the others.
    pub plane: PathBuf,
    /// Directories of the binaries.
    pub directories: Vec<PathBuf>,
    /// Checksum of all sources, flags and the compiler.
    pub key: String,
    /// Paths of all binaries.
    pub programs: Vec<PathBuf>,
}

impl Binaries {
    /// Finds the binaries of a version, and builds what is missing.
    pub fn prepare(home: &Home, version: Version, stop: &Stop) -> Result<Self, ClusterError> {
        let go = Go::find()?;
        let components = [Component::Plane, Component::Kubernetes(version), Component::Kwok];
        let entries = components.map(|component| Entry::locate(component, home, &go));
        let entries = entries.into_iter().collect::<Result<Vec<Entry>, _>>()?;
        for entry in &entries {
            entry.prepare(&go, stop)?;
        }
        let directories: Vec<PathBuf> = entries.iter().map(|entry| entry.path().to_owned()).collect();
        let programs: Vec<PathBuf> = entries.iter().flat_map(Entry::programs).collect();
        let keys: Vec<&str> = entries.iter().map(Entry::key).collect();
        let plane = programs.first().cloned().unwrap_or_default();
        Ok(Self { plane, directories, key: keys.join("-"), programs })
    }

    /// Returns the directories as one argument, separated by colons.
    pub fn search_path(&self) -> OsString {
        std::env::join_paths(&self.directories).unwrap_or_default()
    }
}
