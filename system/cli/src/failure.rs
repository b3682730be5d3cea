//! Errors of commands and their exit codes: 2 for wrong usage, 1 for all others.

use std::process::ExitCode;

use sindri_client::{ClientError, ClientSetupError};
use thiserror::Error;

/// A failed command. The message is one sentence, unless a file has several faults.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Wrong arguments, or a wrong file.
    #[error("{0}")]
    Usage(String),
    /// Any other error.
    #[error("{0}")]
    Operation(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Operation(_) => ExitCode::FAILURE,
        }
    }
}

impl From<ClientError> for Failure {
    /// A permanent rejection by the broker counts as wrong usage, a transient error does not.
    fn from(error: ClientError) -> Self {
        if error.is_transient() { Self::Operation(error.to_string()) } else { Self::Usage(error.to_string()) }
    }
}

impl From<ClientSetupError> for Failure {
    fn from(error: ClientSetupError) -> Self {
        Self::Usage(error.to_string())
    }
}
