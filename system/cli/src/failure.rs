//! Errors of commands, and the exit code of each.

use sindri_client::{ClientError, ClientSetupError};
use thiserror::Error;

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
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Operation(_) => Exit::Failed,
        }
    }
}

impl From<ClientError> for Failure {
    /// A permanent rejection by the broker counts as invalid usage, a transient error does not.
    fn from(error: ClientError) -> Self {
        if error.is_transient() { Self::Operation(error.to_string()) } else { Self::Usage(error.to_string()) }
    }
}

impl From<ClientSetupError> for Failure {
    fn from(error: ClientSetupError) -> Self {
        Self::Usage(error.to_string())
    }
}
