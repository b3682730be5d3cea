//! The agent as a whole: who it is, and the four things that it does at once: heartbeats, polls, watches, and passes of
//! stacks. None of them waits for another.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use sindri_client::{Client, ClientError};
use sindri_model::wire::HeartbeatReport;
use sindri_model::{AgentId, Clock, Entropy};
use thiserror::Error;
use tokio::time::timeout;

use crate::cluster::reflector::Watches;
use crate::cluster::write_gate::Holding;
use crate::cluster::{Cluster, ClusterError};
use crate::leader::lease::Lease;
use crate::pass_queue::Queue;
use crate::settings::Settings;
use crate::stack::outcome::Recorded;
use crate::stack::worker::Worker;
use crate::target::poller::Target;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readiness::Readiness;

/// Polls are spread over a tenth of the interval, so that a fleet does not poll as one.
const JITTER_PARTS: u32 = 10;

/// How long an agent that is to end may take to finish what it has in hand: as long as Kubernetes gives a pod.
const FINISH_MAX: Duration = Duration::from_secs(25);

/// Why the agent cannot run at all.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AgentError {
    /// The broker does not know this agent or its key.
    #[error("{0}")]
    Refused(ClientError),
    /// The cluster does not answer.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// One agent.
pub struct Agent {
    /// The broker.
    pub broker: Client,
    /// The cluster.
    pub cluster: Cluster,
    /// For the times that it tells others.
    pub clock: Clock,
    /// For jitter.
    pub entropy: Entropy,
    /// Which of several processes of this agent it is: the name of its pod, which stays the same when it is started again.
    pub identity: String,
    /// How it runs.
    pub settings: Settings,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where it says whether it does its work.
    pub readiness: Arc<Readiness>,
}

impl Agent {
    /// Runs until `shutdown`, and then finishes what it has in hand. Ends early only if the broker says at the start that it
    /// does not know this agent.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), AgentError> {
        let work = pin!(self.work());
        let work = match select(pin!(shutdown), work).await {
            Either::Right((ended, _)) => return ended,
            Either::Left(((), work)) => work,
        };
        self.cluster.stop.ask();
        match timeout(FINISH_MAX, work).await {
            Ok(ended) => ended,
            Err(_) => {
                tracing::warn!("what was in hand did not end within {} s", FINISH_MAX.as_secs());
                Ok(())
            }
        }
    }

    async fn work(&self) -> Result<(), AgentError> {
        let stop = &self.cluster.stop;
        let id = tokio::select! {
            biased; // whoever is to end does not look for itself any more
            () = stop.asked() => return Ok(()),
            id = self.identify() => id?,
        };
        // Both belong to this future: dropping it ends them.
        tokio::select! {
            biased; // the first never ends; the order only decides who starts
            never = self.heartbeats(id) => match never {},
            () = self.reconcile_alone(id) => Ok(()),
        }
    }

    /// Reconciles while it holds the Lease, until it is to end.
    async fn reconcile_alone(&self, id: AgentId) {
        if !self.settings.lease {
            return self.reconcile(id).await;
        }
        let cluster = self.cluster.apart();
        let lease = Lease { cluster: &cluster, clock: &self.clock, holder: &self.identity };
        let holding = self.cluster.guarded();
        tokio::select! {
            biased; // the first never ends; the order only decides who starts
            never = lease.keep(&holding) => match never {},
            () = self.reconcile_unless_taken(id, &holding) => {}
        }
        lease.release().await;
    }

    async fn reconcile_unless_taken(&self, id: AgentId, holding: &Holding) {
        let stop = &self.cluster.stop;
        while !stop.is_asked() {
            tokio::select! {
                biased; // whoever is to end does not begin
                () = stop.asked() => return,
                () = holding.free() => {}
            }
            tokio::select! {
                biased; // whoever has lost it does nothing more
                () = holding.lost() => {}
                () = self.reconcile(id) => return,
            }
        }
    }

    /// The time from one poll to the next, or from one heartbeat to the next.
    pub(crate) fn interval(&self) -> Duration {
        let interval = self.settings.polling_interval;
        let jitter = self.entropy.below((interval / JITTER_PARTS).as_millis() as u64);
        interval - interval / (2 * JITTER_PARTS) + Duration::from_millis(jitter)
    }

    async fn pause(&self) {
        tokio::time::sleep(self.interval()).await;
    }

    /// Who we are, if the broker knows it now.
    pub(crate) async fn find(&self) -> Result<AgentId, AgentError> {
        let found = self.broker.find_agent(&self.settings.name, &self.settings.cluster_name).await;
        found.map(|agent| agent.id).map_err(AgentError::Refused)
    }

    /// Finds out who we are; waits for a broker that cannot be reached.
    async fn identify(&self) -> Result<AgentId, AgentError> {
        loop {
            match self.broker.find_agent(&self.settings.name, &self.settings.cluster_name).await {
                Ok(agent) => {
                    self.readiness.found();
                    return Ok(agent.id);
                }
                Err(error) if error.is_transient() => tracing::warn!("{error}"),
                Err(error) => return Err(AgentError::Refused(error)),
            }
            self.pause().await;
        }
    }

    async fn heartbeats(&self, id: AgentId) -> Infallible {
        loop {
            let latency = self.cluster.ping().await;
            self.readiness.asked_cluster(latency.is_some());
            let report = HeartbeatReport {
                k8s_reachable: Some(latency.is_some()),
                k8s_api_latency_ms: latency.map(|latency| latency.as_millis() as i64),
            };
            if let Err(error) = self.broker.heartbeat(id, &report).await {
                tracing::warn!("{error}");
            }
            self.pause().await;
        }
    }

    async fn reconcile(&self, id: AgentId) {
        let (target, queue, watches) = (Target::default(), Queue::default(), Watches::default());
        let recorded = self.recorded(id).await;
        let worker = Worker { agent: self, id, target: &target, queue: &queue, watches: &watches, recorded };
        tokio::select! {
            biased; // the order only decides who starts; the worker ends when the agent is to end
            never = self.polls(id, &target, &queue) => match never {},
            never = watches.run(&self.cluster, &queue) => match never {},
            () = worker.work() => {}
        }
    }

    /// What the broker has heard of this agent; waits for a broker that cannot be reached.
    async fn recorded(&self, id: AgentId) -> Recorded {
        loop {
            match self.broker.outcomes(id).await {
                Ok(events) => return Recorded::new(id, events),
                Err(error) => tracing::warn!("{error}"),
            }
            self.pause().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever hosts an agent may move it between threads. Compiled, never called.
    #[expect(dead_code, reason = "that it compiles is the test")]
    fn an_agent_can_be_run_in_any_task(agent: Agent) {
        fn in_any_task(_: impl Send) {}
        in_any_task(agent.run(std::future::pending()));
    }
}
