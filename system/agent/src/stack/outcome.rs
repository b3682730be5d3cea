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

/// What the broker has heard of an agent.
pub struct Recorded {
    agent: AgentId,
    last: BTreeMap<RevisionId, AgentEvent>,
}

impl Recorded {
    /// From its events, oldest first.
    pub fn new(agent: AgentId, events: Vec<AgentEvent>) -> Self {
        Self { agent, last: events.into_iter().map(|event| (event.deployment_object_id, event)).collect() }
    }

    /// Who reports about a revision.
    pub fn reporter(&self, revision: RevisionId) -> Reporter {
        let mut reporter = Reporter { agent: self.agent, revision, last: None, last_event: None, unheard: None };
        self.last.get(&revision).cloned().into_iter().for_each(|event| reporter.note(event));
        reporter
    }
}

/// Reports about one revision, and remembers what the broker heard of it.
pub struct Reporter {
    agent: AgentId,
    revision: RevisionId,
    last: Option<Outcome>,
    /// The event that carried it; part of the key of the next report.
    last_event: Option<EventId>,
    /// Sent, and not known to have been heard.
    unheard: Option<Outcome>,
}

impl Reporter {
    /// Whether it is the one for this revision.
    pub fn is_about(&self, revision: RevisionId) -> bool {
        self.revision == revision
    }

    /// Whether the broker last heard exactly this of the revision, and nothing else is on its way.
    pub fn is_known(&self, outcome: &Outcome) -> bool {
        self.unheard.is_none() && self.last.as_ref() == Some(outcome)
    }

    /// Sends an outcome unless the broker knows it; first what was sent before and may not have been heard.
    pub async fn report(&mut self, broker: &Client, outcome: Outcome) -> Result<(), ClientError> {
        if let Some(earlier) = self.unheard.clone() {
            self.send(broker, earlier).await?;
        }
        if self.is_known(&outcome) {
            return Ok(());
        }
        self.send(broker, outcome).await
    }

    async fn send(&mut self, broker: &Client, outcome: Outcome) -> Result<(), ClientError> {
        let event = NewAgentEvent {
            agent_id: self.agent,
            deployment_object_id: self.revision,
            event_type: EVENT_TYPE_DEPLOY.to_owned(),
            status: outcome.status.clone(),
            message: outcome.message.clone(),
        };
        let key = key(self.revision, self.last_event, &outcome);
        self.unheard = Some(outcome);
        let recorded = broker.report(&event, &key).await?;
        self.unheard = None;
        tracing::info!(revision = %self.revision, "reported {:?}", recorded.status);
        self.note(recorded);
        Ok(())
    }

    fn note(&mut self, event: AgentEvent) {
        self.last_event = Some(event.id);
        self.last = Some(Outcome { status: event.status, message: event.message });
    }
}

/// The same for the same outcome after the same event, whichever process sends it.
fn key(revision: RevisionId, after: Option<EventId>, outcome: &Outcome) -> String {
    let after = after.map_or_else(|| "first".to_owned(), |event| event.to_string());
    Checksum::of(&format!("{revision} {after} {outcome:?}")).to_string()
}
