//! Asks the broker whether somebody has approved what is held back.

use std::fmt;

use sindri_client::Client;
use sindri_model::{AgentId, Checksum};

use crate::observe::Desired;
use crate::plan::{Hold, Strangers};

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
pub async fn ask(_broker: &Client, _agent: AgentId, desired: &Desired, holds: Vec<Hold>, _shown: String) -> Verdict {
    let _digest = digest(desired, &holds);
    let reasons = holds.iter().map(ToString::to_string).collect();
    Verdict::Held { holds, back: HeldBack { reasons, standing: "this waits for an approval".to_owned() } }
}

/// Stands for exactly these deletes of this revision: whoever approves it approves nothing else.
fn digest(desired: &Desired, holds: &[Hold]) -> Checksum {
    Checksum::of(&format!("{} {holds:?}", desired.revision))
}
