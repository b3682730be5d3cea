//! Revisions of stacks, under the name that Brokkr's API gives them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::BUNDLE_CHARS_MAX;
use crate::{Checksum, RevisionId, Sequence, StackId};

/// A revision of a stack, or a deletion marker. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentObject {
    /// Id of the revision.
    pub id: RevisionId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Equal to `created_at`: a revision never changes.
    pub updated_at: Timestamp,
    /// Time at which the revision was withdrawn; null if it was not.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Position in the global order of revisions.
    pub sequence_id: Sequence,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Bundle, exactly as submitted.
    pub yaml_content: String,
    /// Checksum of `yaml_content`.
    pub yaml_checksum: Checksum,
    /// Time of submission.
    pub submitted_at: Timestamp,
    /// True if agents must remove the stack.
    pub is_deletion_marker: bool,
    /// Name of the stack; only in the target state of an agent that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_name: Option<String>,
}

/// Header of a poll whose response has the names of stacks. Other clients get the fields of the published API only.
pub const STACK_NAMES_HEADER: &str = "sindri-stack-names";

/// Request to submit a revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateDeploymentObjectRequest {
    /// Bundle.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = BUNDLE_CHARS_MAX)))]
    pub yaml_content: String,
    /// True if agents must remove the stack.
    #[serde(default)]
    pub is_deletion_marker: bool,
}
