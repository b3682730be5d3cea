//! What agents say about the health of what they applied.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{AgentId, HealthId, RevisionId, StackId};

/// How something is doing, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// All is well.
    Healthy,
    /// Nobody has said.
    Unknown,
    /// It works in part.
    Degraded,
    /// It does not work.
    Failing,
}

/// The text is no health status.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no health status: healthy, degraded, failing or unknown")]
pub struct HealthStatusError(String);

impl HealthStatus {
    /// The worst of several; unknown of none.
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Failing => "failing",
        })
    }
}

impl FromStr for HealthStatus {
    type Err = HealthStatusError;

    fn from_str(text: &str) -> Result<Self, HealthStatusError> {
        match text {
            "healthy" => Ok(Self::Healthy),
            "unknown" => Ok(Self::Unknown),
            "degraded" => Ok(Self::Degraded),
            "failing" => Ok(Self::Failing),
            other => Err(HealthStatusError(other.to_owned())),
        }
    }
}

/// What an agent says about several revisions at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HealthStatusUpdate {
    /// One per revision.
    pub deployment_objects: Vec<DeploymentObjectHealthUpdate>,
}

/// What an agent says about one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeploymentObjectHealthUpdate {
    /// The revision.
    pub id: RevisionId,
    /// How it is doing.
    pub status: HealthStatus,
    /// Pods and conditions, in the agent's own shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// When it looked.
    pub checked_at: Timestamp,
}

/// What an agent last said about a revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentHealth {
    /// Its id.
    pub id: HealthId,
    /// Who said it.
    pub agent_id: AgentId,
    /// About which revision.
    pub deployment_object_id: RevisionId,
    /// How it is doing.
    pub status: HealthStatus,
    /// Pods and conditions, in the agent's own shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// When it looked.
    pub checked_at: Timestamp,
    /// When it first said something about it.
    pub created_at: Timestamp,
    /// When it last did.
    pub updated_at: Timestamp,
}

/// The health of one revision on every cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentHealthResponse {
    /// The revision.
    pub deployment_object_id: RevisionId,
    /// The worst of all.
    pub overall_status: HealthStatus,
    /// One per agent.
    pub health_records: Vec<DeploymentHealth>,
}

/// The health of a stack on every cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackHealthResponse {
    /// The stack.
    pub stack_id: StackId,
    /// The worst of all.
    pub overall_status: HealthStatus,
    /// One per revision that somebody said something about.
    pub deployment_objects: Vec<DeploymentHealthResponse>,
}
