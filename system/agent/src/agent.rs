//! The agent as a whole: identifies itself, then sends heartbeats, polls, watches and runs passes concurrently. None of
//! them waits for another.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use http::StatusCode;
use sindri_client::{Client, ClientError};
use sindri_model::wire::HeartbeatReport;
use sindri_model::{AgentId, Clock, Entropy};
use thiserror::Error;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout};

use crate::cluster::reflector::Reflector;
use crate::cluster::{Cluster, ClusterError};
use crate::leader::election::run_as_leader;
use crate::leader::lease::{ProcessName, is_held_by_other};
use crate::pass::former_stacks::FormerStacks;
use crate::pass_queue::PassQueue;
use crate::proposals::ProposalPlanner;
use crate::settings::Settings;
use crate::stack::dependencies::ReadyStacks;
use crate::stack::reconciler::Reconciler;
use crate::stack::report_session::ReportSessions;
use crate::stack::worker::Worker;
use crate::target::copy::load_copy;
use crate::target::copy_saver::CopySaver;
use crate::target::poller::{COPY_READ_MAX, Poller};
use crate::target::state::LatestTargetState;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readiness::Readiness;

/// Time that running passes get after shutdown begins: less than the 30 s that Kubernetes gives a pod.
const SHUTDOWN_MAX: Duration = Duration::from_secs(25);

/// Reason why the agent cannot run.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AgentError {
    /// The broker rejects the agent or its access key.
    #[error("{0}")]
    Refused(ClientError),
    /// The cluster cannot be read.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// Id of the agent, from the broker or from the copy of the target state in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    agent: AgentId,
    /// True if the broker has returned it.
    is_confirmed: bool,
}

/// One agent, with everything that it depends on.
pub struct Agent {
    /// Client of the broker.
    pub broker: Client,
    /// Client of the cluster.
    pub cluster: Cluster,
    /// Clock for the times in reports.
    pub clock: Clock,
    /// Entropy for jitter.
    pub entropy: Entropy,
    /// Name of this process in the Lease: that of its pod, which stays the same when a container is restarted.
    pub identity: String,
    /// Settings.
    pub settings: Settings,
    /// Metrics, updated by the agent.
    pub metrics: Arc<Metrics>,
    /// Readiness, updated by the agent.
    pub readiness: Arc<Readiness>,
}

impl Agent {
    /// Runs until `shutdown`, and then finishes the running passes. Returns early only if the broker rejects the agent at the
    /// start.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), AgentError> {
        let work = match select(pin!(shutdown), self.work()).await {
            Either::Right((ended, _)) => return ended,
            Either::Left(((), work)) => work,
        };
        self.cluster.shutdown().cancel();
        match timeout(SHUTDOWN_MAX, work).await {
            Ok(ended) => ended,
            Err(_) => {
                tracing::warn!("running passes did not end within {} s", SHUTDOWN_MAX.as_secs());
                Ok(())
            }
        }
    }

    /// Reads the id of the agent from the broker.
    pub(crate) async fn find_id(&self) -> Result<AgentId, ClientError> {
        let found = self.broker.find_agent(&self.settings.name, &self.settings.cluster_name).await;
        found.map(|agent| agent.id)
    }

    /// Boxed, so that the agent is compiled with this crate, and not with each of its users.
    fn work(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let shutdown = self.cluster.shutdown();
            let mut identity = tokio::select! {
                biased; // shutdown first: it ends the wait for the broker
                () = shutdown.cancelled() => return Ok(()),
                identity = self.wait_for_identity() => identity?,
            };
            loop {
                // All belong to this future: dropping it ends them.
                tokio::select! {
                    biased; // another id first: nothing is done under the former one then
                    other = self.wait_for_other_identity(identity) => identity = other?,
                    never = self.send_heartbeats(identity.agent) => match never {},
                    () = self.act(identity.agent) => return Ok(()),
                }
            }
        })
    }

    /// Reconciles until shutdown, as leader if leader election is on.
    async fn act(&self, id: AgentId) {
        if self.settings.lease {
            let process = ProcessName { agent: &self.settings.name, identity: &self.identity };
            run_as_leader(&self.cluster, &self.clock, process, &self.readiness, || self.reconcile(id)).await;
        } else {
            self.reconcile(id).await;
        }
    }

    async fn pause(&self) {
        tokio::time::sleep(self.settings.jittered_interval(&self.entropy)).await;
    }

    /// Reads the id of the agent from the broker, or from the copy of the target state if the broker cannot be reached;
    /// waits if there is none.
    async fn wait_for_identity(&self) -> Result<Identity, AgentError> {
        loop {
            if let Some(agent) = self.try_find_id().await? {
                return Ok(Identity { agent, is_confirmed: true });
            }
            let cluster = self.cluster.with_deadline(Instant::now() + COPY_READ_MAX);
            match load_copy(&cluster, &self.settings).await {
                Ok(Some(copy)) => return Ok(Identity { agent: copy.agent, is_confirmed: false }),
                Ok(None) => {}
                Err(error) => tracing::warn!("the copy of the target state cannot be read: {error}"),
            }
            self.pause().await;
        }
    }

    /// Waits until the broker returns another id than that of the copy: the agent was deleted and created again.
    async fn wait_for_other_identity(&self, current: Identity) -> Result<Identity, AgentError> {
        if current.is_confirmed {
            return std::future::pending().await;
        }
        loop {
            self.pause().await;
            match self.try_find_id().await? {
                Some(agent) if agent == current.agent => return std::future::pending().await,
                Some(agent) => return Ok(Identity { agent, is_confirmed: true }),
                None => {}
            }
        }
    }

    /// Reads the id of the agent; `None` if the broker cannot be reached, or a proxy responds in its place.
    async fn try_find_id(&self) -> Result<Option<AgentId>, AgentError> {
        match self.find_id().await {
            Ok(id) => {
                self.readiness.record_identity();
                Ok(Some(id))
            }
            Err(error) if !error.is_refused_by_broker() => {
                tracing::warn!("{error}");
                Ok(None)
            }
            Err(error) => {
                if error.status() == Some(StatusCode::UNAUTHORIZED)
                    && let Err(error) = self.forget_target_state().await
                {
                    tracing::warn!("the copy of the target state is not emptied: {error}");
                }
                Err(AgentError::Refused(error))
            }
        }
    }

    /// Empties the copy of the target state of this agent, because its access key is not valid: a later process must not act by
    /// the copy when the broker cannot be reached. It stays if another process of the agent is the leader, which may have a valid key.
    async fn forget_target_state(&self) -> Result<(), ClusterError> {
        let cluster = &self.cluster.independent().with_deadline(Instant::now() + COPY_READ_MAX);
        let Some(copy) = load_copy(cluster, &self.settings).await? else { return Ok(()) };
        if self.settings.lease && is_held_by_other(cluster, &self.clock, &self.identity).await? {
            return Ok(());
        }
        let target = LatestTargetState::default();
        target.set_active(false);
        let saver = CopySaver { cluster, agent: copy.agent, settings: &self.settings, target: &target };
        saver.save(&mut None).await
    }

    async fn send_heartbeats(&self, id: AgentId) -> Infallible {
        loop {
            let latency = self.cluster.ping().await;
            self.readiness.record_ping(latency.is_some());
            let report = HeartbeatReport {
                k8s_reachable: Some(latency.is_some()),
                k8s_api_latency_ms: latency.map(|latency| latency.as_millis() as i64),
            };
            if let Err(error) = self.broker.send_heartbeat(id, &report).await {
                tracing::warn!("{error}");
            }
            self.pause().await;
        }
    }

    async fn reconcile(&self, id: AgentId) {
        let (target, queue, reflector) = (LatestTargetState::default(), PassQueue::default(), Reflector::default());
        let proposals = Notify::new();
        let poller = Poller {
            broker: &self.broker,
            agent: id,
            cluster: &self.cluster,
            settings: &self.settings,
            entropy: &self.entropy,
            metrics: &self.metrics,
            readiness: &self.readiness,
            target: &target,
            queue: &queue,
            proposals: &proposals,
        };
        let planner = ProposalPlanner {
            broker: &self.broker,
            agent: id,
            cluster: &self.cluster,
            reflector: &reflector,
            settings: &self.settings,
            target: &target,
            metrics: &self.metrics,
            announced: &proposals,
        };
        let process = self.settings.lease.then(|| (self.identity.clone(), self.cluster.write_gate()));
        let broker = match &process {
            Some((name, _)) => self.broker.clone().with_process(name),
            None => self.broker.clone(),
        };
        let reconciler = Reconciler {
            cluster: &self.cluster,
            broker: &broker,
            reflector: &reflector,
            former_stacks: FormerStacks::default(),
            target: &target,
            agent: id,
            settings: &self.settings,
            clock: &self.clock,
            metrics: &self.metrics,
            ready_stacks: ReadyStacks::default(),
            reports: ReportSessions { agent: id, process, current: Mutex::default() },
        };
        let saver = CopySaver { cluster: &self.cluster, agent: id, settings: &self.settings, target: &target };
        let worker = Worker { reconciler, queue: &queue };
        tokio::select! {
            biased; // the order only decides which starts first; the worker ends at shutdown
            never = poller.run() => match never {},
            never = reflector.run(&self.cluster, &queue) => match never {},
            never = saver.run() => match never {},
            never = planner.run() => match never {},
            () = worker.run() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks at compile time that the host of an agent may move it between threads. Never called.
    #[expect(dead_code, reason = "that it compiles is the test")]
    fn an_agent_can_run_in_any_task(agent: Agent) {
        fn require_send(_: impl Send) {}
        require_send(agent.run(std::future::pending()));
    }
}
