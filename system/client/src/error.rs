//! Errors of the client, and the decision to retry.

use http::StatusCode;
use sindri_model::Problem;
use sindri_model::wire::{AGENT_INACTIVE_CODE, OTHER_LEADER_CODE};
use thiserror::Error;

use crate::connection_failure::ConnectionFailure;

/// Code of an error whose body is not one of the broker: a proxy sent it.
pub(crate) const UNEXPLAINED_CODE: &str = "unexplained";

/// A failed operation. Each message is one sentence.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ClientError {
    /// No complete response arrived. The broker may or may not have executed the operation.
    #[error("cannot {operation}: the broker at {broker} cannot be reached: {reason}")]
    Unreachable {
        /// Operation, with its object.
        operation: String,
        /// URL of the broker.
        broker: String,
        /// Cause.
        reason: String,
        /// Class of the cause.
        failure: ConnectionFailure,
    },
    /// The broker rejected the request.
    #[error("cannot {operation}: {}", describe_rejection(*.status, .problem))]
    Rejected {
        /// Operation, with its object.
        operation: String,
        /// Status of the response.
        status: StatusCode,
        /// Body of the response.
        problem: Problem,
    },
    /// The response does not have the form that this operation returns.
    #[error("cannot {operation}: the response is invalid: {reason}")]
    Malformed {
        /// Operation, with its object.
        operation: String,
        /// Error in the response.
        reason: String,
    },
}

impl ClientError {
    /// Returns true if the same request may succeed later. That includes a malformed response, which may come from a
    /// proxy in between.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Malformed { .. } => true,
            Self::Rejected { status, .. } => {
                status.is_server_error()
                    || *status == StatusCode::TOO_MANY_REQUESTS
                    || *status == StatusCode::REQUEST_TIMEOUT
            }
        }
    }

    /// Returns true if the broker itself rejected the request for good. A rejection without its explanation may be that of a
    /// proxy in between, and proves nothing about a key or a resource.
    pub fn is_refused_by_broker(&self) -> bool {
        let is_explained = |problem: &Problem| problem.code != UNEXPLAINED_CODE;
        !self.is_transient() && matches!(self, Self::Rejected { problem, .. } if is_explained(problem))
    }

    /// Returns the status with which the broker rejected the request.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Rejected { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::Malformed { .. } => None,
        }
    }

    /// Returns true if the broker rejected the request because the agent is inactive.
    pub fn is_agent_inactive(&self) -> bool {
        matches!(self, Self::Rejected { problem, .. } if problem.code == AGENT_INACTIVE_CODE)
    }

    /// Returns true if the broker rejected a report because another process of the agent is the leader.
    pub fn is_other_leader(&self) -> bool {
        matches!(self, Self::Rejected { problem, .. } if problem.code == OTHER_LEADER_CODE)
    }

    /// Returns true if the broker itself responded that the resource does not exist. The 404 of a proxy proves nothing.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Rejected { status, problem, .. } => {
                *status == StatusCode::NOT_FOUND && problem.code != UNEXPLAINED_CODE
            }
            Self::Unreachable { .. } | Self::Malformed { .. } => false,
        }
    }
}

fn describe_rejection(status: StatusCode, problem: &Problem) -> String {
    if status == StatusCode::UNAUTHORIZED && problem.code != UNEXPLAINED_CODE {
        return format!("the broker does not accept the key: {}", problem.message);
    }
    format!("the broker responded with {}: {}", status.as_u16(), problem.message)
}

/// Invalid parameters of a client.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClientSetupError {
    /// The address has no scheme or no host.
    #[error("the broker's address must be like http://HOST:PORT, not {0:?}")]
    Address(String),
    /// The key contains characters that are not allowed in a header.
    #[error("the access key contains characters that are not allowed in an HTTP header")]
    Key,
}
