//! The administrator's key, made once.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sindri_broker::{Broker, StoreError};
use sindri_model::{Entropy, Pak};
use thiserror::Error;

/// There is no administrator's key, and none can be made.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file cannot be used.
    #[error("the key file {path}: {reason}")]
    File {
        /// Of the file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes the administrator's key, once. The file is written before the database, so that a crash in between
/// loses nothing: the next start finds the key in the file.
pub async fn first_start(broker: &Broker, key_file: Option<&Path>, entropy: &Entropy) -> Result<(), KeyError> {
    if broker.has_admin().await? {
        return Ok(());
    }
    let pak = match key_file {
        Some(path) => key_in_file(path, entropy)?,
        None => Pak::mint(entropy),
    };
    broker.initialise(&pak).await?;
    match key_file {
        Some(path) => println!("the administrator's key is in {}", path.display()),
        None => println!("the administrator's key, shown this once: {}", pak.reveal()),
    }
    Ok(())
}

fn key_in_file(path: &Path, entropy: &Entropy) -> Result<Pak, KeyError> {
    let fault = |reason: String| KeyError::File { path: path.display().to_string(), reason };
    match std::fs::read_to_string(path) {
        Ok(text) => return Pak::parse(text.trim()).map_err(|error| fault(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fault(error.to_string())),
    }
    let pak = Pak::mint(entropy);
    write_key(path, &pak).map_err(|error| fault(error.to_string()))?;
    Ok(pak)
}

/// The file appears whole or not at all, readable by its owner only.
fn write_key(path: &Path, pak: &Pak) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".draft");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    writeln!(file, "{}", pak.reveal())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}
