//! Where things are that outlive a program: the cache of binaries, and what runs because someone said `up`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A directory of the user.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// A home at a chosen place.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The home of the user who runs this: below `$XDG_CACHE_HOME`, or `~/.cache`. For `main` and for tests.
    pub fn of_user() -> Self {
        Self::among(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    fn among(cache: Option<OsString>, home: Option<OsString>) -> Self {
        let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute(cache).or_else(|| absolute(home).map(|home| home.join(".cache")));
        Self(cache.unwrap_or_else(std::env::temp_dir).join("sindri"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The cache of what was built.
    pub fn control_plane(&self) -> PathBuf {
        self.0.join("controlplane")
    }

    /// What runs because someone said `up`.
    pub fn clusters(&self) -> PathBuf {
        self.0.join("clusters")
    }
}

/// The project's directory.
pub(crate) fn project() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_cache_directory_is_ignored_as_its_specification_says() {
        let home = |cache: &str| Home::among(Some(cache.into()), Some("/home/someone".into()));
        assert_eq!(home("/fast").path(), Path::new("/fast/sindri"));
        assert_eq!(home("fast").path(), Path::new("/home/someone/.cache/sindri"));
    }
}
