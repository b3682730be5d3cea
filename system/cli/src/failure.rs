//! Errors of commands, the exit code of each, and the next step.

use sindri_client::{ClientError, ClientSetupError};
use thiserror::Error;

use crate::advice::advise;
use crate::exit::Exit;

/// A failed command. The message is one sentence, or one line per error in a file.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Invalid arguments, an invalid file, or a request that the broker rejects.
    #[error("{0}")]
    Usage(String),
    /// Any other error.
    #[error("{0}")]
    Operation(String),
    /// The time for which the command waits is over.
    #[error("{0}")]
    Timeout(String),
    /// Another submission has replaced the one for which the command waits.
    #[error("{0}")]
    Replaced(String),
    /// The files that the command compares would change a cluster.
    #[error("{0}")]
    Changes(String),
    /// A person has interrupted the command.
    #[error("interrupted")]
    Interrupted,
    /// A request failed.
    #[error("{0}")]
    Request(#[from] ClientError),
}

impl Failure {
    /// Returns the exit code. A permanent rejection by the broker counts as invalid usage, a transient error does not.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Timeout(_) => Exit::Timeout,
            Self::Replaced(_) => Exit::Replaced,
            Self::Changes(_) => Exit::Changes,
            Self::Interrupted => Exit::Interrupted,
            Self::Request(error) if !error.is_transient() => Exit::Usage,
            Self::Operation(_) | Self::Request(_) => Exit::Failed,
        }
    }

    /// Returns true if the same command may succeed later, because only a request has failed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Request(error) if error.is_transient())
    }

    /// Returns the next step, if there is one that the message does not have.
    pub(crate) fn advice(&self) -> Option<String> {
        match self {
            Self::Usage(_) | Self::Operation(_) | Self::Timeout(_) => None,
            Self::Replaced(_) | Self::Changes(_) | Self::Interrupted => None,
            Self::Request(error) => advise(error),
        }
    }
}

impl From<ClientSetupError> for Failure {
    fn from(error: ClientSetupError) -> Self {
        Self::Usage(error.to_string())
    }
}
