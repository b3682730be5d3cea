//! The administrator's key, created at the first start.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sindri_broker::{Broker, StoreError};
use sindri_model::{Entropy, Pak};

/// The administrator's key does not exist and cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be used.
    #[error("the key file {path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Reason.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates the administrator's key unless there is one, prints it and writes it to a file. The file is written before the
/// database, so that after a crash in between the next start finds the key in the file.
pub async fn create_admin_key(broker: &Broker, key_file: &Path, entropy: &Entropy) -> Result<(), KeyError> {
    if broker.has_admin_key().await? {
        return Ok(());
    }
    let path = key_file.display();
    match read_key(key_file)? {
        Some(pak) => {
            broker.create_admin_key(&pak).await?;
            println!("the administrator's key is the one in {path}");
        }
        None => {
            let pak = Pak::generate(entropy);
            write_key(key_file, &pak).map_err(|error| file_error(key_file, &error))?;
            broker.create_admin_key(&pak).await?;
            println!("the administrator's key, shown only once and stored in {path}: {}", pak.reveal());
        }
    }
    Ok(())
}

fn read_key(path: &Path) -> Result<Option<Pak>, KeyError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Pak::parse(text.trim()).map(Some).map_err(|error| file_error(path, &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, &error)),
    }
}

fn file_error(path: &Path, reason: &dyn Error) -> KeyError {
    KeyError::File { path: path.display().to_string(), reason: reason.to_string() }
}

/// Writes the file atomically, readable by its owner only.
fn write_key(path: &Path, pak: &Pak) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".draft");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    writeln!(file, "{}", pak.reveal())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
