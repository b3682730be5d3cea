//! Proposals: plans of texts that are not submitted, by reads and dry runs only. They are made one at a time and beside the
//! passes, which do not wait for them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::limits::PLAN_BYTES_MAX;
use sindri_model::wire::{AgentProposal, DeploymentObject, PlanReport, StackPolicy as WirePolicy, cut_plan};
use sindri_model::{AgentId, Checksum, Sequence};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::Cluster;
use crate::cluster::reflector::Reflector;
use crate::panics::catch_panic;
use crate::preview::{StackPreview, preview_stack};
use crate::settings::Settings;
use crate::target::claims::Claims;
use crate::target::policy::EffectivePolicy;
use crate::target::revision::Revision;
use crate::target::state::{LatestTargetState, TargetContent};
use crate::telemetry::metrics::Metrics;

/// Time limit of one plan: less than `sindri diff` waits.
const PLAN_MAX: Duration = Duration::from_secs(50);
/// Attempts to read the proposals and to report their plans.
const ATTEMPTS_MAX: u32 = 5;
/// Wait between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Requests for proposals in one attempt. Each returns a few.
const ROUNDS_MAX: u32 = 32;

/// Plans proposals for one agent.
pub struct ProposalPlanner<'a> {
    /// Client of the broker.
    pub broker: &'a Client,
    /// Id of the agent.
    pub agent: AgentId,
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Labelled objects of the cluster.
    pub reflector: &'a Reflector,
    /// Settings of the agent.
    pub settings: &'a Settings,
    /// Target state of the agent: what the other stacks claim.
    pub target: &'a LatestTargetState,
    /// Counts panics.
    pub metrics: &'a Metrics,
    /// Notified when there is a new proposal.
    pub announced: &'a Notify,
}

impl ProposalPlanner<'_> {
    /// Plans proposals forever.
    pub async fn run(&self) -> Infallible {
        loop {
            self.announced.notified().await;
            if self.settings.lease {
                // Another process may hold the Lease; then this one ends here.
                self.cluster.write_gate().wait_until_open().await;
            }
            let mut attempts = 1;
            while let Err(error) = self.plan_all().await {
                tracing::warn!("{error}");
                if attempts >= ATTEMPTS_MAX || !error.is_transient() {
                    break;
                }
                attempts += 1;
                sleep(RETRY_INTERVAL).await;
            }
        }
    }

    /// Plans the proposals that the agent has not answered.
    async fn plan_all(&self) -> Result<(), ClientError> {
        for _ in 0..ROUNDS_MAX {
            let proposals = self.broker.list_proposals(self.agent).await?;
            if proposals.is_empty() {
                break;
            }
            for proposal in proposals {
                if !self.target.is_active() {
                    return Ok(());
                }
                let report = self.plan(&proposal).await;
                match self.broker.report_plan(self.agent, proposal.id, &report).await {
                    // It has expired meanwhile.
                    Err(error) if error.is_not_found() => {}
                    reported => reported?,
                }
            }
        }
        Ok(())
    }

    /// Plans a proposal; an error is part of the plan.
    async fn plan(&self, proposal: &AgentProposal) -> PlanReport {
        tracing::info!("planning proposal {} for stack {}", proposal.id, proposal.stack_name);
        let preview = match timeout(PLAN_MAX, catch_panic(self.preview(proposal))).await {
            Ok(Ok(preview)) => preview,
            Ok(Err(panic)) => {
                self.metrics.count_panic();
                StackPreview::from_error(&panic)
            }
            Err(_) => StackPreview::from_error(&format!("there is no plan after {} s", PLAN_MAX.as_secs())),
        };
        let StackPreview { text, has_changes, has_errors } = preview;
        // The broker accepts no NUL character, which the message of a server may contain.
        let plan = cut_plan(text.replace('\0', "\u{fffd}"), PLAN_BYTES_MAX);
        PlanReport { failed: has_errors, changes: has_changes, plan }
    }

    async fn preview(&self, proposal: &AgentProposal) -> StackPreview {
        let (revision, claims) = self.replace_revision(proposal);
        let policy = EffectivePolicy::from_annotations(self.settings, &proposal.annotations);
        let cluster = self.cluster.with_deadline(Instant::now() + PLAN_MAX).without_deletes();
        preview_stack(&cluster, self.reflector, &revision, &claims, &policy).await
    }

    /// Returns the text as the newest revision of its stack, and the claims of all stacks with it.
    fn replace_revision(&self, proposal: &AgentProposal) -> (Revision, Arc<Claims>) {
        let TargetContent { revisions, policies, version } = self.target.content();
        let newest = revisions.iter().map(|revision| revision.sequence_id).chain(version).max();
        let sequence = Sequence(newest.unwrap_or_default().0 + 1);
        let stack = proposal.stack_id;
        let revision = Revision::from_wire(DeploymentObject {
            id: proposal.id.to_string().parse().expect("every id is a UUID"),
            created_at: proposal.created_at,
            updated_at: proposal.created_at,
            deleted_at: None,
            sequence_id: sequence,
            stack_id: stack,
            yaml_checksum: Checksum::compute(&proposal.yaml_content),
            yaml_content: proposal.yaml_content.clone(),
            submitted_at: proposal.created_at,
            is_deletion_marker: false,
            stack_name: Some(proposal.stack_name.clone()),
        });
        let mut claims = Claims::new(self.cluster.default_namespace())
            .with_agent_name(&self.settings.name)
            .with_version(Some(sequence));
        let others = revisions.iter().filter(|other| other.stack_id != stack);
        others.for_each(|other| claims.add_revision(other));
        claims.add_revision(&revision);
        policies.values().for_each(|policy| claims.add_policy(policy));
        let annotations = proposal.annotations.clone();
        claims.add_policy(&WirePolicy { stack_id: stack, annotations, depends_on: Vec::new() });
        (revision, Arc::new(claims))
    }
}
