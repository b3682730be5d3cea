//! What an agent holds back because it would remove too much, and what somebody decides about it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{AgentId, ApprovalId, RevisionId, StackId};

/// What became of a plan that was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has decided yet.
    Pending,
    /// The agent may carry it out.
    Approved,
    /// It may not.
    Rejected,
    /// The agent wants something else by now.
    Superseded,
}

/// The text is no state of an approval.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no state of an approval: pending, approved, rejected or superseded")]
pub struct ApprovalStateError(String);

impl ApprovalState {
    /// As it travels.
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

/// Asks whether a plan may be carried out. The same digest of the same revision means the same plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The revision that it would carry out, or the removal.
    pub deployment_object_id: RevisionId,
    /// Of the plan: 64 hexadecimal digits in lower case.
    pub digest: String,
    /// Why it is held back; at most 32, of at most 1,024 characters each.
    pub reasons: Vec<String>,
    /// The plan, for people; at most 64 KiB.
    pub plan: String,
}

/// A plan that an agent holds back, and what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// Who holds it back.
    pub agent_id: AgentId,
    /// Of which stack.
    pub stack_id: StackId,
    /// Of which revision of it.
    pub deployment_object_id: RevisionId,
    /// Of the plan.
    pub digest: String,
    /// What became of it.
    pub state: ApprovalState,
    /// Why it is held back.
    pub reasons: Vec<String>,
    /// The plan.
    pub plan: String,
    /// `admin`, or `generator` and its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// When the agent first asked.
    pub created_at: Timestamp,
}
