//! The agent as a whole: who it is, and the four things that it does at once: heartbeats, polls, watches, and passes of
//! stacks. None of them waits for another.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::wire::HeartbeatReport;
use sindri_model::{AgentId, Entropy};
use thiserror::Error;

use crate::cluster::Cluster;
use crate::poll::Target;
use crate::queue::Queue;
use crate::report::Recorded;
use crate::settings::Settings;
use crate::stacks::Worker;
use crate::watches::Watches;

/// Polls are spread over a tenth of the interval, so that a fleet does not poll as one.
const JITTER_PARTS: u32 = 10;

/// Why the agent cannot run at all.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AgentError {
    /// The broker does not know this agent or its key.
    #[error("{0}")]
    Refused(ClientError),
}

/// One agent.
pub struct Agent {
    /// The broker.
    pub broker: Client,
    /// The cluster.
    pub cluster: Cluster,
    /// For jitter.
    pub entropy: Entropy,
    /// How it runs.
    pub settings: Settings,
}

impl Agent {
    /// Runs until `shutdown`. Ends early only if the broker says at the start that it does not know this agent.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), AgentError> {
        let work = async {
            let id = self.identify().await?;
            // Both belong to this future: dropping it ends them.
            tokio::select! {
                biased; // neither ends; the order only decides who starts
                never = self.heartbeats(id) => match never {},
                never = self.reconcile(id) => match never {},
            }
        };
        tokio::select! {
            biased; // a shutdown wins over more work
            () = shutdown => Ok(()),
            ended = work => ended,
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

    /// Finds out who we are; waits for a broker that cannot be reached.
    async fn identify(&self) -> Result<AgentId, AgentError> {
        loop {
            match self.broker.find_agent(&self.settings.name, &self.settings.cluster_name).await {
                Ok(agent) => return Ok(agent.id),
                Err(error) if error.is_transient() => tracing::warn!("{error}"),
                Err(error) => return Err(AgentError::Refused(error)),
            }
            self.pause().await;
        }
    }

    async fn heartbeats(&self, id: AgentId) -> Infallible {
        loop {
            let latency = self.cluster.ping().await;
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

    async fn reconcile(&self, id: AgentId) -> Infallible {
        let (target, queue, watches) = (Target::default(), Queue::default(), Watches::default());
        let recorded = self.recorded(id).await;
        let worker = Worker { agent: self, target: &target, queue: &queue, watches: &watches, recorded };
        tokio::select! {
            biased; // none of them ends; the order only decides who starts
            never = self.polls(id, &target, &queue) => never,
            never = watches.run(&self.cluster, &queue) => never,
            never = worker.work() => never,
        }
    }

    /// What the broker has heard of this agent; waits for a broker that cannot be reached.
    async fn recorded(&self, id: AgentId) -> Recorded {
        loop {
            match self.broker.events(id).await {
                Ok(events) => return Recorded::new(id, events),
                Err(error) => tracing::warn!("{error}"),
            }
            self.pause().await;
        }
    }
}
