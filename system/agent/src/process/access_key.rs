//! Access key of the agent: from the environment, or from a file that other users cannot read.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sindri_client::Client;
use sindri_process::Config;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::settings::{PAK, PAK_FILE};

/// Number of bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 4 * 1024;
/// Time after which a read that has not ended is logged.
const READ_MAX: Duration = Duration::from_secs(10);
/// Time between two reads of a file that may be being written.
const REREAD_AFTER: Duration = Duration::from_millis(500);
/// Permission bits of other users. The group may read the file, because that is how a pod sees a mounted Secret.
const OTHER_USERS: u32 = 0o007;

/// Reason why there is no usable key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Neither setting is set.
    #[error("{0} is not set: set it with SINDRI__AGENT__PAK, or name a file that holds it with --pak-file", PAK.key)]
    Missing,
    /// The file cannot be read.
    #[error("the key file {path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// Other users can access the file.
    #[error("the key file {path} is accessible to other users (mode {mode:04o}): run chmod 600 on it")]
    Open {
        /// Path of the file.
        path: String,
        /// Permissions of the file.
        mode: u32,
    },
    /// The file is empty.
    #[error("the key file {path} holds no key")]
    Empty {
        /// Path of the file.
        path: String,
    },
}

/// Reads the key.
pub fn read_key(config: &Config) -> Result<String, KeyError> {
    match config.path(&PAK_FILE) {
        Some(path) => read_file(path),
        None => config.get(&PAK).map(str::to_owned).ok_or(KeyError::Missing),
    }
}

/// Key file that is read again while the agent runs.
pub struct KeyFile {
    /// Path of the file; `None` if the key is from the environment.
    path: Option<PathBuf>,
    broker: Client,
    interval: Duration,
}

impl KeyFile {
    /// Returns the key file of the settings, whose key `broker` uses.
    pub fn new(config: &Config, broker: Client, interval: Duration) -> Self {
        Self { path: config.path(&PAK_FILE).map(Path::to_owned), broker, interval }
    }

    /// Reads the file in each interval, and lets the client use another key.
    pub async fn watch(&self) -> Infallible {
        let Some(path) = &self.path else { return std::future::pending().await };
        let mut problem = None;
        loop {
            sleep(self.interval).await;
            let key = read_complete_file(path).await;
            match key.and_then(|key| self.broker.replace_key(&key).map_err(|error| error.to_string())) {
                Ok(is_new) => {
                    problem = None;
                    if is_new {
                        tracing::info!("the key file {} has another key, which is used from now on", path.display());
                    }
                }
                // Once, and not in each interval.
                Err(error) if problem.as_ref() != Some(&error) => {
                    tracing::warn!("the key stays as it is: {error}");
                    problem = Some(error);
                }
                Err(_) => {}
            }
        }
    }
}

/// Reads the file until two reads in a row give the same key: one that is being written may end anywhere.
async fn read_complete_file(path: &Path) -> Result<String, String> {
    let mut key = read_on_other_thread(path).await?;
    loop {
        sleep(REREAD_AFTER).await;
        let again = read_on_other_thread(path).await?;
        if again == key {
            return Ok(key);
        }
        key = again;
    }
}

/// Reads the file, without holding up everything else while its file system does not respond. One thread waits for it at most.
#[expect(clippy::disallowed_methods, reason = "simulated agents have no key file")]
async fn read_on_other_thread(path: &Path) -> Result<String, String> {
    let owned = path.to_owned();
    let mut read = tokio::task::spawn_blocking(move || {
        // To open a pipe would wait for its writer.
        if owned.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(format!("the key file {} is not a regular file", owned.display()));
        }
        read_file(&owned).map_err(|error| error.to_string())
    });
    match timeout(READ_MAX, &mut read).await {
        Ok(key) => key.map_err(|error| error.to_string())?,
        Err(_) => {
            tracing::warn!("the key file {} cannot be read within {} s", path.display(), READ_MAX.as_secs());
            read.await.map_err(|error| error.to_string())?
        }
    }
}

fn read_file(path: &Path) -> Result<String, KeyError> {
    let path_text = path.display().to_string();
    let to_error = |source| KeyError::File { path: path_text.clone(), source };
    let file = File::open(path).map_err(to_error)?;
    // Checks the open file, because its path may refer to another file by now.
    let mode = file.metadata().map_err(to_error)?.permissions().mode() & 0o7777;
    if mode & OTHER_USERS != 0 {
        return Err(KeyError::Open { path: path_text, mode });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(to_error)?;
    match text.trim() {
        "" => Err(KeyError::Empty { path: path_text }),
        key => Ok(key.to_owned()),
    }
}
