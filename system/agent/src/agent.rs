//! The loop of the agent: heartbeats apart from reconciling, a poll at each interval, the stacks in the
//! order of their sequence.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use sindri_client::{Client, ClientError, TargetState};
use sindri_model::wire::{AgentStatus, DeploymentObject, HeartbeatReport};
use sindri_model::{AgentId, Entropy, ObjectKey, StackId};
use thiserror::Error;

use crate::act::{ActError, Executor};
use crate::cluster::{Applied, Cluster, ClusterError};
use crate::inventory::{self, Inventory, InventoryError, Position};
use crate::observe::{self, Desired, Goal, LiveSet, ObserveError};
use crate::plan::{Refusal, Settled, plan};
use crate::report::{Outcome, Reporter};

/// Polls are spread over a tenth of the interval, so that a fleet does not poll as one.
const JITTER_PARTS: u32 = 10;

/// A deletion that takes longer than so many passes is reported: a finalizer may wait for ever.
const SILENT_WAITS: u32 = 10;

/// How the agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name under which the broker knows it.
    pub name: String,
    /// The cluster under which the broker knows it.
    pub cluster_name: String,
    /// How often it polls.
    pub polling_interval: Duration,
}

impl Settings {
    /// The interval of the guide.
    pub const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(30);
}

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

/// What the agent remembers between passes. All of it can be lost: a fresh process finds it again.
struct Memory {
    reporter: Reporter,
    etag: Option<String>,
    target: Vec<DeploymentObject>,
    stacks: BTreeMap<StackId, StackMemory>,
}

#[derive(Default)]
struct StackMemory {
    /// As it is in the cluster; `None` until it was read.
    inventory: Option<Inventory>,
    settled: Option<Settled>,
    /// The bundle of the target, read and placed.
    desired: Option<Desired>,
    /// Passes in a row that found deleted objects not yet gone.
    waits: u32,
}

/// Why one pass of one stack did not reach its goal.
#[derive(Debug, Error)]
enum PassError {
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Live(#[from] ClusterError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Act(#[from] ActError),
}

/// How far a pass came.
enum Progress {
    Reached,
    /// These were deleted, and are not gone yet.
    Waiting(Vec<ObjectKey>),
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
                ended = self.reconcile(id) => ended,
            }
        };
        tokio::select! {
            biased; // a shutdown wins over more work
            () = shutdown => Ok(()),
            ended = work => ended,
        }
    }

    async fn pause(&self) {
        let interval = self.settings.polling_interval;
        let jitter = self.entropy.below((interval / JITTER_PARTS).as_millis() as u64);
        tokio::time::sleep(interval - interval / (2 * JITTER_PARTS) + Duration::from_millis(jitter)).await;
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

    async fn heartbeats(&self, id: AgentId) -> std::convert::Infallible {
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

    async fn reconcile(&self, id: AgentId) -> Result<(), AgentError> {
        let recorded = loop {
            match self.broker.events(id).await {
                Ok(recorded) => break recorded,
                Err(error) => tracing::warn!("{error}"),
            }
            self.pause().await;
        };
        let mut memory =
            Memory { reporter: Reporter::new(id, recorded), etag: None, target: Vec::new(), stacks: BTreeMap::new() };
        loop {
            match self.poll(id, &mut memory).await {
                Ok(true) => self.pass_all(&mut memory).await,
                Ok(false) => {}
                Err(error) => tracing::warn!("{error}"),
            }
            self.pause().await;
        }
    }

    /// Fetches the target state; false when the agent is not to act.
    async fn poll(&self, id: AgentId, memory: &mut Memory) -> Result<bool, ClientError> {
        if self.broker.agent(id).await?.status != AgentStatus::Active {
            return Ok(false);
        }
        match self.broker.target_state(id, memory.etag.as_deref()).await? {
            TargetState::Unchanged => {}
            TargetState::Changed { objects, etag, epoch: _ } => memory.renew(objects, etag),
        }
        Ok(true)
    }

    async fn pass_all(&self, memory: &mut Memory) {
        for object in memory.target.clone() {
            let stack = memory.stacks.entry(object.stack_id).or_default();
            let outcome = match self.pass(&object, stack, &memory.reporter).await {
                Ok(Progress::Reached) => {
                    stack.waits = 0;
                    Outcome::success()
                }
                Ok(Progress::Waiting(leaving)) => {
                    stack.waits += 1;
                    if stack.waits < SILENT_WAITS {
                        continue;
                    }
                    Outcome::failure(format!("deleted, and still not gone: {}", shown(&leaving)))
                }
                Err(error) => {
                    tracing::warn!("stack {}: {error}", object.stack_id);
                    Outcome::failure(error)
                }
            };
            if let Err(error) = memory.reporter.report(&self.broker, object.id, outcome).await {
                tracing::warn!("{error}");
            }
        }
    }

    /// One pass of one stack: observe, plan, act. The caller reports.
    async fn pass(
        &self,
        object: &DeploymentObject,
        stack: &mut StackMemory,
        reporter: &Reporter,
    ) -> Result<Progress, PassError> {
        if object.is_deletion_marker && reporter.is_known(object.id, &Outcome::success()) {
            // Confirmed already; the broker stops sending it once it has seen that.
            return Ok(Progress::Reached);
        }
        if stack.inventory.is_none() {
            stack.inventory = Some(self.known_of(object).await?);
        }
        if stack.desired.is_none() {
            // Of the epoch in which it was submitted: what a restored database still has is no newer for that.
            let position = Position { epoch: object.sequence_id.epoch(), sequence: object.sequence_id };
            stack.desired = Some(observe::desired(&self.cluster, object, position).await?);
        }
        let (Some(inventory), Some(desired)) = (&mut stack.inventory, &stack.desired) else {
            unreachable!("both were filled in above")
        };
        let live = observe::live(&self.cluster, desired, inventory).await?;
        let plan = plan(desired, inventory, &live, stack.settled.as_ref())?;
        if desired.goal == Goal::Removed || !plan.is_empty() {
            tracing::info!(
                "stack {} at sequence {}: {} to apply, {} to delete",
                desired.stack,
                desired.position.sequence,
                plan.writes.len(),
                plan.deletes.len()
            );
        }
        // Until the pass is over nothing is settled: whatever happens, the next one looks again.
        let before = stack.settled.take();
        let mut executor = Executor { cluster: &self.cluster, stack: desired.stack, inventory };
        let done = match executor.carry_out(&plan).await {
            Ok(done) => done,
            Err(error) => {
                // The cluster may hold more of the inventory than we know of: read it again.
                stack.inventory = None;
                return Err(error.into());
            }
        };
        if !done.leaving.is_empty() {
            return Ok(Progress::Waiting(done.leaving));
        }
        match &desired.goal {
            Goal::Present(_) => stack.settled = Some(settle(desired, before, &live, done.applied)),
            Goal::Removed => {
                inventory::discard(&self.cluster, desired.stack, inventory).await?;
                *inventory = Inventory::default();
            }
        }
        Ok(Progress::Reached)
    }
}

impl Agent {
    /// What the cluster says is ours of a stack. For a removal, an inventory that is empty is not believed.
    async fn known_of(&self, object: &DeploymentObject) -> Result<Inventory, PassError> {
        let mut known = inventory::load(&self.cluster, object.stack_id).await?;
        if object.is_deletion_marker && known.is_empty() {
            observe::sweep(&self.cluster, object.stack_id).await?.into_iter().for_each(|entry| known.put(entry));
        }
        Ok(known)
    }
}

fn shown(keys: &[ObjectKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is in place now: what was written in this pass, and what was found settled.
fn settle(
    desired: &Desired,
    before: Option<Settled>,
    live: &LiveSet,
    applied: BTreeMap<ObjectKey, Applied>,
) -> Settled {
    let mut objects =
        before.filter(|before| before.revision == desired.revision).map_or_else(BTreeMap::new, |before| before.objects);
    objects.retain(|key, _| live.contains_key(key));
    objects.extend(applied);
    Settled { revision: desired.revision, objects }
}

impl Memory {
    /// Takes in a new target. A bundle is read again only if its revision is another one.
    fn renew(&mut self, objects: Vec<DeploymentObject>, etag: Option<String>) {
        for object in &objects {
            let known = self.stacks.entry(object.stack_id).or_default();
            if known.desired.as_ref().is_none_or(|desired| desired.revision != object.id) {
                known.desired = None;
            }
        }
        self.stacks.retain(|stack, _| objects.iter().any(|object| object.stack_id == *stack));
        self.reporter.retain(|revision| objects.iter().any(|object| object.id == *revision));
        (self.target, self.etag) = (objects, etag);
    }
}
