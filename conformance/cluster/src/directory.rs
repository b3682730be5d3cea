//! A directory that goes with its owner, also when the owner is killed: a guard holds it, and removes it when its
//! leash is cut.

use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::ClusterError;
use crate::leashed::Leashed;
use crate::provider::Options;

/// For the owner only.
const MODE: u32 = 0o700;

/// A directory with a guard.
pub(crate) struct GuardedDirectory {
    path: PathBuf,
    _guard: Leashed,
}

impl GuardedDirectory {
    /// Makes the directory that is wanted, or a fresh one.
    pub(crate) fn new(options: &Options) -> Result<Self, ClusterError> {
        let path = wanted_path(options)?;
        Self::at(&path).map_err(|error| ClusterError::file(&path, &error))
    }

    /// The guard is there before the directory is, so that it is never without one.
    fn at(path: &Path) -> io::Result<Self> {
        let mut command = Leashed::guarded(OsStr::new("sleep"), &["infinity".into()], Some(path));
        let guard = Leashed::start(&mut command)?;
        std::fs::DirBuilder::new().mode(MODE).create(path)?;
        Ok(Self { path: path.to_owned(), _guard: guard })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The directory that is wanted, which must not be there yet, or a fresh one.
pub(crate) fn wanted_path(options: &Options) -> Result<PathBuf, ClusterError> {
    let path = options.directory.clone().unwrap_or_else(fresh_path);
    if path.exists() {
        return Err(ClusterError::Mistake(format!("{} is there already: choose another directory", path.display())));
    }
    Ok(path)
}

/// A path that nobody else has.
fn fresh_path() -> PathBuf {
    std::env::temp_dir().join(fresh_name())
}

/// A name that nobody else has.
pub(crate) fn fresh_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("sindri-cluster-{}-{random:016x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_owner_and_one_that_was_there_is_refused() {
        let there = tempfile::tempdir().unwrap();
        let refused = Options { directory: Some(there.path().to_owned()), ..Options::default() };
        assert!(matches!(GuardedDirectory::new(&refused), Err(ClusterError::Mistake(_))));
        let options = Options { directory: Some(there.path().join("mine")), ..Options::default() };
        let directory = GuardedDirectory::new(&options).unwrap();
        std::fs::write(directory.path().join("file"), "").unwrap();
        drop(directory);
        assert!(!there.path().join("mine").exists());
        assert!(there.path().exists());
    }
}
