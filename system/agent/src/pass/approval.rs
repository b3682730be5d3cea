//! Asks the broker whether somebody has approved what is held back.

use std::fmt;

use sindri_client::Client;
use sindri_model::wire::{ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, Checksum};

use crate::pass::observe::Desired;
use crate::pass::plan::{Hold, Strangers};

/// What the broker takes: so many reasons of so many characters, and a plan of so many bytes.
const REASONS_MAX: usize = 32;
const REASON_CHARS_MAX: usize = 1_000;
const PLAN_BYTES_MAX: usize = 60 * 1024;

/// Whether a plan may be carried out.
pub enum Verdict {
    /// Nobody has to be asked.
    Free,
    /// It may, and these may go with what is deleted.
    Approved(Strangers),
    /// Not all of it.
    Held {
        /// What waits.
        holds: Vec<Hold>,
        /// What to tell.
        back: HeldBack,
    },
}

/// What waits for an approval, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    reasons: Vec<String>,
    /// How it stands with the approval.
    standing: String,
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reasons.join("; "), self.standing)
    }
}

/// Asks for an approval of exactly this. A broker that does not answer has approved nothing.
pub async fn ask(broker: &Client, agent: AgentId, desired: &Desired, holds: Vec<Hold>, shown: &str) -> Verdict {
    let cut = |reason: String| reason.chars().take(REASON_CHARS_MAX).collect::<String>();
    let reasons: Vec<String> = holds.iter().take(REASONS_MAX).map(|hold| cut(hold.to_string())).collect();
    let request = ApprovalRequest {
        deployment_object_id: desired.revision,
        digest: digest(desired, &holds).to_string(),
        reasons: reasons.clone(),
        plan: shown[..shown.floor_char_boundary(PLAN_BYTES_MAX)].to_owned(),
    };
    let standing = match broker.propose(agent, desired.stack, &request).await {
        Ok(approval) => match approval.state {
            ApprovalState::Approved => return Verdict::Approved(strangers(holds)),
            ApprovalState::Rejected => format!("approval {} was rejected", approval.id),
            ApprovalState::Pending | ApprovalState::Superseded => {
                format!("this waits for approval {} (sindri approve {0})", approval.id)
            }
        },
        Err(error) => format!("this waits for an approval, which could not be asked for: {error}"),
    };
    Verdict::Held { holds, back: HeldBack { reasons, standing } }
}

/// Stands for exactly these deletes of this revision: whoever approves it approves nothing else.
fn digest(desired: &Desired, holds: &[Hold]) -> Checksum {
    Checksum::of(&format!("{} {holds:?}", desired.revision))
}

/// What may go with namespaces and definitions.
fn strangers(holds: Vec<Hold>) -> Strangers {
    let others = holds.into_iter().filter_map(|hold| match hold {
        Hold::Others { key, held, .. } => Some((key, held)),
        Hold::TooMany { .. } | Hold::Data { .. } => None,
    });
    others.collect()
}
