//! Asks the broker what is wanted, at its pace, and says which stacks that concerns.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join;
use sindri_client::{ClientError, TargetState};
use sindri_model::wire::{AgentStatus, DeploymentObject};
use sindri_model::{AgentId, StackId};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::agent::Agent;
use crate::pass_queue::{Queue, Why};
use crate::target::claims::Claims;
use crate::target::revision::Revision;

/// The annotations of stacks that say how to treat them.
pub type Policies = BTreeMap<StackId, BTreeMap<String, String>>;

/// What the broker wants of this agent, as it last said. Nothing until it has said something.
#[derive(Default)]
pub struct Target {
    wanted: Mutex<Wanted>,
    /// Whether the agent is to act on it.
    is_active: AtomicBool,
}

/// One answer of the broker.
#[derive(Default)]
struct Wanted {
    objects: Vec<Arc<Revision>>,
    claims: Arc<Claims>,
    policies: Policies,
}

/// What the broker wants of one stack.
struct Wish {
    revision: Arc<Revision>,
    /// Whether it was not wanted before.
    is_new: bool,
}

impl Target {
    /// One revision or removal for each stack, in ascending order; none while the agent is not to act.
    pub fn objects(&self) -> Vec<Arc<Revision>> {
        if self.is_active.load(Ordering::Relaxed) { self.lock().objects.clone() } else { Vec::new() }
    }

    /// What all of them declare.
    pub fn claims(&self) -> Arc<Claims> {
        self.lock().claims.clone()
    }

    /// What a stack says about how it is treated.
    pub fn annotations(&self, stack: StackId) -> BTreeMap<String, String> {
        self.lock().policies.get(&stack).cloned().unwrap_or_default()
    }

    /// Reads what is not known already.
    fn read(&self, objects: Vec<DeploymentObject>) -> Vec<Wish> {
        let before = self.lock().objects.clone();
        let mut known: BTreeMap<_, _> = before.into_iter().map(|revision| (revision.id, revision)).collect();
        let read = objects.into_iter().map(|object| match known.remove(&object.id).filter(|known| known.is(&object)) {
            Some(revision) => Wish { revision, is_new: false },
            None => Wish { revision: Arc::new(Revision::read(object)), is_new: true },
        });
        read.collect()
    }

    /// Takes in a new answer; says of which stacks something else is wanted now.
    fn renew(&self, wishes: Vec<Wish>, policies: Policies, claims: Claims) -> Vec<StackId> {
        let mut wanted = self.lock();
        let before = std::mem::take(&mut *wanted);
        let (mut claims, mut changed) = (claims, Vec::new());
        for Wish { revision, is_new } in wishes {
            let stack = revision.stack_id;
            let is_new = is_new || before.policies.get(&stack) != policies.get(&stack);
            claims.add(stack, revision.sequence_id, &revision.declared);
            changed.extend(is_new.then_some(stack));
            wanted.objects.push(revision);
        }
        (wanted.claims, wanted.policies) = (Arc::new(claims), policies);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        // Nothing here can be left half done.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Polls for ever. Every stack is due with every poll: what failed is tried again, and what nobody saw is looked at.
    pub(crate) async fn polls(&self, id: AgentId, target: &Target, queue: &Queue) -> Infallible {
        let mut etag = None;
        loop {
            let next = Instant::now() + self.interval();
            let polled = self.poll(id, target, queue, &mut etag, next).await;
            self.metrics.polled(&polled);
            self.metrics.wanted(target.objects().len());
            let is_new = match polled {
                Ok(is_new) => {
                    self.readiness.polled();
                    is_new
                }
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
        // Whoever rests is told so by its own record; whoever acts, by every answer.
        if !target.is_active.load(Ordering::Relaxed) && !self.is_active(id, target).await? {
            return Ok(false);
        }
        let (wait, acts) = (next.saturating_duration_since(Instant::now()), Some(AgentStatus::Active));
        let (status, changed) = match self.broker.next_target_state_or_status(id, etag.as_deref(), acts, wait).await? {
            TargetState::Unchanged { status } => (status, None),
            TargetState::Changed { objects, etag, epoch: _, status } => (status, Some((objects, etag))),
        };
        let is_active = match status {
            Some(status) => status == AgentStatus::Active,
            None => self.is_active(id, target).await?,
        };
        target.is_active.store(is_active, Ordering::Relaxed);
        let Some((objects, new)) = changed.filter(|_| is_active) else { return Ok(false) };
        let reading = async {
            // The question for the policies leaves first: bundles are read while the broker answers it.
            yield_now().await;
            target.read(objects)
        };
        let (policies, wishes) = join(self.policies(id), reading).await;
        let changed = target.renew(wishes, policies?, self.cluster.no_claims());
        *etag = new;
        if changed.is_empty() {
            // Something else has changed than what is declared: an approval, perhaps.
            target.objects().iter().for_each(|object| queue.ask(object.stack_id, Why::Poll));
        }
        changed.into_iter().for_each(|stack| queue.ask(stack, Why::Changed));
        Ok(etag.is_some())
    }

    /// How each stack is to be treated. A broker that does not know of that has nothing to say.
    pub(crate) async fn policies(&self, id: AgentId) -> Result<Policies, ClientError> {
        match self.broker.policies(id).await {
            Ok(policies) => Ok(policies.into_iter().map(|policy| (policy.stack_id, policy.annotations)).collect()),
            Err(error) if error.is_not_found() => Ok(Policies::new()),
            Err(error) => Err(error),
        }
    }

    async fn is_active(&self, id: AgentId, target: &Target) -> Result<bool, ClientError> {
        let is_active = self.broker.agent(id).await?.status == AgentStatus::Active;
        target.is_active.store(is_active, Ordering::Relaxed);
        Ok(is_active)
    }
}
