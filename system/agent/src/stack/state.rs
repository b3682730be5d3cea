//! State of a stack between its passes, and what its reports follow from.

use std::sync::Arc;
use std::time::Duration;

use sindri_model::RevisionId;
use sindri_model::policy::DriftMode;
use sindri_model::wire::{ConditionStatus, HealthStatus, ReportedCondition, StackStatusReport};
use tokio::time::Instant;

use super::conditions::{ConditionInputs, ReadyCondition};
use super::drift::DriftHistory;
use super::health::StackHealth;
use super::object_events::ObjectEvents;
use super::outcome::{Outcome, OutcomeReporter};
use crate::pass::cache::PassCache;
use crate::pass::summary::{PassError, PassSummary, Waiting};
use crate::target::claims::Claims;
use crate::target::policy::EffectivePolicy;
use crate::target::revision::Revision;

/// Passes in a row that find deleted objects still terminating, after which that is reported: a finalizer may block forever.
const SILENT_WAITS_MAX: u32 = 10;

/// State of a stack between its passes. It may be lost: a new process builds it again.
#[derive(Default)]
pub struct ReconcileState {
    pub cache: PassCache,
    pub reporter: Option<OutcomeReporter>,
    /// Passes in a row that found deleted objects still terminating.
    waits: u32,
    pub drift: DriftHistory,
    /// Kubernetes Events that were created.
    pub events: ObjectEvents,
    /// Revision that was last applied.
    applied: Option<RevisionId>,
    pub health: StackHealth,
    /// Conditions that the broker stored last.
    pub reported_conditions: Option<StackStatusReport>,
    /// Number of the session in which all this was reported; `None` before the first pass.
    reported_in: Option<u32>,
    /// Health that the broker stored last.
    pub reported_health: Option<(RevisionId, HealthStatus, serde_json::Value)>,
    /// Revision whose last pass failed after its full TURN_MAX; its next turn is TURN_STUCK_MAX.
    pub stuck: Option<RevisionId>,
    /// Time before which object events start no pass.
    pub paused_until: Option<Instant>,
    /// Claims of all stacks when the last pass began, if another stack prevented something by what it declares.
    pub claims: Option<Arc<Claims>>,
    /// True if another pass is due at once: the target state changed during the last one, or the objects that others wait
    /// for are ready.
    pub is_due: bool,
    /// Revision that waits, since when, and for what after the last pass.
    waiting: Option<(RevisionId, Instant, Waiting)>,
    /// True if the last pass made the stack ready, so that stacks that depend on it can continue.
    pub has_become_ready: bool,
}

impl ReconcileState {
    /// Forgets what was reported in other sessions than this one: the broker may not have it any more.
    pub fn forget_reports_of_other_sessions(&mut self, session: u32) {
        if self.reported_in.is_some_and(|number| number != session) {
            (self.reporter, self.reported_conditions, self.reported_health) = (None, None, None);
        }
        self.reported_in = Some(session);
    }

    /// Returns true if this revision was applied last.
    pub fn has_applied(&self, revision: RevisionId) -> bool {
        self.applied == Some(revision)
    }

    /// Begins to count the waits for deleted objects anew.
    pub fn reset_waits(&mut self) {
        self.waits = 0;
    }

    /// Records the result of a pass for the next ones.
    pub fn record_pass(
        &mut self,
        revision: &Revision,
        pass: &Result<PassSummary, PassError>,
        policy: &EffectivePolicy,
        interval: Duration,
    ) {
        self.paused_until = None;
        match pass {
            Ok(summary) => {
                let is_corrected = policy.drift == DriftMode::Correct && !summary.is_suspended;
                self.drift.record(&summary.drifted, is_corrected);
                if summary.waiting.is_none() {
                    self.waiting = None;
                }
                let is_waiting = summary.held.is_some() || !summary.terminating.is_empty() || summary.is_suspended;
                let is_complete =
                    (!is_waiting || summary.was_applied) && summary.waiting.is_none() && summary.unreadable.is_empty();
                self.applied = is_complete.then_some(revision.id).or(self.applied);
                if !summary.drifted.is_empty() {
                    self.paused_until = Some(Instant::now() + self.drift.pause(interval));
                }
            }
            Err(error) => {
                if self.applied == Some(revision.id) && error.is_failed_write() {
                    self.drift.record_failure();
                }
                // The next poll retries it; events of its own writes must not.
                self.paused_until = Some(Instant::now() + interval);
            }
        }
    }

    /// Records the claims of all stacks when a pass began, if its result depends on what another stack declares.
    pub fn record_claims(&mut self, pass: &Result<PassSummary, PassError>, claims: Arc<Claims>) {
        let is_concerned = match pass {
            Ok(summary) => !summary.claimed.is_empty(),
            Err(error) => error.is_caused_by_claim(),
        };
        self.claims = is_concerned.then_some(claims);
    }

    /// Records the health of the objects that others wait for.
    pub fn record_waiting(&mut self, revision: RevisionId, waiting: &Waiting) {
        let before = self.waiting.take().filter(|(waits, ..)| *waits == revision);
        let since = before.as_ref().map_or_else(Instant::now, |(_, since, _)| *since);
        self.cache.ready = self.health.find_ready();
        let objects = waiting.objects();
        let is_ready = !objects.is_empty() && objects.iter().all(|key| self.cache.ready.contains(key));
        // If the same objects were waited for before, another client may change them again and again: the next pass is that
        // of the next event or poll.
        self.is_due = is_ready && before.is_none_or(|(.., before)| before != *waiting);
        self.waiting = Some((revision, since, waiting.clone()));
    }

    /// Returns the failure to report while objects wait: one of those that they wait for has failed, or they wait too long.
    fn decide_outcome_of_waiting(&self, waiting: &Waiting, timeout: Duration) -> Option<Outcome> {
        let failing = self.health.describe_failing(waiting.objects());
        if !failing.is_empty() {
            let reasons: Vec<String> = failing.into_iter().map(|(_, reason)| reason).collect();
            return Some(Outcome::failure(format!("{}; {waiting}", reasons.join("; "))));
        }
        let is_late = self.waiting.as_ref().is_some_and(|(_, since, _)| since.elapsed() >= timeout);
        is_late.then(|| Outcome::failure(format!("not ready after {} s: {waiting}", timeout.as_secs())))
    }

    /// Returns the outcome to report; `None` while deleted objects are terminating, and while objects wait for others.
    pub fn decide_outcome(&mut self, pass: &Result<PassSummary, PassError>, timeout: Duration) -> Option<Outcome> {
        let summary = match pass {
            Ok(summary) => summary,
            Err(error) => return Some(Outcome::failure(error)),
        };
        if summary.is_suspended {
            return None;
        }
        let problems: Vec<String> =
            summary.held.iter().map(ToString::to_string).chain(summary.describe_unreadable()).collect();
        if !problems.is_empty() {
            return Some(Outcome::failure(problems.join("; ")));
        }
        if let Some(waiting) = &summary.waiting {
            return self.decide_outcome_of_waiting(waiting, timeout);
        }
        if summary.terminating.is_empty() {
            self.waits = 0;
            if summary.released.is_empty() {
                return Some(Outcome::success());
            }
            let keys: Vec<String> = summary.released.iter().map(ToString::to_string).collect();
            return Some(Outcome::success_with(format!("kept, and released from the stack: {}", keys.join(", "))));
        }
        self.waits += 1;
        let is_long = self.waits >= SILENT_WAITS_MAX;
        is_long.then(|| Outcome::failure(summary.describe_terminating("being deleted, and still not gone")))
    }

    /// Returns true if this revision is applied, and all of its objects are ready.
    pub fn is_ready(&self, revision: &Revision) -> bool {
        let is_applied = !revision.is_deletion_marker && self.applied == Some(revision.id);
        is_applied && self.health.ready_condition().status == ConditionStatus::True
    }

    /// Returns true if the broker has stored that a removal is complete.
    pub fn is_removal_confirmed(&self, revision: &Revision) -> bool {
        let success = Outcome::success();
        revision.is_deletion_marker && self.reporter.as_ref().is_some_and(|reporter| reporter.is_reported(&success))
    }

    /// Returns the conditions to report.
    pub fn conditions(
        &self,
        revision: &Revision,
        pass: &Result<PassSummary, PassError>,
        interval: Duration,
    ) -> Vec<ReportedCondition> {
        let ready = if revision.is_deletion_marker || self.applied != Some(revision.id) {
            let (status, reason) = (ConditionStatus::Unknown, "NotApplied".to_owned());
            ReadyCondition { status, reason, message: String::new() }
        } else {
            self.health.ready_condition()
        };
        let (is_removal, drift) = (revision.is_deletion_marker, self.drift.persistent(interval));
        ConditionInputs { is_removal, pass, drift, ready }.to_conditions()
    }
}
