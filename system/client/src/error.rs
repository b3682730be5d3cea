//! What can go wrong between a caller and the broker, and whether trying again can help.

use http::StatusCode;
use sindri_model::Problem;
use thiserror::Error;

/// An operation on the broker failed. Each form reads as one sentence.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ClientError {
    /// No complete answer arrived. The broker may or may not have carried the operation out.
    #[error("cannot {operation}: the broker at {broker} cannot be reached: {reason}")]
    Unreachable {
        /// What was asked for, with the object named.
        operation: String,
        /// The broker's address.
        broker: String,
        /// What went wrong on the way.
        reason: String,
    },
    /// The broker answered no.
    #[error("cannot {operation}: {}", refusal(*.status, .problem))]
    Refused {
        /// What was asked for, with the object named.
        operation: String,
        /// The status of the answer.
        status: StatusCode,
        /// What the broker said.
        problem: Problem,
    },
    /// An answer arrived that is not what this operation returns. Nothing may be concluded from it.
    #[error("cannot {operation}: the answer is not one of a broker: {reason}")]
    Malformed {
        /// What was asked for, with the object named.
        operation: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl ClientError {
    /// Whether the same request may succeed later. A malformed answer counts: it comes from something
    /// between us and the broker, which may go away.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Malformed { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error()
                    || *status == StatusCode::TOO_MANY_REQUESTS
                    || *status == StatusCode::REQUEST_TIMEOUT
            }
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::Malformed { .. } => None,
        }
    }

    /// Whether the broker said that the thing does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }
}

fn refusal(status: StatusCode, problem: &Problem) -> String {
    if status == StatusCode::UNAUTHORIZED {
        return format!("the broker does not accept the key: {}", problem.message);
    }
    format!("the broker answered {}: {}", status.as_u16(), problem.message)
}

/// A client cannot be made from what was given.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClientSetupError {
    /// The address has no scheme or no host.
    #[error("the broker's address must be like http://HOST:PORT, not {0:?}")]
    Address(String),
    /// The key holds characters that no key has.
    #[error("the key is not an access key: it holds characters that no key has")]
    Key,
}
