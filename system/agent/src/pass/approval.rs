//! Asks the broker for the approval of deletions that are held back.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use sindri_client::Client;
use sindri_model::text::to_printable;
use sindri_model::wire::{ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, Checksum, ObjectKey};

use super::desired::DesiredStack;
use super::plan::{ForeignObjects, Hold};

/// Limits of the broker: number of reasons, characters of each, and bytes of the plan.
const REASONS_MAX: usize = 32;
const REASON_CHARS_MAX: usize = 1_000;
/// Most bytes of a plan that the agent sends; the broker accepts some more.
pub const PLAN_BYTES_MAX: usize = 60 * 1024;

/// Decision about the deletions of a plan.
pub enum ApprovalDecision {
    /// No approval is needed.
    NotNeeded,
    /// Everything is approved, including the deletion of these foreign objects.
    Approved(ForeignObjects),
    /// Some deletions, or the whole revision, must wait.
    Held {
        /// Deletions that wait.
        holds: Vec<Hold>,
        /// Message to report.
        message: HoldMessage,
    },
}

/// Deletions that wait for an approval, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldMessage {
    reasons: Vec<String>,
    /// Objects that are held back, each with its reason.
    pub objects: Vec<(ObjectKey, String)>,
    /// State of the approval.
    approval: String,
}

impl fmt::Display for HoldMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reasons.join("; "), self.approval)
    }
}

/// Requests an approval of exactly these holds. If the broker does not respond, nothing is approved.
pub async fn request_approval(
    broker: &Client,
    agent: AgentId,
    desired: &DesiredStack,
    holds: Vec<Hold>,
    plan_text: String,
) -> ApprovalDecision {
    let cut = |reason: String| to_printable(&reason).chars().take(REASON_CHARS_MAX).collect::<String>();
    let reasons: Vec<String> = holds.iter().take(REASONS_MAX).map(|hold| cut(hold.to_string())).collect();
    let request = ApprovalRequest {
        deployment_object_id: desired.revision,
        digest: digest(desired, &holds).to_string(),
        reasons: reasons.clone(),
        plan: plan_text,
    };
    let approval = match broker.request_approval(agent, desired.stack, &request).await {
        Ok(approval) => match approval.state {
            ApprovalState::Approved => return ApprovalDecision::Approved(approved_objects(holds)),
            ApprovalState::Rejected => {
                format!("approval {} was rejected; to ask again, submit the revision again (sindri apply)", approval.id)
            }
            ApprovalState::Pending | ApprovalState::Superseded => {
                format!("this waits for approval {} (sindri approve {0})", approval.id)
            }
        },
        Err(error) => format!("this waits for an approval, which could not be requested: {error}"),
    };
    let with_reason = |hold: &Hold| {
        let reason = cut(hold.to_string());
        hold.objects().iter().map(|key| (ObjectKey::clone(key), reason.clone())).collect::<Vec<_>>()
    };
    let objects = holds.iter().flat_map(with_reason).collect();
    ApprovalDecision::Held { holds, message: HoldMessage { reasons, objects, approval } }
}

/// Returns the digest of exactly these deletions of this revision: an approval is valid for nothing else.
fn digest(desired: &DesiredStack, holds: &[Hold]) -> Checksum {
    let holds: Vec<String> = holds.iter().map(digest_text).collect();
    Checksum::compute(&format!("{} [{}]", desired.revision, holds.join(", ")))
}

/// Returns the part of a hold in the digest. The text must stay the same in later versions, because a pending approval
/// would otherwise be requested again.
fn digest_text(hold: &Hold) -> String {
    match hold {
        // Without the size of the stack, which changes when an object that stays is created or deleted.
        Hold::TooMany { objects, .. } => {
            format!("TooMany {{ deletes: {}, objects: {} }}", objects.len(), checksum(objects))
        }
        // The same for the rest of the objects after an interruption: all are declared by this revision.
        Hold::Adoption { owners, .. } => format!("Adoption {{ owners: {owners:?} }}"),
        Hold::Data { key, uid } => format!("Data {{ key: {key:?}, uid: {uid:?} }}"),
        Hold::Foreign { key, uid, objects } => format!("Others {{ key: {key:?}, uid: {uid:?}, held: {objects:?} }}"),
    }
}

/// Returns the checksum of a set of objects, in any order.
fn checksum(objects: &[Arc<ObjectKey>]) -> Checksum {
    let objects: BTreeSet<String> = objects.iter().map(ToString::to_string).collect();
    Checksum::compute(&objects.into_iter().collect::<Vec<_>>().join("\n"))
}

/// Returns the foreign objects that an approval allows to delete.
fn approved_objects(holds: Vec<Hold>) -> ForeignObjects {
    let foreign = holds.into_iter().filter_map(|hold| match hold {
        Hold::Foreign { key, objects, .. } => Some((key, objects)),
        Hold::TooMany { .. } | Hold::Adoption { .. } | Hold::Data { .. } => None,
    });
    foreign.collect()
}

#[cfg(test)]
mod tests {
    use sindri_model::ObjectKey;

    use super::*;

    #[test]
    fn the_digest_of_a_hold_does_not_change_between_versions() {
        let key = |kind: &str| {
            let (group, namespace) = (String::new(), Some("shop".to_owned()));
            Arc::new(ObjectKey { group, kind: kind.to_owned(), namespace, name: "a".to_owned() })
        };
        let text = |kind: &str| {
            format!("ObjectKey {{ group: \"\", kind: \"{kind}\", namespace: Some(\"shop\"), name: \"a\" }}")
        };
        let uid = || "7".to_owned();
        let foreign = Hold::Foreign { key: key("Namespace"), uid: uid(), objects: vec![key("A"), key("B")] };
        for (hold, expected) in [
            (
                Hold::TooMany { objects: vec![key("B"), key("A")], total: 3 },
                format!("TooMany {{ deletes: 2, objects: {} }}", Checksum::compute("A shop/a\nB shop/a")),
            ),
            (Hold::Data { key: key("C"), uid: uid() }, format!("Data {{ key: {}, uid: \"7\" }}", text("C"))),
            (
                foreign,
                format!("Others {{ key: {}, uid: \"7\", held: [{}, {}] }}", text("Namespace"), text("A"), text("B")),
            ),
        ] {
            assert_eq!(digest_text(&hold), expected);
        }
    }
}
