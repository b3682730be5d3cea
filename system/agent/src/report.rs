//! The fourth step: tells the broker how a revision went, once per change.
//!
//! Outcomes are levels: what the broker heard last is read from it at the start, and an outcome is sent when
//! it differs. The key of a report follows from what was heard before it, so that neither a lost answer nor a
//! process that was killed while its report was on the way doubles it.

use std::collections::BTreeMap;

use sindri_client::{Client, ClientError};
use sindri_model::wire::{AgentEvent, EVENT_TYPE_DEPLOY, EventStatus, NewAgentEvent};
use sindri_model::{AgentId, Checksum, EventId, RevisionId};

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
    /// The event that carried it; part of the key of the next report.
    last_event: Option<EventId>,
    /// Sent, and not known to have been heard.
    unheard: Option<Outcome>,
}

impl Heard {
    fn note(&mut self, event: AgentEvent) {
        self.last_event = Some(event.id);
        self.last = Some(Outcome { status: event.status, message: event.message });
    }
}

/// Reports outcomes and remembers what the broker heard.
pub struct Reporter {
    agent: AgentId,
    heard: BTreeMap<RevisionId, Heard>,
}

impl Reporter {
    /// Starts from what the broker has recorded, oldest first.
    pub fn new(agent: AgentId, recorded: Vec<AgentEvent>) -> Self {
        let mut heard: BTreeMap<RevisionId, Heard> = BTreeMap::new();
        for event in recorded {
            heard.entry(event.deployment_object_id).or_default().note(event);
        }
        Self { agent, heard }
    }

    /// Whether the broker last heard exactly this of the revision, and nothing else is on its way.
    pub fn is_known(&self, revision: RevisionId, outcome: &Outcome) -> bool {
        let heard = self.heard.get(&revision);
        heard.is_some_and(|heard| heard.unheard.is_none() && heard.last.as_ref() == Some(outcome))
    }

    /// Sends an outcome unless the broker knows it; first what was sent before and may not have been heard.
    pub async fn report(&mut self, broker: &Client, revision: RevisionId, outcome: Outcome) -> Result<(), ClientError> {
        let earlier = self.heard.get(&revision).and_then(|heard| heard.unheard.clone());
        if let Some(earlier) = earlier {
            self.send(broker, revision, earlier).await?;
        }
        if self.is_known(revision, &outcome) {
            return Ok(());
        }
        self.send(broker, revision, outcome).await
    }

    async fn send(&mut self, broker: &Client, revision: RevisionId, outcome: Outcome) -> Result<(), ClientError> {
        let heard = self.heard.entry(revision).or_default();
        let event = NewAgentEvent {
            agent_id: self.agent,
            deployment_object_id: revision,
            event_type: EVENT_TYPE_DEPLOY.to_owned(),
            status: outcome.status.clone(),
            message: outcome.message.clone(),
        };
        let key = key(revision, heard.last_event, &outcome);
        heard.unheard = Some(outcome);
        let recorded = broker.report(&event, &key).await?;
        heard.unheard = None;
        tracing::info!(%revision, "reported {:?}", recorded.status);
        heard.note(recorded);
        Ok(())
    }

    /// Forgets revisions that the broker no longer speaks of.
    pub fn retain(&mut self, revisions: impl Fn(&RevisionId) -> bool) {
        self.heard.retain(|revision, _| revisions(revision));
    }
}

/// The same for the same outcome after the same event, whichever process sends it.
fn key(revision: RevisionId, after: Option<EventId>, outcome: &Outcome) -> String {
    let after = after.map_or_else(|| "first".to_owned(), |event| event.to_string());
    Checksum::of(&format!("{revision} {after} {outcome:?}")).to_string()
}
