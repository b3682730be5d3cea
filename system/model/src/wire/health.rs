//! Health of applied revisions, as reported by agents.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{AgentId, HealthId, RevisionId, StackId};

/// Health, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// All objects are ready.
    Healthy,
    /// No report, or the health cannot be determined.
    Unknown,
    /// Some objects are not ready.
    Degraded,
    /// Some objects have failed.
    Failing,
}

/// The text is not a health status.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a health status: healthy, degraded, failing or unknown")]
pub struct HealthStatusError(String);

impl HealthStatus {
    /// Returns the worst of several; unknown for none.
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

/// Health report of an agent for several revisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthStatusUpdate {
    /// One entry per revision.
    pub deployment_objects: Vec<DeploymentObjectHealthUpdate>,
}

/// Health report of an agent for one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentObjectHealthUpdate {
    /// Id of the revision.
    pub id: RevisionId,
    /// Health of the revision's objects.
    pub status: HealthStatus,
    /// Counts of pods and conditions, in the agent's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Time of the check.
    pub checked_at: Timestamp,
}

/// Last health report of one agent for one revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentHealth {
    /// Id of the report.
    pub id: HealthId,
    /// Id of the reporting agent.
    pub agent_id: AgentId,
    /// Id of the revision.
    pub deployment_object_id: RevisionId,
    /// Health of the revision's objects.
    pub status: HealthStatus,
    /// Counts of pods and conditions, in the agent's own format: a JSON document in a string.
    #[serde(default, with = "json_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub summary: Option<Value>,
    /// Time of the check.
    pub checked_at: Timestamp,
    /// Time of the first report.
    pub created_at: Timestamp,
    /// Time of the last report.
    pub updated_at: Timestamp,
}

/// Health of one revision on every cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentHealthResponse {
    /// Id of the revision.
    pub deployment_object_id: RevisionId,
    /// Worst of all statuses.
    pub overall_status: HealthStatus,
    /// One entry per agent.
    pub health_records: Vec<DeploymentHealth>,
}

/// Health of a stack on every cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackHealthResponse {
    /// Id of the stack.
    pub stack_id: StackId,
    /// Worst of all statuses.
    pub overall_status: HealthStatus,
    /// One entry per revision that has a report.
    pub deployment_objects: Vec<StackDeploymentHealth>,
}

/// Health of one revision of a stack: how many agents report what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackDeploymentHealth {
    /// Id of the revision.
    pub id: RevisionId,
    /// Worst of all statuses.
    pub status: HealthStatus,
    /// Number of agents that report it as healthy.
    pub healthy_agents: usize,
    /// Number of agents that report it as degraded.
    pub degraded_agents: usize,
    /// Number of agents that report it as failing.
    pub failing_agents: usize,
}

/// A JSON document in a string, as the published API has it.
mod json_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Value::to_string).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| serde_json::from_str(&text).map_err(D::Error::custom)).transpose()
    }
}
