//! Decides when an agent is reconciled: after a change of it, of a child, or of an object to which it refers; after a
//! failure; when its status changes by itself; and periodically.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::children::{CHILDREN, Child};
use super::crd::{AGENT, MODEL_CONFIG};
use super::reconciler::{ReconcileResult, Reconciler};
use super::references::{Key, find_agents, find_model_configs};
use super::variant::Variant;
use crate::client::{CallError, Objects, ResourceKind};
use crate::list_watch::{ObjectChange, WatchStart, list_and_watch};
use crate::object::{name, text};
use crate::owners::owner_references;
use crate::work_queue::WorkQueue;

/// Interval at which every agent is reconciled.
pub const RESYNC: Duration = Duration::from_secs(120);
/// Delay after a list, so that the lists of all kinds cause one resync.
const RESYNC_AFTER_LIST: Duration = Duration::from_millis(200);
/// Delay after a resync that failed.
const RESYNC_RETRY: Duration = Duration::from_secs(5);
/// Capacity of the channel of changes.
const CHANGES_MAX: usize = 64;
/// Sleep while nothing is due.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Source of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Agent,
    ModelConfig,
    /// A child. A Secret may also be one to which a model configuration refers.
    Child(Child),
}

impl Source {
    fn kind(self) -> ResourceKind {
        match self {
            Source::Agent => AGENT,
            Source::ModelConfig => MODEL_CONFIG,
            Source::Child(child) => child.kind(),
        }
    }
}

/// UID, generation and time of deletion of an agent. Not its status, which only this controller writes.
type Version = (Value, Value, Value);

/// Work that is due now or later.
struct Work {
    queue: WorkQueue<Key>,
    versions: BTreeMap<Key, Version>,
    resync_due: Option<Instant>,
}

/// The self-healing controller.
#[derive(Debug)]
pub struct Controller {
    /// Reconciles one agent.
    pub reconciler: Reconciler,
}

impl Controller {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let (sender, mut changes) = mpsc::channel(CHANGES_MAX);
        let mut watches = JoinSet::new();
        for source in self.sources() {
            let objects = Objects::in_all_namespaces(&self.reconciler.client, source.kind());
            watches.spawn(list_and_watch(objects, source, WatchStart::List, sender.clone()));
        }
        let mut work = Work { queue: WorkQueue::new(), versions: BTreeMap::new(), resync_due: None };
        loop {
            let now = Instant::now();
            if let Some(key) = work.queue.take_due(now) {
                self.reconcile(&mut work.queue, key).await;
                continue;
            }
            if work.resync_due.is_some_and(|due| due <= now) {
                self.resync(&mut work).await;
                continue;
            }
            let next = work.queue.next_due().into_iter().chain(work.resync_due).min().unwrap_or_else(|| now + IDLE);
            tokio::select! {
                biased; // Changes before the timer.
                Some((source, change)) = changes.recv() => self.enqueue(&mut work, source, change).await,
                () = sleep_until(next) => {}
            }
        }
    }

    fn variant(&self) -> Variant {
        self.reconciler.variant
    }

    fn sources(&self) -> Vec<Source> {
        let references = (self.variant() != Variant::IgnoresReferences).then_some(Source::ModelConfig);
        std::iter::once(Source::Agent).chain(references).chain(CHILDREN.map(Source::Child)).collect()
    }

    async fn reconcile(&self, queue: &mut WorkQueue<Key>, key: Key) {
        let result = self.reconciler.reconcile(&key.0, &key.1).await;
        let now = Instant::now();
        match result {
            Ok(ReconcileResult::NothingToDo) => queue.reset_failures(&key),
            Ok(ReconcileResult::Reported { rejection, changes_after }) => {
                if let Some(reason) = rejection {
                    tracing::warn!("agent {}/{} is not as declared: {reason}", key.0, key.1);
                }
                queue.reset_failures(&key);
                if let Some(after) = changes_after {
                    queue.add(key, now + after);
                }
            }
            Err(error) => {
                let message = format!("reconciling agent {}/{} failed: {error}", key.0, key.1);
                let delay = queue.record_failure(key, now);
                tracing::info!("{message}; retry in {} s", delay.as_secs());
            }
        }
    }

    /// Adds every agent. This mends every event that was missed.
    async fn resync(&self, work: &mut Work) {
        let listed = Objects::in_all_namespaces(&self.reconciler.client, AGENT).list("").await;
        let now = Instant::now();
        match listed {
            Ok((agents, _)) => {
                agents.iter().for_each(|agent| work.queue.add(key_of(agent), now));
                work.resync_due = Some(now + RESYNC);
            }
            Err(error) => {
                tracing::info!("a resync failed: {error}");
                work.resync_due = Some(now + RESYNC_RETRY);
            }
        }
    }

    /// Adds the agents that a change affects.
    async fn enqueue(&self, work: &mut Work, source: Source, change: ObjectChange) {
        let (objects, is_deleted) = match change {
            ObjectChange::Listed(objects) => {
                if self.variant() != Variant::NoResync {
                    // A list follows a gap, in which any object may have been changed or deleted.
                    work.resync_due = Some(Instant::now() + RESYNC_AFTER_LIST);
                }
                if source != Source::Agent {
                    return;
                }
                work.versions.clear();
                (objects, false)
            }
            ObjectChange::Applied(object) => (vec![object], false),
            ObjectChange::Deleted(object) => (vec![object], true),
        };
        for object in objects {
            match source {
                Source::Agent => self.enqueue_agent(work, &object, is_deleted),
                Source::ModelConfig | Source::Child(_) => self.enqueue_affected(work, source, &object).await,
            }
        }
    }

    fn enqueue_agent(&self, work: &mut Work, agent: &Value, is_deleted: bool) {
        let key = key_of(agent);
        if is_deleted {
            work.versions.remove(&key);
            return;
        }
        let version: Version =
            ["uid", "generation", "deletionTimestamp"].map(|field| agent["metadata"][field].clone()).into();
        let is_known = work.versions.insert(key.clone(), version.clone()) == Some(version);
        if !is_known || self.variant() == Variant::WritesStatusAlways {
            work.queue.add(key, Instant::now());
        }
    }

    /// Adds the owners of an object, and the agents that refer to it.
    async fn enqueue_affected(&self, work: &mut Work, source: Source, object: &Value) {
        let namespace = text(object, "/metadata/namespace");
        let owners =
            owner_references(object, AGENT).map(|owner| (namespace.to_owned(), text(owner, "/name").to_owned()));
        let mut affected: Vec<Key> = owners.collect();
        match self.find_referring(source, namespace, name(object)).await {
            Ok(referring) => affected.extend(referring),
            // Not repeated: the next resync reconciles every agent.
            Err(error) => tracing::info!("agents that refer to {namespace}/{} are unknown: {error}", name(object)),
        }
        let now = Instant::now();
        affected.into_iter().for_each(|key| work.queue.add(key, now));
    }

    /// Finds the agents that refer to an object.
    async fn find_referring(&self, source: Source, namespace: &str, object: &str) -> Result<Vec<Key>, CallError> {
        let client = &self.reconciler.client;
        let follows_secrets =
            !matches!(self.variant(), Variant::IgnoresReferences | Variant::IgnoresIndirectReferences);
        let model_configs = match source {
            Source::ModelConfig => BTreeSet::from([object.to_owned()]),
            Source::Child(Child::Secret) if follows_secrets => find_model_configs(client, namespace, object).await?,
            Source::Agent | Source::Child(_) => BTreeSet::new(),
        };
        if model_configs.is_empty() {
            return Ok(Vec::new());
        }
        find_agents(client, namespace, &model_configs).await
    }
}

fn key_of(agent: &Value) -> Key {
    (text(agent, "/metadata/namespace").to_owned(), name(agent).to_owned())
}
