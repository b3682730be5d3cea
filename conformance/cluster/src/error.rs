//! Errors of clusters, with advice.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use crate::name::ProviderName;

/// Reason for which there is no cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// This machine lacks something. Reports of results must say "not run", never "passed".
    #[error("{provider} cannot run here: {missing}; {advice}")]
    Unavailable {
        /// Provider.
        provider: ProviderName,
        /// Missing program or service.
        missing: String,
        /// Advice.
        advice: String,
    },
    /// A failure.
    #[error("{0}")]
    Failed(Failure),
    /// Error of the user.
    #[error("{0}")]
    Usage(String),
    /// A signal asked the program to end.
    #[error("interrupted; everything that was started is ended")]
    Interrupted,
}

impl ClusterError {
    /// Returns true if this machine lacks something.
    pub fn is_not_run(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Failed(_) | Self::Usage(_) | Self::Interrupted => false,
        }
    }

    /// Converts an error of a file, directory or process.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        Self::Failed(Failure::from_io(&path.display().to_string(), error))
    }

    /// A timeout.
    pub(crate) fn timed_out(what: &str, within: Duration) -> Self {
        Self::Failed(Failure::new(format!("waited {within:?} for {what}"), "check whether the machine is overloaded"))
    }
}

/// A failure with the last lines of the log and advice. Also sent by the `plane` program as JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Failure {
    /// Process that failed, if one did.
    #[serde(default)]
    pub process: Option<String>,
    /// Description of the failure.
    pub reason: String,
    /// Last lines of that process's log.
    #[serde(default)]
    pub tail: Vec<String>,
    /// Advice.
    #[serde(default)]
    pub advice: String,
}

impl Failure {
    /// Creates a failure without a log.
    pub(crate) fn new(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: advice.into(), ..Self::default() }
    }

    pub(crate) fn from_io(what: &str, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: make room there",
            io::ErrorKind::PermissionDenied => "check the permissions",
            _ => "check that it exists and who owns it",
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
