//! Why a command failed, and whose turn it is: exit code 2 is for mistakes of the one who typed it.

use std::process::ExitCode;

use sindri_client::{ClientError, ClientSetupError};
use thiserror::Error;

/// A command failed. Reads as one sentence, unless a file has several faults.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// What was typed, or a file that was named, is wrong.
    #[error("{0}")]
    Mistake(String),
    /// Something else is.
    #[error("{0}")]
    Elsewhere(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Mistake(_) => ExitCode::from(2),
            Self::Elsewhere(_) => ExitCode::FAILURE,
        }
    }
}

impl From<ClientError> for Failure {
    /// What the broker refuses for good is a mistake; what may pass is not.
    fn from(error: ClientError) -> Self {
        if error.is_transient() { Self::Elsewhere(error.to_string()) } else { Self::Mistake(error.to_string()) }
    }
}

impl From<ClientSetupError> for Failure {
    fn from(error: ClientSetupError) -> Self {
        Self::Mistake(error.to_string())
    }
}
