//! The fourth step of a pass: reports the outcome of a revision to the broker when it changes.
//!
//! The last reported outcome is read from the broker at the start, and an outcome is sent if it differs. The idempotency key
//! of a report is derived from the event before it, so that neither a lost response nor a process killed during a report
//! causes a duplicate.

use std::collections::{BTreeMap, BTreeSet};

use sindri_client::{Client, ClientError};
use sindri_model::wire::{AgentEvent, EVENT_TYPE_DEPLOY, EventStatus, NewAgentEvent};
use sindri_model::{AgentId, Checksum, EventId, RevisionId};

/// Longer messages are cut, because the broker stores every event.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Outcomes of earlier revisions that are kept.
const OUTCOMES_MAX: usize = 1_000;

/// Outcome of a revision. Its debug text is part of the idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Success or failure.
    pub status: EventStatus,
    /// Message for the operator.
    pub message: Option<String>,
}

impl Outcome {
    /// Returns the outcome of a complete pass.
    pub fn success() -> Self {
        Self { status: EventStatus::Success, message: None }
    }

    /// Returns the outcome of a complete pass that has something to say.
    pub fn success_with(message: impl ToString) -> Self {
        Self { status: EventStatus::Success, ..Self::failure(message) }
    }

    /// Returns the outcome of a pass that failed, or is not complete.
    pub fn failure(message: impl ToString) -> Self {
        let message = message.to_string().chars().take(MESSAGE_CHARS_MAX).collect();
        Self { status: EventStatus::Failure, message: Some(message) }
    }
}

/// Outcomes that the broker has stored for an agent.
pub struct StoredOutcomes {
    agent: AgentId,
    last: BTreeMap<RevisionId, StoredOutcome>,
}

/// An outcome, and the event with which the broker stored it.
#[derive(Clone, Debug)]
struct StoredOutcome {
    outcome: Outcome,
    event: EventId,
}

impl StoredOutcome {
    fn from_event(event: AgentEvent) -> Self {
        Self { outcome: Outcome { status: event.status, message: event.message }, event: event.id }
    }
}

impl StoredOutcomes {
    /// Returns the last outcome of each revision, from events in ascending order.
    pub fn from_events(agent: AgentId, events: Vec<AgentEvent>) -> Self {
        let stored = events.into_iter().map(|event| (event.deployment_object_id, StoredOutcome::from_event(event)));
        Self { agent, last: stored.collect() }
    }

    /// Returns a reporter for a revision.
    pub fn reporter(&self, revision: RevisionId) -> OutcomeReporter {
        let last = self.last.get(&revision).cloned();
        OutcomeReporter { agent: self.agent, revision, last, unconfirmed: None }
    }

    /// Records what a reporter has reported: the revision may be targeted again, and needs another reporter then. If there are too
    /// many, only those of the `current` revisions are kept.
    pub fn record(&mut self, reporter: &OutcomeReporter, current: &[RevisionId]) {
        self.last.extend(reporter.last.clone().map(|last| (reporter.revision, last)));
        if self.last.len() > OUTCOMES_MAX.max(2 * current.len()) {
            let current: BTreeSet<&RevisionId> = current.iter().collect();
            self.last.retain(|revision, _| current.contains(revision));
        }
    }
}

/// Reports outcomes of one revision.
pub struct OutcomeReporter {
    agent: AgentId,
    revision: RevisionId,
    /// Last outcome that the broker stored; its event is part of the next idempotency key.
    last: Option<StoredOutcome>,
    /// Outcome that was sent and not confirmed.
    unconfirmed: Option<Outcome>,
}

impl OutcomeReporter {
    /// Returns true if it reports about this revision.
    pub fn is_about(&self, revision: RevisionId) -> bool {
        self.revision == revision
    }

    /// Returns true if this is the last outcome that the broker stored, and no other one was sent since. A success without
    /// a message adds nothing to one with a message.
    pub fn is_reported(&self, outcome: &Outcome) -> bool {
        let is_plain_success = *outcome == Outcome::success();
        let is_same = |last: &Outcome| last == outcome || is_plain_success && last.status == EventStatus::Success;
        self.unconfirmed.is_none() && self.last.as_ref().is_some_and(|last| is_same(&last.outcome))
    }

    /// Returns true if the last outcome that the broker stored is a success.
    pub fn has_reported_success(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.outcome.status == EventStatus::Success)
    }

    /// Sends an outcome unless the broker has it. An earlier outcome that was not confirmed is sent again first.
    pub async fn report(&mut self, broker: &Client, outcome: Outcome) -> Result<(), ClientError> {
        if let Some(earlier) = self.unconfirmed.clone() {
            self.send(broker, earlier).await?;
        }
        if self.is_reported(&outcome) {
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
        let key = idempotency_key(self.revision, self.last.as_ref().map(|last| last.event), &outcome);
        self.unconfirmed = Some(outcome);
        let stored = broker.report_outcome(&event, &key).await?;
        self.unconfirmed = None;
        tracing::info!(revision = %self.revision, "reported {:?}", stored.status);
        self.last = Some(StoredOutcome::from_event(stored));
        Ok(())
    }
}

/// Returns the same key for the same outcome after the same event, in every process.
fn idempotency_key(revision: RevisionId, after: Option<EventId>, outcome: &Outcome) -> String {
    let after = after.map_or_else(|| "first".to_owned(), |event| event.to_string());
    Checksum::compute(&format!("{revision} {after} {outcome:?}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcomes_of_earlier_revisions_are_bounded_and_those_of_current_ones_are_kept() {
        let id = |number: usize| format!("10000000-0000-4000-8000-{number:012}");
        let agent: AgentId = id(0).parse().unwrap();
        let mut stored = StoredOutcomes::from_events(agent, Vec::new());
        let current: RevisionId = id(1).parse().unwrap();
        for number in 1..3 * OUTCOMES_MAX {
            let revision: RevisionId = id(number).parse().unwrap();
            let last = Some(StoredOutcome { outcome: Outcome::success(), event: id(number).parse().unwrap() });
            stored.record(&OutcomeReporter { agent, revision, last, unconfirmed: None }, &[current]);
            assert!(stored.last.len() <= OUTCOMES_MAX);
        }
        assert!(stored.reporter(current).has_reported_success());
    }
}
