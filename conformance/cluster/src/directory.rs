//! A directory that is removed with its owner, also when the owner is killed: a guard process removes it when its stdin is
//! closed.

use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::ClusterError;
use crate::owned_process::OwnedProcess;
use crate::provider::Options;

/// Only for the owner.
const MODE: u32 = 0o700;

/// A directory with a guard process.
pub(crate) struct GuardedDirectory {
    path: PathBuf,
    _guard: OwnedProcess,
}

impl GuardedDirectory {
    /// Creates the directory of the options, or one with a new name.
    pub(crate) fn new(options: &Options) -> Result<Self, ClusterError> {
        let path = choose_path(options)?;
        Self::at(&path).map_err(|error| ClusterError::from_io(&path, &error))
    }

    /// Starts the guard before it creates the directory, so that the directory always has one.
    fn at(path: &Path) -> io::Result<Self> {
        let mut command = OwnedProcess::guarded_command(OsStr::new("sleep"), &["infinity".into()], Some(path));
        let guard = OwnedProcess::start(&mut command)?;
        std::fs::DirBuilder::new().mode(MODE).create(path)?;
        Ok(Self { path: path.to_owned(), _guard: guard })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the path of the options, which must not exist yet, or a new one.
pub(crate) fn choose_path(options: &Options) -> Result<PathBuf, ClusterError> {
    let path = options.directory.clone().unwrap_or_else(unique_path);
    if path.exists() {
        return Err(ClusterError::Usage(format!("{} exists already: choose another directory", path.display())));
    }
    Ok(path)
}

/// Returns an unused path for temporary files.
fn unique_path() -> PathBuf {
    std::env::temp_dir().join(unique_name())
}

/// Returns a name that no other cluster has.
pub(crate) fn unique_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("sindri-cluster-{}-{random:016x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_with_its_owner_and_an_existing_one_is_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let existing = Options { directory: Some(parent.path().to_owned()), ..Options::default() };
        assert!(matches!(GuardedDirectory::new(&existing), Err(ClusterError::Usage(_))));
        let options = Options { directory: Some(parent.path().join("mine")), ..Options::default() };
        let directory = GuardedDirectory::new(&options).unwrap();
        std::fs::write(directory.path().join("file"), "").unwrap();
        drop(directory);
        assert!(!parent.path().join("mine").exists());
        assert!(parent.path().exists());
    }
}
