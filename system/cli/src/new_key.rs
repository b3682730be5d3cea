//! Keys that a command creates: each is printed once, or written to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sindri_model::wire::{Admin, RotatePakRequest};

use crate::duration::parse_duration;
use crate::failure::Failure;
use crate::output::{Format, Output, Resource, full_name, note, print_or_fail};
use crate::private_file;

/// Seconds for which the old key of the command itself stays valid unless another time is set.
const OWN_GRACE_SECONDS: u32 = 10 * 60;
/// Longest time for which an old key stays valid.
const GRACE_MAX: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Validity of the old and of the new key.
#[derive(Args, Debug)]
pub(crate) struct Rotation {
    /// Time for which the old key stays valid, such as 1h or 30m; by default it ends at once.
    #[arg(long, value_name = "DURATION", value_parser = parse_grace)]
    keep_old_for: Option<SignedDuration>,
    /// Time from which the new key is invalid, such as 2027-01-31T12:00:00Z, or `never`. The end of the old key does not count.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Expiry>,
}

impl Rotation {
    /// Returns the request to replace a key.
    pub(crate) fn to_request(&self) -> RotatePakRequest {
        let grace_seconds = self.keep_old_for.and_then(|time| u32::try_from(time.as_secs()).ok());
        let key_expires_at = self.expires_at.and_then(|expiry| match expiry {
            Expiry::Never => None,
            Expiry::At(time) => Some(time),
        });
        RotatePakRequest { grace_seconds, key_expires_at }
    }

    /// Returns the request to replace the key that the command uses. The old one stays valid for some minutes: a new one
    /// that does not arrive would lock the only administrator out.
    pub(crate) fn to_own_request(&self) -> RotatePakRequest {
        let request = self.to_request();
        if self.keep_old_for.is_none() {
            note("note: the old key stays valid for ten minutes; --keep-old-for 0s ends it at once");
        }
        RotatePakRequest { grace_seconds: request.grace_seconds.or(Some(OWN_GRACE_SECONDS)), ..request }
    }

    /// Refuses to replace a key that has an end by one without, unless that is asked for.
    pub(crate) fn check_end(&self, owner: &str, old_end: Option<Timestamp>) -> Result<(), Failure> {
        let Some(end) = old_end.filter(|_| self.expires_at.is_none()) else { return Ok(()) };
        Err(Failure::Usage(format!(
            "the key of {owner} ends at {end}, and the new one would not end: set --expires-at to its end, or to never"
        )))
    }

    /// Says that the new key has no end, if nothing was said about it.
    pub(crate) fn note_end(&self) {
        if self.expires_at.is_none() {
            note("note: the new key does not expire; --expires-at TIME gives it an end");
        }
    }
}

fn parse_grace(text: &str) -> Result<SignedDuration, String> {
    parse_duration(text, GRACE_MAX)
}

/// End of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    Never,
    At(Timestamp),
}

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        text.parse().map(Self::At).map_err(|_| "it is neither a time such as 2027-01-31T12:00:00Z nor never".to_owned())
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
