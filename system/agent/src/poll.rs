//! Asks the broker what is wanted, at its pace, and says which stacks that concerns.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sindri_client::{ClientError, TargetState};
use sindri_model::wire::{AgentStatus, DeploymentObject};
use sindri_model::{AgentId, StackId};
use tokio::time::Instant;

use crate::agent::Agent;
use crate::queue::{Queue, Why};

/// What the broker wants of this agent, as it last said. Nothing until it has said something.
#[derive(Default)]
pub struct Target {
    objects: Mutex<Vec<Arc<DeploymentObject>>>,
    /// Whether the agent is to act on it.
    is_active: AtomicBool,
}

impl Target {
    /// One revision or removal for each stack, in ascending order; none while the agent is not to act.
    pub fn objects(&self) -> Vec<Arc<DeploymentObject>> {
        if self.is_active.load(Ordering::Relaxed) { self.lock().clone() } else { Vec::new() }
    }

    /// Takes in a new answer; says of which stacks something else is wanted now.
    fn renew(&self, objects: Vec<DeploymentObject>) -> Vec<StackId> {
        let mut known = self.lock();
        let is_new = |object: &&DeploymentObject| known.iter().all(|known| known.id != object.id);
        let changed = objects.iter().filter(is_new).map(|object| object.stack_id).collect();
        *known = objects.into_iter().map(Arc::new).collect();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<DeploymentObject>>> {
        // Nothing here can be left half done.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Polls for ever. Every stack is due with every poll: what failed is tried again, and what nobody saw is looked at.
    pub(crate) async fn polls(&self, id: AgentId, target: &Target, queue: &Queue) -> Infallible {
        let mut etag = None;
        loop {
            let next = Instant::now() + self.interval();
            let is_new = match self.poll(id, target, queue, &mut etag, next).await {
                Ok(is_new) => is_new,
                Err(error) => {
                    tracing::warn!("{error}");
                    false
                }
            };
            if is_new {
                // There may be more to come, and nobody waits for it.
                continue;
            }
            tokio::time::sleep_until(next).await;
            target.objects().iter().for_each(|object| queue.ask(object.stack_id, Why::Poll));
        }
    }

    /// One poll, which the broker may hold until `next`; says whether it had something new.
    async fn poll(
        &self,
        id: AgentId,
        target: &Target,
        queue: &Queue,
        etag: &mut Option<String>,
        next: Instant,
    ) -> Result<bool, ClientError> {
        if !self.is_active(id, target).await? {
            return Ok(false);
        }
        let wait = next.saturating_duration_since(Instant::now());
        match self.broker.next_target_state(id, etag.as_deref(), wait).await? {
            TargetState::Unchanged => Ok(false),
            TargetState::Changed { objects, etag: new, epoch: _ } => {
                // It may have been told to rest while it waited.
                if !self.is_active(id, target).await? {
                    return Ok(false);
                }
                *etag = new;
                for stack in target.renew(objects) {
                    queue.ask(stack, Why::Changed);
                }
                Ok(etag.is_some())
            }
        }
    }

    async fn is_active(&self, id: AgentId, target: &Target) -> Result<bool, ClientError> {
        let is_active = self.broker.agent(id).await?.status == AgentStatus::Active;
        target.is_active.store(is_active, Ordering::Relaxed);
        Ok(is_active)
    }
}
