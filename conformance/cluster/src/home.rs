//! Directory for data that outlives a program: the cache of binaries, and the records of clusters started with `up`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Directory of this project in the user's cache directory.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// Uses this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Uses the directory below `$XDG_CACHE_HOME` or `~/.cache`. For `main` and for tests.
    pub fn from_env() -> Self {
        Self::from_variables(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    fn from_variables(cache: Option<OsString>, home: Option<OsString>) -> Self {
        let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute(cache).or_else(|| absolute(home).map(|home| home.join(".cache")));
        Self(cache.unwrap_or_else(std::env::temp_dir).join("sindri"))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Cache of the binaries of the control plane.
    pub fn control_plane(&self) -> PathBuf {
        self.0.join("controlplane")
    }

    /// Records of the clusters that were started with `up`.
    pub fn clusters(&self) -> PathBuf {
        self.0.join("clusters")
    }
}

/// Returns the project's directory.
pub(crate) fn project() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_xdg_cache_home_is_ignored_as_its_specification_demands() {
        let home = |cache: &str| Home::from_variables(Some(cache.into()), Some("/home/someone".into()));
        assert_eq!(home("/fast").path(), Path::new("/fast/sindri"));
        assert_eq!(home("fast").path(), Path::new("/home/someone/.cache/sindri"));
    }
}
