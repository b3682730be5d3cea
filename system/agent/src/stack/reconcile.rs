//! One pass of a stack, and everything that is told of it: the outcome, the conditions, the health.

use std::sync::Arc;
use std::time::Duration;

use sindri_client::ClientError;
use sindri_model::wire::{
    ConditionStatus, DeploymentObject, DeploymentObjectHealthUpdate, HealthStatus, ReportedCondition, StackStatusReport,
};
use sindri_model::{RevisionId, StackId};
use tokio::time::Instant;

use crate::pass::run::{PASS_MAX, PassError, Passed, StackMemory, Turn};
use crate::settings::DriftMode;
use crate::stack::conditions::{Ready, Standing};
use crate::stack::drift::Drift;
use crate::stack::health::{self, Health};
use crate::stack::outcome::{Outcome, Reporter};
use crate::stack::worker::{TURN_MAX, Worker};
use crate::target::policy::Policy;
use crate::target::revision::Revision;
use crate::telemetry::metrics::PassOutcome;

/// A deletion that takes longer than so many passes is reported: a finalizer may wait for ever.
const SILENT_WAITS: u32 = 10;

/// What a stack remembers between its passes. All of it can be lost: a fresh process finds it again.
#[derive(Default)]
pub(crate) struct Known {
    stack: StackMemory,
    reporter: Option<Reporter>,
    /// Passes in a row that found deleted objects not yet gone.
    waits: u32,
    drift: Drift,
    /// The revision that was last applied.
    applied: Option<RevisionId>,
    health: Health,
    /// What the broker heard last.
    told: Option<StackStatusReport>,
    told_health: Option<(RevisionId, HealthStatus, serde_json::Value)>,
    /// The revision for which the others waited as long as they do for anybody, and in vain: they hardly wait for it again.
    pub(crate) stuck: Option<RevisionId>,
    /// Nothing that is only seen makes a pass before.
    pub(crate) rests_until: Option<Instant>,
}

impl Worker<'_> {
    /// One pass and its reports.
    pub(crate) async fn round(&self, object: Arc<Revision>, mut known: Known) -> (StackId, Known) {
        let reporter = match known.reporter.take() {
            Some(reporter) if reporter.is_about(object.id) => reporter,
            _ => {
                known.drift.forget();
                self.recorded.reporter(object.id)
            }
        };
        let is_confirmed = object.is_deletion_marker && reporter.is_known(&Outcome::success());
        known.reporter = Some(reporter);
        // Once the broker has seen that, it stops sending it.
        if !is_confirmed {
            let (policy, faults) = Policy::of(&self.agent.settings, &self.target.annotations(object.stack_id));
            faults.iter().for_each(|fault| tracing::warn!("stack {}: {fault}", object.stack_id));
            let began = Instant::now();
            let mut passed = self.pass(&object, &policy, &mut known).await;
            if self.agent.cluster.stop.is_asked() && passed.is_err() {
                // It was not the stack's fault; the next process goes on.
                return (object.stack_id, known);
            }
            let interval = self.agent.settings.polling_interval;
            known.note(&object, &passed, &policy, interval);
            if let (Ok(passed), DriftMode::Correct) = (&passed, policy.drift) {
                self.agent.metrics.corrected(passed.drifted.len());
            }
            self.agent.metrics.drifted(object.stack_id, known.drift.persistent(interval).is_some());
            // Whoever waits for the outcome does not wait until it was found out how everything is doing.
            let told = self.tell_outcome(&passed, &mut known).await;
            if let Ok(passed) = &mut passed {
                known.health.look(&self.agent.cluster, std::mem::take(&mut passed.present)).await;
            }
            if self.agent.cluster.stop.is_asked() {
                // Nothing more can be asked of the cluster, and that is nothing to tell: the next process looks.
                told.unwrap_or_else(|error| tracing::warn!("{error}"));
                return (object.stack_id, known);
            }
            let is_in_vain = passed.is_err() || known.health.is_out_of_sight();
            known.stuck = (is_in_vain && began.elapsed() >= TURN_MAX).then_some(object.id);
            let told = match told {
                Ok(()) => self.tell_standing(&object, &passed, &mut known).await,
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                tracing::warn!("{error}");
            }
        }
        (object.stack_id, known)
    }

    async fn pass(&self, object: &Revision, policy: &Policy, known: &mut Known) -> Result<Passed, PassError> {
        let claims = self.target.claims();
        let turn = Turn { agent: self.id, revision: object, claims: &claims, policy, watches: self.watches };
        let (metrics, began) = (&self.agent.metrics, Instant::now());
        let passed = tokio::time::timeout(PASS_MAX, self.agent.pass(turn, &mut known.stack)).await;
        let passed = passed.unwrap_or_else(|_| {
            known.stack = StackMemory::default();
            Err(PassError::TooLong)
        });
        metrics.passed(ended(&passed), began.elapsed());
        metrics.blocked(object.stack_id, passed.as_ref().is_ok_and(|passed| passed.held.is_some()));
        known.stack.managed().into_iter().for_each(|count| metrics.managed(object.stack_id, count));
        if let Err(error) = &passed {
            tracing::warn!("stack {}: {error}", object.stack_id);
        }
        passed
    }

    /// Tells the broker how the pass went, unless it knows.
    async fn tell_outcome(&self, passed: &Result<Passed, PassError>, known: &mut Known) -> Result<(), ClientError> {
        match (known.outcome(passed), &mut known.reporter) {
            (Some(outcome), Some(reporter)) => reporter.report(&self.agent.broker, outcome).await,
            _ => Ok(()),
        }
    }

    /// Tells the broker how the stack stands, as far as it does not know that; of one that is gone there is nothing to tell.
    async fn tell_standing(
        &self,
        object: &DeploymentObject,
        passed: &Result<Passed, PassError>,
        known: &mut Known,
    ) -> Result<(), ClientError> {
        let success = Outcome::success();
        let is_removed = |reporter: &Reporter| object.is_deletion_marker && reporter.is_known(&success);
        if known.reporter.as_ref().is_some_and(is_removed) {
            return Ok(());
        }
        let conditions = known.conditions(object, passed, self.agent.settings.polling_interval);
        // Another broker may know of events only.
        absent_is_fine(self.tell_conditions(object, conditions, known).await)?;
        absent_is_fine(self.tell_health(object, known).await)
    }

    async fn tell_conditions(
        &self,
        object: &DeploymentObject,
        conditions: Vec<ReportedCondition>,
        known: &mut Known,
    ) -> Result<(), ClientError> {
        let report = StackStatusReport { deployment_object_id: object.id, conditions };
        if known.told.as_ref() == Some(&report) {
            return Ok(());
        }
        self.agent.broker.put_stack_status(self.id, object.stack_id, &report).await?;
        known.told = Some(report);
        Ok(())
    }

    async fn tell_health(&self, object: &DeploymentObject, known: &mut Known) -> Result<(), ClientError> {
        let summary = known.health.summary();
        if object.is_deletion_marker || summary.total == 0 {
            return Ok(());
        }
        let told = (object.id, health::status(&summary), summary.to_json());
        if known.told_health.as_ref() == Some(&told) {
            return Ok(());
        }
        let (id, status, json) = told.clone();
        let update =
            DeploymentObjectHealthUpdate { id, status, summary: Some(json), checked_at: self.agent.clock.now() };
        self.agent.broker.report_health(self.id, update).await?;
        known.told_health = Some(told);
        Ok(())
    }
}

fn absent_is_fine(told: Result<(), ClientError>) -> Result<(), ClientError> {
    match told {
        Err(error) if error.is_not_found() => Ok(()),
        told => told,
    }
}

fn ended(passed: &Result<Passed, PassError>) -> PassOutcome {
    match passed {
        Ok(passed) if passed.held.is_some() => PassOutcome::Waiting,
        Ok(passed) if passed.leaving.is_empty() => PassOutcome::Done,
        Ok(_) => PassOutcome::Waiting,
        Err(PassError::TooLong) => PassOutcome::TimedOut,
        Err(_) => PassOutcome::Failed,
    }
}

impl Known {
    /// What the next passes have to know of this one.
    fn note(
        &mut self,
        object: &DeploymentObject,
        passed: &Result<Passed, PassError>,
        policy: &Policy,
        interval: Duration,
    ) {
        self.rests_until = None;
        match passed {
            Ok(passed) => {
                self.drift.found(&passed.drifted, policy.drift != DriftMode::Correct);
                let is_done = passed.held.is_none() && passed.leaving.is_empty();
                self.applied = is_done.then_some(object.id).or(self.applied);
                if !passed.drifted.is_empty() {
                    self.rests_until = Some(Instant::now() + self.drift.rest(interval));
                }
            }
            Err(error) => {
                if self.applied == Some(object.id) && error.is_of_a_write() {
                    self.drift.failed();
                }
                // It is tried again with the next poll, whatever its own writes have set in motion.
                self.rests_until = Some(Instant::now() + interval);
            }
        }
    }

    /// What to say of a pass; nothing while what it deleted is on its way out.
    fn outcome(&mut self, passed: &Result<Passed, PassError>) -> Option<Outcome> {
        let passed = match passed {
            Ok(passed) => passed,
            Err(error) => return Some(Outcome::failure(error)),
        };
        if let Some(held) = &passed.held {
            return Some(Outcome::failure(held));
        }
        if passed.leaving.is_empty() {
            self.waits = 0;
            return Some(Outcome::success());
        }
        self.waits += 1;
        let keys: Vec<String> = passed.leaving.iter().map(ToString::to_string).collect();
        let is_long = self.waits >= SILENT_WAITS;
        is_long.then(|| Outcome::failure(format!("being deleted, and still not gone: {}", keys.join(", "))))
    }

    fn conditions(
        &self,
        object: &DeploymentObject,
        passed: &Result<Passed, PassError>,
        interval: Duration,
    ) -> Vec<ReportedCondition> {
        let ready = if object.is_deletion_marker || self.applied != Some(object.id) {
            let (status, reason) = (ConditionStatus::Unknown, "NotApplied".to_owned());
            Ready { status, reason, message: String::new() }
        } else {
            self.health.ready()
        };
        let (is_removal, drift) = (object.is_deletion_marker, self.drift.persistent(interval));
        Standing { is_removal, passed, drift, ready }.conditions()
    }
}
