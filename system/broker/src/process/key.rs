//! The administrator's key, made once.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sindri_broker::{Broker, StoreError};
use sindri_model::{Entropy, Pak};

/// There is no administrator's key, and none can be made.
#[derive(Debug, thiserror::Error)]
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

/// Makes the administrator's key, once: printed, and written to a file. The file is written before the database, so
/// that a crash in between loses nothing: the next start finds the key in the file.
pub async fn first_start(broker: &Broker, key_file: &Path, entropy: &Entropy) -> Result<(), KeyError> {
    if broker.has_admin().await? {
        return Ok(());
    }
    let shown = key_file.display();
    match key_in_file(key_file)? {
        Some(pak) => {
            broker.initialise(&pak).await?;
            println!("the administrator's key is the one in {shown}");
        }
        None => {
            let pak = Pak::mint(entropy);
            write_key(key_file, &pak).map_err(|error| fault(key_file, &error))?;
            broker.initialise(&pak).await?;
            println!("the administrator's key, shown this once and kept in {shown}: {}", pak.reveal());
        }
    }
    Ok(())
}

fn key_in_file(path: &Path) -> Result<Option<Pak>, KeyError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Pak::parse(text.trim()).map(Some).map_err(|error| fault(path, &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(path, &error)),
    }
}

fn fault(path: &Path, reason: &dyn Error) -> KeyError {
    KeyError::File { path: path.display().to_string(), reason: reason.to_string() }
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
