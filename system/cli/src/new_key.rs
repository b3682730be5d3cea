//! Keys that a command creates: each is printed once, or written to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sindri_model::wire::{Admin, RotatePakRequest};

use crate::failure::Failure;
use crate::output::{Format, Output, Resource, full_name, print_or_fail};
use crate::private_file;

/// Validity of the old and of the new key.
#[derive(Args, Debug)]
pub(crate) struct Rotation {
    /// Time for which the old key stays valid, such as 1h or 30m; by default it ends at once.
    #[arg(long, value_name = "DURATION")]
    keep_old_for: Option<SignedDuration>,
    /// Time from which the new key is invalid, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
}

impl Rotation {
    /// Returns the request to replace a key.
    pub(crate) fn to_request(&self) -> Result<RotatePakRequest, Failure> {
        let grace = self.keep_old_for.map(|time| u32::try_from(time.as_secs())).transpose();
        let grace_seconds = grace.map_err(|_| Failure::Usage("--keep-old-for must not be negative".to_owned()))?;
        Ok(RotatePakRequest { grace_seconds, key_expires_at: self.expires_at })
    }
}

/// Destination of a new key.
#[derive(Args, Debug)]
pub(crate) struct KeyDestination {
    /// New file for the key, with mode 0600, instead of showing it.
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
}

impl KeyDestination {
    /// Creates the file before the key exists, so that no key is created that cannot be stored.
    pub(crate) fn prepare(&self, output: Output) -> Result<KeyPrinter, Failure> {
        if let Some(path) = &self.new_key_file {
            let file = private_file::create(path).map_err(|error| to_failure(path, &error))?;
            return Ok(KeyPrinter { output, file: Some(KeyFile { path: path.clone(), file, is_written: false }) });
        }
        if output.format == Format::Name {
            return Err(Failure::Usage("--output name does not show the key: set --new-key-file".to_owned()));
        }
        Ok(KeyPrinter { output, file: None })
    }
}

fn to_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("the file {} cannot be written: {error}", path.display()))
}

/// A new file, which is deleted unless a key is written to it.
struct KeyFile {
    path: PathBuf,
    file: File,
    is_written: bool,
}

impl KeyFile {
    fn write(&mut self, key: &str) -> io::Result<()> {
        self.file.write_all(format!("{key}\n").as_bytes())?;
        self.file.sync_all()?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        if !self.is_written {
            // It has no key; the error of the command is the one that matters.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Prints a new object and its key.
pub(crate) struct KeyPrinter {
    output: Output,
    file: Option<KeyFile>,
}

/// An object and its key.
#[derive(Serialize)]
struct WithKey<'a, T> {
    #[serde(flatten)]
    object: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

impl KeyPrinter {
    /// Prints an object with its key, or writes the key to the file.
    pub(crate) fn print<T: Resource>(self, object: &T, sentence: &str, key: &str) -> Result<(), Failure> {
        self.print_optional(Some(object), &format!("{sentence}\n"), key)
    }

    /// Prints a key whose owner is not known, or writes it to the file.
    pub(crate) fn print_key(self, key: &str) -> Result<(), Failure> {
        self.print_optional::<Admin>(None, "", key)
    }

    fn print_optional<T: Resource>(mut self, object: Option<&T>, sentence: &str, key: &str) -> Result<(), Failure> {
        let shown_once = format!("{sentence}key, shown only once: {key}\n");
        let (key, text) = match &mut self.file {
            None => (Some(key), shown_once),
            Some(file) => {
                if let Err(error) = file.write(key) {
                    // The key exists and cannot be read again.
                    print_or_fail(&shown_once)?;
                    return Err(to_failure(&file.path, &error));
                }
                (None, format!("{sentence}its key is in {}\n", file.path.display()))
            }
        };
        let names = || object.into_iter().map(full_name).collect();
        print_or_fail(&self.output.format_document(&WithKey { object, key }, names, || text)?)
    }
}
