//! Polls the broker for the target state, and queues passes of the stacks that it concerns.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::join;
use http::StatusCode;
use sindri_client::{AgentPolicies, Client, ClientError, KnownState, PollResponse, TargetStateResponse};
use sindri_model::wire::{AgentStatus, DeploymentObject};
use sindri_model::{AgentId, Entropy, Sequence};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::claims::Claims;
use super::copy::load_copy;
use super::state::{LatestTargetState, StackPolicies};
use crate::cluster::Cluster;
use crate::pass_queue::{PassQueue, Reason};
use crate::settings::Settings;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readiness::{Readiness, describe_inactive};

/// Longest time for reading the copy of the target state; the next failed poll tries again.
pub const COPY_READ_MAX: Duration = Duration::from_secs(10);
/// Pause before the next poll after the target state changed between the requests for it and for its policies.
const CHANGED_PAUSE: Duration = Duration::from_millis(200);

/// Polls for one agent.
pub struct Poller<'a> {
    /// Client of the broker.
    pub broker: &'a Client,
    /// Id of the agent.
    pub agent: AgentId,
    /// Client of the cluster, which has a copy of the target state.
    pub cluster: &'a Cluster,
    /// Settings of the agent.
    pub settings: &'a Settings,
    /// Entropy for the jitter of the polling interval.
    pub entropy: &'a Entropy,
    /// Metrics of the polls.
    pub metrics: &'a Metrics,
    /// Readiness, which needs recent polls.
    pub readiness: &'a Readiness,
    /// Target state that is updated.
    pub target: &'a LatestTargetState,
    /// Queue of the stacks that are due.
    pub queue: &'a PassQueue,
    /// Notified when there is a new proposal.
    pub proposals: &'a Notify,
}

/// Part of the target state that the agent has, as the next poll says it.
#[derive(Default)]
struct Known {
    /// ETag of the last response.
    etag: Option<String>,
    /// True if the last response could not be used: the next one must have every bundle.
    needs_all: bool,
    /// Responses in a row with another ETag and no changed stack.
    rechecks: u32,
    /// Number of the newest proposal that was announced.
    proposals: Sequence,
}

impl Poller<'_> {
    /// Polls forever. After each interval every stack is due, so that failed passes are repeated and missed events noticed.
    pub async fn run(&self) -> Infallible {
        let mut known = Known::default();
        loop {
            let next_poll = Instant::now() + self.settings.jittered_interval(self.entropy);
            let polled = self.poll(&mut known, next_poll).await;
            known.needs_all = matches!(polled, Err(ClientError::Malformed { .. }));
            self.metrics.count_poll(&polled);
            self.metrics.set_stacks(self.target.revisions().len());
            let is_new = match polled {
                Ok(is_new) => {
                    self.readiness.record_poll();
                    is_new
                }
                Err(error) => {
                    tracing::warn!("{error}");
                    let is_refused = error.is_refused_by_broker();
                    if is_refused && error.status() == Some(StatusCode::UNAUTHORIZED) {
                        // An agent whose key was revoked has no more orders: it corrects no drift either.
                        self.set_active(false);
                    } else if !is_refused && self.target.is_empty() && !self.target.is_status_known() {
                        self.use_copy().await;
                    }
                    false
                }
            };
            if is_new {
                // Further changes may follow; the broker holds the next poll until there is one.
                continue;
            }
            tokio::time::sleep_until(next_poll).await;
            self.request_all();
        }
    }

    /// Polls once; the broker may hold its response until `next_poll`. Returns true if the response has a new target state.
    async fn poll(&self, known: &mut Known, next_poll: Instant) -> Result<bool, ClientError> {
        // Inactive agents read their status from GET /agents/{id}; active ones from the header of each poll response.
        if !self.target.is_active() && !self.read_status().await? {
            return Ok(false);
        }
        let PollResponse { state, proposals } = loop {
            let response = self.send_poll(known, next_poll).await?;
            let is_active = TargetStateResponse::Unchanged { status: Some(AgentStatus::Active) };
            if response.state != is_active || !self.announce_proposals(known, response.proposals) {
                break response;
            }
            // A new proposal has ended the wait; the number that the next poll has is higher.
        };
        let (status, changed) = match state {
            TargetStateResponse::Unchanged { status } => (status, None),
            // A proxy may drop `If-None-Match`, so that the broker sends a state that is already known.
            TargetStateResponse::Changed { etag: new, status, .. } if new.is_some() && new == known.etag => {
                (status, None)
            }
            TargetStateResponse::Changed { objects, etag, epoch, version, status, requests } => {
                (status, Some((objects, requests, etag, epoch, version)))
            }
        };
        let is_active = match status {
            Some(status) => status == AgentStatus::Active,
            None => self.read_status().await?,
        };
        self.record_status(is_active);
        let Some((objects, requests, new_etag, epoch, version)) = changed.filter(|_| is_active) else {
            if is_active {
                self.announce_proposals(known, proposals);
            }
            return Ok(false);
        };
        let parse = async {
            // The request for the policies is sent first: bundles are parsed while the broker responds to it.
            yield_now().await;
            self.target.parse_revisions(objects, &requests)
        };
        let (policies, revisions) = join(self.broker.list_policies(self.agent), parse).await;
        // A failure is never an empty list: without its policy a stack that is suspended would be written, and deletions that
        // must wait would not.
        let policies = policies?;
        if version.is_some() && policies.version.is_some() && policies.version != version {
            // Both changed meanwhile: an old revision must not be applied with new policies, nor the other way round.
            tokio::time::sleep(CHANGED_PAUSE).await;
            return Ok(true);
        }
        let claims = self.empty_claims().with_version(version.map(|version| version.state));
        let changed = self.target.replace(revisions, by_stack(policies), Some(epoch), claims);
        known.etag = new_etag;
        // After the target state, which says what the other stacks declare.
        self.announce_proposals(known, proposals);
        if changed.is_empty() {
            // Something else changed than revisions and policies, for example an approval.
            self.request_all();
            known.rechecks += 1;
        } else {
            known.rechecks = 0;
        }
        changed.into_iter().for_each(|stack| self.queue.request(stack, Reason::TargetChanged));
        // Without an ETag, or with one that a proxy changes each time, the broker cannot hold the next poll.
        Ok(known.etag.is_some() && known.rechecks <= 1)
    }

    /// Sends a poll, whose response the broker may hold until `next_poll`.
    async fn send_poll(&self, known: &Known, next_poll: Instant) -> Result<PollResponse, ClientError> {
        let wait = next_poll.saturating_duration_since(Instant::now());
        let revisions = if known.needs_all { Vec::new() } else { self.target.held_revisions() };
        let held: Vec<&DeploymentObject> = revisions.iter().map(|revision| &***revision).collect();
        let state = KnownState {
            etag: known.etag.as_deref().filter(|_| !known.needs_all),
            status: Some(AgentStatus::Active),
            proposals: Some(known.proposals),
            held: &held,
        };
        self.broker.poll(self.agent, state, wait).await
    }

    /// Announces a proposal that is newer than those before; returns true if it is. A proposal is announced once, also if it
    /// cannot be planned.
    fn announce_proposals(&self, known: &mut Known, newest: Option<Sequence>) -> bool {
        let is_new = newest.is_some_and(|newest| newest > known.proposals);
        if is_new {
            known.proposals = newest.unwrap_or_default();
            self.proposals.notify_one();
        }
        is_new
    }

    /// Uses the copy of the target state in the cluster, if there is one, until the broker responds.
    async fn use_copy(&self) {
        let cluster = self.cluster.with_deadline(Instant::now() + COPY_READ_MAX);
        match load_copy(&cluster, self.settings).await {
            Ok(Some(copy)) if copy.agent == self.agent => {
                tracing::warn!(
                    "the broker has not responded since the start: the drift of {} stacks is corrected from the copy of \
                     the target state, and nothing is deleted",
                    copy.stacks.len()
                );
                self.target.use_copy(copy.stacks, self.empty_claims());
                self.target.revisions().iter().for_each(|revision| {
                    self.queue.request(revision.stack_id, Reason::TargetChanged);
                });
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("the copy of the target state cannot be read: {error}"),
        }
    }

    fn empty_claims(&self) -> Claims {
        Claims::new(self.cluster.default_namespace()).with_agent_name(&self.settings.name)
    }

    fn request_all(&self) {
        self.target.revisions().iter().for_each(|revision| self.queue.request(revision.stack_id, Reason::Poll));
    }

    /// Reads the agent's own record; returns true if the agent is active.
    async fn read_status(&self) -> Result<bool, ClientError> {
        let is_active = self.broker.get_agent(self.agent).await?.status == AgentStatus::Active;
        self.record_status(is_active);
        Ok(is_active)
    }

    /// Records the status of the agent at the broker; the first time that it is inactive, the log says what to do.
    fn record_status(&self, is_active: bool) {
        if self.readiness.record_active(is_active) && !is_active {
            tracing::warn!("{}", describe_inactive(&self.settings.name));
        }
        self.set_active(is_active);
    }

    /// Sets whether the agent acts; running passes of an inactive one end.
    fn set_active(&self, is_active: bool) {
        self.target.set_active(is_active);
        if !is_active {
            self.queue.wake();
        }
    }
}

/// Returns the policies of each stack.
pub fn by_stack(policies: AgentPolicies) -> StackPolicies {
    policies.policies.into_iter().map(|policy| (policy.stack_id, policy)).collect()
}
