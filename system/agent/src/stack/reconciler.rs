//! Runs a pass of a stack and reports about it: outcome, conditions, health.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::policy::DriftMode;
use sindri_model::wire::{DeploymentObjectHealthUpdate, ReportedCondition, StackStatusReport};
use sindri_model::{AgentId, Clock, ObjectKey, RevisionId, StackId};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::dependencies::ReadyStacks;
use super::health::{read_results, to_wire_status};
use super::object_events::find_object_events;
use super::outcome::{Outcome, OutcomeReporter};
use super::report_session::ReportSessions;
use super::state::ReconcileState;
use crate::cluster::Cluster;
use crate::cluster::reflector::Reflector;
use crate::panics::catch_panic;
use crate::pass::cache::PassCache;
use crate::pass::former_stacks::FormerStacks;
use crate::pass::run::Pass;
use crate::pass::summary::{PassError, PassSummary};
use crate::settings::Settings;
use crate::target::instruction::Instruction;
use crate::target::policy::EffectivePolicy;
use crate::target::revision::Revision;
use crate::target::state::LatestTargetState;
use crate::telemetry::metrics::{Metrics, PassOutcome};

/// Characters of the line in the log about a failed pass: its reason may name thousands of objects.
const LOGGED_CHARS_MAX: usize = 4_000;

/// Longest time that other stacks wait for one pass.
pub const TURN_MAX: Duration = Duration::from_secs(2);

/// Runs passes of the stacks of one agent.
pub struct Reconciler<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Client of the broker.
    pub broker: &'a Client,
    /// Labelled objects of the cluster.
    pub reflector: &'a Reflector,
    /// Stacks that had objects in the cluster before the first inventory.
    pub former_stacks: FormerStacks,
    /// Target state of the agent.
    pub target: &'a LatestTargetState,
    /// Id of the agent.
    pub agent: AgentId,
    /// Settings of the agent.
    pub settings: &'a Settings,
    /// Clock for the times in reports.
    pub clock: &'a Clock,
    /// Metrics of the passes.
    pub metrics: &'a Metrics,
    /// Stacks that are ready, for those that depend on them.
    pub ready_stacks: ReadyStacks,
    /// Reports that the broker has stored.
    pub reports: ReportSessions,
}

impl Reconciler<'_> {
    /// Runs a pass of a stack and reports about it, unless it is interrupted: `superseded` is cancelled when there is a newer
    /// revision or policy of the stack, or the agent must not act any more.
    pub async fn reconcile(
        &self,
        revision: Arc<Revision>,
        mut state: ReconcileState,
        superseded: CancellationToken,
    ) -> (StackId, ReconcileState) {
        let (stack, started) = (revision.stack_id, Instant::now());
        if let Err(panic) = catch_panic(self.pass_unless_removed(&revision, &mut state, &superseded)).await {
            let name = self.target.claims().name(stack);
            tracing::error!("stack {name}: {panic}; its next pass begins anew");
            self.metrics.record_pass(stack, PassOutcome::Panicked, started.elapsed());
            // It may be half changed.
            state = ReconcileState::default();
            if let Err(panic) = catch_panic(self.report_panic(&revision, panic, &mut state)).await {
                tracing::error!("stack {name}: {panic}; the failure of its pass is not reported");
            }
        }
        (stack, state)
    }

    /// Reports the failure of a pass that panicked outside of the work on its objects.
    async fn report_panic(&self, revision: &Revision, panic: String, state: &mut ReconcileState) {
        if revision.is_from_copy() {
            return;
        }
        self.prepare_reporter(revision, state).await;
        let Some(reporter) = &mut state.reporter else { return };
        if let Err(error) = reporter.report(self.broker, Outcome::failure(panic)).await {
            tracing::warn!("{error}");
        }
    }

    async fn pass_unless_removed(
        &self,
        revision: &Revision,
        state: &mut ReconcileState,
        superseded: &CancellationToken,
    ) {
        if !revision.is_from_copy() {
            self.prepare_reporter(revision, state).await;
        }
        (state.is_due, state.has_become_ready) = (false, false);
        // The broker stops sending a removal that it knows to be complete.
        if !state.is_removal_confirmed(revision)
            && let Err(error) = self.pass_and_report(revision, state, superseded).await
        {
            tracing::warn!("{error}");
            if error.is_other_leader() {
                // The leader announces itself at once; a former one tries again with the next poll.
                state.is_due = self.reports.end().await;
            }
        }
    }

    /// Gives the stack a reporter for its revision; none if the outcomes that the broker has stored cannot be read.
    async fn prepare_reporter(&self, revision: &Revision, state: &mut ReconcileState) {
        let Some(epoch) = self.target.epoch() else { return };
        match self.reports.create_reporter(self.broker, revision.id, epoch).await {
            Ok((session, reporter)) => {
                state.forget_reports_of_other_sessions(session);
                if !state.reporter.as_ref().is_some_and(|reporter| reporter.is_about(revision.id)) {
                    if !state.has_applied(revision.id) {
                        state.drift.reset();
                        state.reset_waits();
                    }
                    state.reporter = Some(reporter);
                }
            }
            // Nothing is reported before it is known what the broker has stored.
            Err(error) => {
                tracing::warn!("{error}");
                state.reporter = None;
            }
        }
    }

    async fn pass_and_report(
        &self,
        revision: &Revision,
        state: &mut ReconcileState,
        superseded: &CancellationToken,
    ) -> Result<(), ClientError> {
        let annotations = self.target.annotations(revision.stack_id);
        let policy = EffectivePolicy::from_annotations(self.settings, &annotations);
        let (started, claims) = (Instant::now(), self.target.claims());
        let mut pass = self.run_pass(revision, &policy, state, superseded).await;
        let is_ended = self.cluster.shutdown().is_cancelled() || superseded.is_cancelled();
        let is_interrupted = match &pass {
            Ok(summary) => is_ended && !summary.unreadable.is_empty(),
            Err(error) => is_ended || error.is_interrupted(),
        };
        if is_interrupted {
            state.is_due = true;
            // The shutdown or another target state interrupted the pass; the next process, or the next pass, continues.
            return Ok(());
        }
        let interval = self.settings.polling_interval;
        state.record_pass(revision, &pass, &policy, interval);
        state.record_claims(&pass, claims);
        match &pass {
            Ok(_) if state.has_applied(revision.id) => self.target.set_denied(revision, BTreeSet::new()),
            Ok(_) => {}
            Err(error) => {
                error.denied_objects().into_iter().for_each(|denied| self.target.set_denied(revision, denied))
            }
        }
        if let (Ok(summary), DriftMode::Correct, false) = (&pass, policy.drift, policy.is_suspended) {
            self.metrics.count_corrections(summary.drifted.len());
        }
        self.metrics.set_drifted(revision.stack_id, state.drift.persistent(interval).is_some());
        if revision.is_from_copy() {
            // The broker cannot be reached. The first pass after its response reports.
            return Ok(());
        }
        let waiting = pass.as_ref().ok().and_then(|summary| summary.waiting.clone());
        if let (Some(waiting), Ok(summary)) = (&waiting, &mut pass) {
            // The outcome follows from the health of the objects that others wait for.
            self.update_health(revision, summary, state).await;
            state.record_waiting(revision.id, waiting);
        }
        // Otherwise the outcome is reported before the health is read, which may take some seconds.
        let reported = self.report_outcome(&pass, policy.timeout, state).await;
        if pass.is_err() {
            self.record_results(revision, state).await;
        }
        if let (None, Ok(summary)) = (&waiting, &mut pass) {
            self.update_health(revision, summary, state).await;
        }
        let is_ready = state.is_ready(revision);
        self.metrics.set_ready(revision.stack_id, is_ready);
        state.has_become_ready = self.ready_stacks.record(revision.stack_id, is_ready.then_some(revision.id));
        if self.cluster.shutdown().is_cancelled() {
            // The health could not be read because of the shutdown, so it is not reported; the next process reads it.
            return reported;
        }
        self.create_events(revision, &pass, state).await;
        let is_incomplete = pass.as_ref().map_or(true, |summary| !summary.unreadable.is_empty());
        let has_failed = is_incomplete || state.health.has_read_error();
        state.stuck = (has_failed && started.elapsed() >= TURN_MAX).then_some(revision.id);
        reported?;
        if state.reporter.is_none() {
            // This process may not be the leader any more.
            return Ok(());
        }
        self.report_status(revision, &pass, state).await
    }

    /// Stores the results of objects that are applied once, after a pass that failed: it may be repeated until they are gone.
    async fn record_results(&self, revision: &Revision, state: &mut ReconcileState) {
        let stack = revision.stack_id;
        let saved = match state.cache.find_without_result(self.cluster, stack).await {
            Ok(objects) if objects.is_empty() => return,
            Ok(objects) => {
                let results = read_results(self.cluster, self.metrics, objects).await;
                state.cache.save_results(self.cluster, stack, |key| results.get(key).cloned()).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!("stack {}: {error}", self.target.claims().name(stack));
        }
    }

    /// Reads the health of the objects, and stores the results of those that are applied once.
    async fn update_health(&self, revision: &Revision, summary: &mut PassSummary, state: &mut ReconcileState) {
        let declared = std::mem::take(&mut summary.declared);
        state.health.update(self.cluster, self.metrics, declared, summary.declares_nothing).await;
        let find_result = |key: &ObjectKey| state.health.find_result(key);
        let saved = state.cache.save_results(self.cluster, revision.stack_id, find_result).await;
        if let Err(error) = saved {
            tracing::warn!("stack {}: {error}", revision.stack_id);
        }
    }

    async fn run_pass(
        &self,
        revision: &Revision,
        policy: &EffectivePolicy,
        state: &mut ReconcileState,
        superseded: &CancellationToken,
    ) -> Result<PassSummary, PassError> {
        let (instruction, started) = (Instruction::new(self.target, revision), Instant::now());
        let dependencies = self.target.dependencies(revision.stack_id);
        let unready_dependencies = self.ready_stacks.find_unready(&dependencies, &self.target.revisions());
        let problems = policy.find_problems(revision.is_deletion_marker);
        if !problems.is_empty() {
            return Err(PassError::Policy(problems));
        }
        let account = policy.service_account.as_ref();
        // Nothing is deleted before the broker has responded.
        let cluster = if revision.is_from_copy() { &self.cluster.without_deletes() } else { self.cluster };
        let cluster = cluster.with_retries_until(superseded.clone());
        let pass = Pass {
            cluster: &cluster,
            write_cluster: &cluster.as_service_account(account),
            broker: self.broker,
            reflector: self.reflector,
            former_stacks: &self.former_stacks,
            agent: self.agent,
            revision,
            instruction: &instruction,
            policy,
            unready_dependencies: &unready_dependencies,
            is_reported: state.reporter.as_ref().map(OutcomeReporter::has_reported_success),
        };
        let result = match timeout(policy.timeout, catch_panic(pass.run(&mut state.cache))).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(PassError::Panicked(panic)),
            Err(_) => Err(PassError::TimedOut(policy.timeout)),
        };
        if let Err(PassError::Panicked(_) | PassError::TimedOut(_)) = &result {
            state.cache = PassCache::default();
        }
        if result.as_ref().is_err_and(PassError::has_outdated_types) {
            state.cache.desired = None;
        }
        let (metrics, stack) = (self.metrics, revision.stack_id);
        metrics.record_pass(stack, to_label(&result), started.elapsed());
        metrics.set_blocked(stack, result.as_ref().is_ok_and(|summary| summary.held.is_some()));
        state.cache.managed_objects().into_iter().for_each(|count| metrics.set_managed_objects(stack, count));
        if let Err(error) = &result {
            let reason: String = error.to_string().chars().take(LOGGED_CHARS_MAX).collect();
            tracing::warn!("stack {}: {reason}", self.target.claims().name(stack));
        }
        result
    }

    /// Reports the outcome of a pass, unless the broker has it.
    async fn report_outcome(
        &self,
        pass: &Result<PassSummary, PassError>,
        timeout: Duration,
        state: &mut ReconcileState,
    ) -> Result<(), ClientError> {
        match (state.decide_outcome(pass, timeout), &mut state.reporter) {
            (Some(outcome), Some(reporter)) if !reporter.is_reported(&outcome) => {
                reporter.report(self.broker, outcome).await?;
                let current: Vec<RevisionId> = self.target.revisions().iter().map(|revision| revision.id).collect();
                self.reports.record(reporter, &current).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Creates Kubernetes Events about the objects that did not become as declared.
    async fn create_events(
        &self,
        revision: &Revision,
        pass: &Result<PassSummary, PassError>,
        state: &mut ReconcileState,
    ) {
        let waiting = pass.as_ref().ok().and_then(|summary| summary.waiting.as_ref());
        let failing = waiting.map(|waiting| state.health.describe_failing(waiting.objects())).unwrap_or_default();
        let drift = state.drift.persistent(self.settings.polling_interval);
        let events = find_object_events(pass, failing, drift.as_ref());
        if !events.is_empty() {
            state.events.create_new(self.cluster, self.clock, revision.id, &state.cache, events).await;
        }
    }

    /// Reports conditions and health if they changed. A stack whose removal is complete has none.
    async fn report_status(
        &self,
        revision: &Revision,
        pass: &Result<PassSummary, PassError>,
        state: &mut ReconcileState,
    ) -> Result<(), ClientError> {
        if state.is_removal_confirmed(revision) {
            return Ok(());
        }
        let conditions = state.conditions(revision, pass, self.settings.polling_interval);
        // A broker without these endpoints accepts only events.
        accept_not_found(self.report_conditions(revision, conditions, state).await)?;
        accept_not_found(self.report_health(revision, state).await)
    }

    async fn report_conditions(
        &self,
        revision: &Revision,
        conditions: Vec<ReportedCondition>,
        state: &mut ReconcileState,
    ) -> Result<(), ClientError> {
        let report = StackStatusReport { deployment_object_id: revision.id, conditions };
        if state.reported_conditions.as_ref() == Some(&report) {
            return Ok(());
        }
        self.broker.report_stack_status(self.agent, revision.stack_id, &report).await?;
        state.reported_conditions = Some(report);
        Ok(())
    }

    async fn report_health(&self, revision: &Revision, state: &mut ReconcileState) -> Result<(), ClientError> {
        let summary = state.health.summary();
        if revision.is_deletion_marker || summary.total == 0 {
            return Ok(());
        }
        let report = (revision.id, to_wire_status(&summary), summary.to_json());
        if state.reported_health.as_ref() == Some(&report) {
            return Ok(());
        }
        let (id, status, json) = report.clone();
        let update = DeploymentObjectHealthUpdate { id, status, summary: Some(json), checked_at: self.clock.now() };
        self.broker.report_health(self.agent, update).await?;
        state.reported_health = Some(report);
        Ok(())
    }
}

fn accept_not_found(result: Result<(), ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

fn to_label(pass: &Result<PassSummary, PassError>) -> PassOutcome {
    match pass {
        Ok(summary) if !summary.unreadable.is_empty() => PassOutcome::Failed,
        Ok(summary) if summary.held.is_some() || summary.is_suspended => PassOutcome::Waiting,
        Ok(summary) if summary.waiting.is_some() => PassOutcome::Waiting,
        Ok(summary) if summary.terminating.is_empty() => PassOutcome::Done,
        Ok(_) => PassOutcome::Waiting,
        Err(PassError::TimedOut(_)) => PassOutcome::TimedOut,
        Err(error) if error.has_panicked() => PassOutcome::Panicked,
        Err(_) => PassOutcome::Failed,
    }
}
