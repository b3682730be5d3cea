//! Errors of commands, the exit code of each, and the next step.

use sindri_client::{ClientError, ClientSetupError};
use sindri_model::text::{to_printable, to_printable_lines};
use thiserror::Error;

use crate::advice::advise;
use crate::exit::Exit;

/// A failed command. The message is one sentence, or one line per error in a file.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Invalid arguments, an invalid file, or a request that the broker rejects.
    #[error("{0}")]
    Usage(String),
    /// A name that the broker does not know, and the next step.
    #[error("{message}")]
    UnknownName {
        /// Description with the name.
        message: String,
        /// Next step, if the message has none.
        advice: Option<String>,
    },
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
    /// A request failed after a revision was submitted: the command has changed something, and invalid usage would say that it
    /// has not.
    #[error("the submission is stored, but: {0}")]
    AfterSubmission(ClientError),
}

impl Failure {
    /// Returns the exit code. A permanent rejection by the broker counts as invalid usage, a transient error does not.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::UnknownName { .. } => Exit::Usage,
            Self::Timeout(_) => Exit::Timeout,
            Self::Replaced(_) => Exit::Replaced,
            Self::Changes(_) => Exit::Changes,
            Self::Interrupted => Exit::Interrupted,
            Self::Request(error) if !error.is_transient() => Exit::Usage,
            Self::Operation(_) | Self::Request(_) | Self::AfterSubmission(_) => Exit::Failed,
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
            Self::UnknownName { advice, .. } => advice.clone(),
            Self::Request(error) | Self::AfterSubmission(error) => advise(error),
        }
    }

    /// Returns the same failure of a step that follows a submission.
    pub(crate) fn after_submission(self) -> Self {
        match self {
            Self::Request(error) => Self::AfterSubmission(error),
            Self::Usage(message) | Self::UnknownName { message, .. } => {
                Self::Operation(format!("the submission is stored, but: {message}"))
            }
            other => other,
        }
    }

    /// Returns the message for a terminal. Errors in a file have a line each; any other message is one line, so that a
    /// report of an agent cannot add lines to it.
    pub(crate) fn to_shown(&self) -> String {
        match self {
            Self::Usage(_) | Self::UnknownName { .. } | Self::Request(_) => to_printable_lines(&self.to_string()),
            Self::Operation(_)
            | Self::Timeout(_)
            | Self::Replaced(_)
            | Self::Changes(_)
            | Self::Interrupted
            | Self::AfterSubmission(_) => to_printable(&self.to_string()),
        }
    }
}

impl From<ClientSetupError> for Failure {
    fn from(error: ClientSetupError) -> Self {
        Self::Usage(error.to_string())
    }
}
