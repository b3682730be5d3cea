//! Plans that agents hold for approval because they would delete too many objects, and the decisions about them.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[cfg(feature = "schema")]
use crate::limits::{DIGEST_CHARS, DIGEST_PATTERN, HOLD_REASON_CHARS_MAX, HOLD_REASONS_MAX, PLAN_BYTES_MAX};
use crate::{AgentId, ApprovalId, RevisionId, StackId};

/// State of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// No decision yet.
    Pending,
    /// The agent may execute the plan.
    Approved,
    /// The agent must not execute the plan.
    Rejected,
    /// The agent's plan has changed since.
    Superseded,
}

/// The text is not the state of an approval.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not the state of an approval: pending, approved, rejected or superseded")]
pub struct ApprovalStateError(String);

impl ApprovalState {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Superseded => "superseded",
        }
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ApprovalState {
    type Err = ApprovalStateError;

    fn from_str(text: &str) -> Result<Self, ApprovalStateError> {
        let all = [Self::Pending, Self::Approved, Self::Rejected, Self::Superseded];
        let named = all.into_iter().find(|state| state.as_str() == text);
        named.ok_or_else(|| ApprovalStateError(text.to_owned()))
    }
}

/// Request to approve a plan. The same digest for the same revision means the same plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalRequest {
    /// Id of the revision or deletion marker that the plan would apply.
    pub deployment_object_id: RevisionId,
    /// Digest of the plan: 64 hexadecimal digits in lower case.
    #[cfg_attr(feature = "schema", schemars(length(equal = DIGEST_CHARS), regex(pattern = DIGEST_PATTERN)))]
    pub digest: String,
    /// Reasons for the hold; at most 32, of at most 1,024 characters each.
    #[cfg_attr(feature = "schema", schemars(length(max = HOLD_REASONS_MAX), inner(length(max = HOLD_REASON_CHARS_MAX))))]
    pub reasons: Vec<String>,
    /// Human-readable plan; at most 64 KiB.
    #[cfg_attr(feature = "schema", schemars(length(max = PLAN_BYTES_MAX)))]
    pub plan: String,
}

/// A plan that an agent holds, and the decision about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// Id of the approval.
    pub id: ApprovalId,
    /// Id of the agent that holds the plan.
    pub agent_id: AgentId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Id of the revision or deletion marker that the plan would apply.
    pub deployment_object_id: RevisionId,
    /// Digest of the plan.
    pub digest: String,
    /// State of the approval.
    pub state: ApprovalState,
    /// Reasons for the hold.
    pub reasons: Vec<String>,
    /// Human-readable plan.
    pub plan: String,
    /// `admin`, or `generator` and its id.
    #[serde(default)]
    pub decided_by: Option<String>,
    /// Time of the decision.
    #[serde(default)]
    pub decided_at: Option<Timestamp>,
    /// Time of the agent's first request.
    pub created_at: Timestamp,
}
