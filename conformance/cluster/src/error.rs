//! Why there is no cluster, and what to do about it.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use crate::name::ProviderName;

/// Why there is no cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// This machine has not what it takes. Whoever reports results says "not run", never "passed".
    #[error("{provider} cannot run here: {missing}; {advice}")]
    Unavailable {
        /// Who.
        provider: ProviderName,
        /// What is missing.
        missing: String,
        /// What to do.
        advice: String,
    },
    /// It does not work.
    #[error("{0}")]
    Failed(Failure),
    /// The user asked for something that cannot be.
    #[error("{0}")]
    Mistake(String),
    /// The program was asked to end.
    #[error("interrupted; everything that was started is ended")]
    Interrupted,
}

impl ClusterError {
    /// Whether it only says that this machine lacks something.
    pub fn is_not_run(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Failed(_) | Self::Mistake(_) | Self::Interrupted => false,
        }
    }

    /// A file or directory that cannot be used.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::Failed(Failure::of_io(&path.display().to_string(), error))
    }

    /// Something that took too long.
    pub(crate) fn late(what: &str, within: Duration) -> Self {
        Self::Failed(Failure::new(format!("waited {within:?} in vain for {what}"), "see whether the machine is busy"))
    }
}

/// What went wrong, the last lines of the log that tells more, and what to do.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault it is, if it is a process's.
    #[serde(default)]
    pub process: Option<String>,
    /// What went wrong.
    pub reason: String,
    /// The last lines of that process's log.
    #[serde(default)]
    pub tail: Vec<String>,
    /// What to do.
    #[serde(default)]
    pub advice: String,
}

impl Failure {
    /// Without a log.
    pub(crate) fn new(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: advice.into(), ..Self::default() }
    }

    pub(crate) fn of_io(what: &str, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: make room there",
            io::ErrorKind::PermissionDenied => "see who may write there",
            _ => "see whether it is there and whose it is",
        };
        Self::new(format!("{what}: {error}"), advice)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let (Some(process), false) = (&self.process, self.tail.is_empty()) {
            write!(f, "\n  last lines of {process}:")?;
            self.tail.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  what to do: {}", self.advice) }
    }
}
