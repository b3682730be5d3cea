//! The fourth step: tells the broker how a revision went, once per change.
//!
//! Outcomes are levels: what the broker heard last is read from it at the start, and an outcome is sent when
//! it differs. An outcome keeps the key of its first try until it was heard, so that a lost answer does not
//! double it; a process that is killed reads what was heard when it starts again.

use std::collections::BTreeMap;

use sindri_client::{Client, ClientError};
use sindri_model::wire::{AgentEvent, EVENT_TYPE_DEPLOY, EventStatus, NewAgentEvent};
use sindri_model::{AgentId, Entropy, EventId, RevisionId};

/// Longer messages are cut: the broker keeps every event.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// How a revision went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Carried out, or not.
    pub status: EventStatus,
    /// What an operator should know.
    pub message: Option<String>,
}

impl Outcome {
    /// Carried out.
    pub fn success() -> Self {
        Self { status: EventStatus::Success, message: None }
    }

    /// Not, or not wholly.
    pub fn failure(message: impl ToString) -> Self {
        let message = message.to_string().chars().take(MESSAGE_CHARS_MAX).collect();
        Self { status: EventStatus::Failure, message: Some(message) }
    }
}

#[derive(Default)]
struct Heard {
    last: Option<Outcome>,
    /// Sent, and not known to have been heard.
    unheard: Option<(Outcome, String)>,
}

/// Reports outcomes and remembers what the broker heard.
pub struct Reporter {
    agent: AgentId,
    entropy: Entropy,
    heard: BTreeMap<RevisionId, Heard>,
}

impl Reporter {
    /// Starts from what the broker has recorded, oldest first.
    pub fn new(agent: AgentId, entropy: Entropy, recorded: Vec<AgentEvent>) -> Self {
        let mut heard: BTreeMap<RevisionId, Heard> = BTreeMap::new();
        for event in recorded {
            let entry = heard.entry(event.deployment_object_id).or_default();
            entry.last = Some(Outcome { status: event.status, message: event.message });
        }
        Self { agent, entropy, heard }
    }

    /// Whether the broker last heard exactly this of the revision.
    pub fn is_known(&self, revision: RevisionId, outcome: &Outcome) -> bool {
        self.heard.get(&revision).and_then(|heard| heard.last.as_ref()) == Some(outcome)
    }

    /// Sends an outcome unless the broker knows it.
    pub async fn report(&mut self, broker: &Client, revision: RevisionId, outcome: Outcome) -> Result<(), ClientError> {
        if self.is_known(revision, &outcome) {
            return Ok(());
        }
        let event = NewAgentEvent {
            agent_id: self.agent,
            deployment_object_id: revision,
            event_type: EVENT_TYPE_DEPLOY.to_owned(),
            status: outcome.status,
            message: outcome.message.clone(),
        };
        let heard = self.heard.entry(revision).or_default();
        let key = match heard.unheard.take() {
            Some((sent, key)) if sent == outcome => key,
            _ => EventId::mint(&self.entropy).to_string(),
        };
        heard.unheard = Some((outcome, key.clone()));
        let recorded = broker.report(&event, &key).await?;
        heard.unheard = None;
        heard.last = Some(Outcome { status: recorded.status, message: recorded.message });
        tracing::info!(%revision, "reported {:?}", recorded.status);
        Ok(())
    }

    /// Forgets revisions that the broker no longer speaks of.
    pub fn retain(&mut self, revisions: impl Fn(&RevisionId) -> bool) {
        self.heard.retain(|revision, _| revisions(revision));
    }
}
