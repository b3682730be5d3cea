//! The agent's access key: out of the environment, or out of a file that not everybody can read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sindri_process::Config;
use thiserror::Error;

use super::settings::{PAK, PAK_FILE};

/// A file that is larger holds no key.
const FILE_BYTES_MAX: u64 = 4 * 1024;
/// What everybody on the machine may do with a file. Its group may read it: so a pod sees a mounted Secret.
const EVERYBODY: u32 = 0o007;

/// There is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Nobody said which.
    #[error("{0} is not set: say it with SINDRI__AGENT__PAK, or name a file that holds it with --pak-file", PAK.key)]
    Missing,
    /// The file cannot be read.
    #[error("the key file {path}: {source}")]
    File {
        /// Of the file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Anybody could have read it.
    #[error("the key file {path} is open to everybody (mode {mode:04o}): chmod 600 it")]
    Open {
        /// Of the file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// There is none in it.
    #[error("the key file {path} holds no key")]
    Empty {
        /// Of the file.
        path: String,
    },
}

/// The key that the settings say.
pub fn key(config: &Config) -> Result<String, KeyError> {
    match config.path(&PAK_FILE) {
        Some(path) => in_file(path),
        None => config.get(&PAK).map(str::to_owned).ok_or(KeyError::Missing),
    }
}

fn in_file(path: &Path) -> Result<String, KeyError> {
    let shown = path.display().to_string();
    let fault = |source| KeyError::File { path: shown.clone(), source };
    let file = File::open(path).map_err(fault)?;
    // Of the file that is open, whatever its name stands for by now.
    let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o7777;
    if mode & EVERYBODY != 0 {
        return Err(KeyError::Open { path: shown, mode });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(fault)?;
    match text.trim() {
        "" => Err(KeyError::Empty { path: shown }),
        key => Ok(key.to_owned()),
    }
}
