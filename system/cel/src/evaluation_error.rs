//! Errors of the evaluation of a rule.

use thiserror::Error;

/// Failed evaluation. The message is that of the real API server, which may quote a value of the object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EvaluationError {
    /// An error of the expression; the other operand of `&&` or `||` may still decide the result.
    #[error("{message}")]
    Failed {
        /// Message of the real API server.
        message: String,
        /// The message without any value of the object.
        redacted: String,
    },
    /// The evaluation took too many steps.
    #[error("operation cancelled: actual cost limit exceeded")]
    BudgetExceeded,
}

impl EvaluationError {
    /// Creates an error whose message contains no value.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed { redacted: message.clone(), message }
    }

    /// Creates an error whose message contains a value, with a message that does not.
    pub(crate) fn with_redacted(message: impl Into<String>, redacted: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), redacted: redacted.into() }
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// Returns the message without values, for readers who may not read the object.
    pub fn redacted(&self) -> String {
        match self {
            Self::Failed { redacted, .. } => redacted.clone(),
            Self::BudgetExceeded => self.to_string(),
        }
    }
}
