//! Reasons why a scenario does not go on.

use thiserror::Error;

use crate::oracle::Violation;

/// Reason why a step or a check of a scenario ended the run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StepError {
    /// The system did something wrong.
    #[error("{}: {}", .0.oracle, .0.message)]
    Violation(Violation),
    /// The environment cannot do this.
    #[error("this environment cannot {0}")]
    Unsupported(&'static str),
    /// The environment can, but not with a cluster of this provider.
    #[error("not on this kind of cluster: {0}")]
    UnsupportedByCluster(&'static str),
    /// This machine lacks something that such a cluster needs.
    #[error("{0}")]
    Unavailable(String),
    /// The broker or the API server rejected an operation of the scenario.
    #[error("{0}")]
    Rejected(String),
    /// The scenario cannot be carried out.
    #[error("{0}")]
    Failed(String),
}

impl StepError {
    /// Creates the error of a property that did not hold.
    pub fn violation(oracle: &'static str, message: impl Into<String>) -> Self {
        Self::Violation(Violation { oracle, message: message.into() })
    }
}
