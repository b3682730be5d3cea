//! Reads the scripts of all exchanges from a directory.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::script::{Script, ScriptError};

/// Directory of the scripts, below the project's directory.
pub const SCRIPTS: &str = "conformance/record/exchanges";
const EXTENSION: &str = "yaml";

/// Failure to read the scripts.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// A file or the directory cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A script is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Reads all scripts of the project, sorted by name.
pub fn read_scripts(root: &Path) -> Result<Vec<Script>, LibraryError> {
    let directory = root.join(SCRIPTS);
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| LibraryError::Unreadable { path, error }
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(unreadable(&directory))? {
        files.push(entry.map_err(unreadable(&directory))?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Script::parse(&name, &text)?)
    };
    files.into_iter().map(read).collect()
}
