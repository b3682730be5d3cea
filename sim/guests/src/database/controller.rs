//! Decides when a database is reconciled: after a change of it or of a child, after its own writes, after a failure, and
//! periodically.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::children::{CHILDREN, Child};
use super::crd::DATABASE;
use super::reconciler::{ReconcileResult, Reconciler};
use crate::client::{CallError, Objects};
use crate::list_watch::{ObjectChange, WatchStart, list_and_watch};
use crate::object::{name, text};
use crate::owners::owner_references;
use crate::work_queue::WorkQueue;

/// Delay after an error that says that a later attempt may succeed.
pub const TRANSIENT_DELAY: Duration = Duration::from_secs(10);
/// Delay after a request of which the result is unknown.
pub const UNKNOWN_DELAY: Duration = Duration::from_secs(5);
/// Interval of periodic reconciliation.
pub const RESYNC: Duration = Duration::from_secs(5 * 60);
/// Capacity of the channel of changes.
const CHANGES_MAX: usize = 64;
/// Sleep while the queue is empty.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Namespace and name of a database.
type Key = (String, String);
/// Source of a change: a child, or None for the database itself.
type ChangeSource = Option<Child>;
/// UID, generation and time of deletion of a database. Not its status, which only this controller writes.
type Version = (Value, Value, Value);

/// The Database controller.
#[derive(Debug)]
pub struct Controller {
    /// Reconciles one database.
    pub reconciler: Reconciler,
}

impl Controller {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let (sender, mut changes) = mpsc::channel(CHANGES_MAX);
        let mut watches = JoinSet::new();
        for source in std::iter::once(None).chain(CHILDREN.map(Some)) {
            let objects = Objects::in_all_namespaces(&self.reconciler.client, source.map_or(DATABASE, Child::kind));
            watches.spawn(list_and_watch(objects, source, WatchStart::List, sender.clone()));
        }
        let (mut queue, mut versions, mut unverified) = (WorkQueue::new(), BTreeMap::new(), BTreeSet::new());
        loop {
            if let Some(key) = queue.take_due(Instant::now()) {
                self.reconcile(&mut queue, &mut unverified, key).await;
                continue;
            }
            let next = queue.next_due().unwrap_or_else(|| Instant::now() + IDLE);
            tokio::select! {
                biased; // Changes before the timer.
                Some((source, change)) = changes.recv() => enqueue(&mut queue, &mut versions, source, change),
                () = sleep_until(next) => {}
            }
        }
    }

    /// Reconciles a database. `unverified` has the databases that the previous reconciliation has changed.
    async fn reconcile(&self, queue: &mut WorkQueue<Key>, unverified: &mut BTreeSet<Key>, key: Key) {
        let result = self.reconciler.reconcile(&key.0, &key.1).await;
        let now = Instant::now();
        let was_unverified = unverified.remove(&key);
        match result {
            Ok(ReconcileResult::NothingToDo) => queue.reset_failures(&key),
            Ok(ReconcileResult::Changed) => {
                unverified.insert(key.clone());
                if was_unverified {
                    // Another client or the server changes the children again and again.
                    queue.record_failure(key, now);
                } else {
                    queue.reset_failures(&key);
                    queue.add(key, now);
                }
            }
            Ok(ReconcileResult::Applied) => {
                queue.reset_failures(&key);
                queue.add(key, now + RESYNC);
            }
            Ok(ReconcileResult::Rejected(reason)) => {
                tracing::warn!("database {}/{} cannot be applied: {reason}", key.0, key.1);
                queue.reset_failures(&key);
                queue.add(key, now + RESYNC);
            }
            Err(error) => {
                let delay = retry_delay(&error);
                let (namespace, name) = (&key.0, &key.1);
                tracing::info!(
                    "reconciling database {namespace}/{name} failed: {error}; retry in {} s",
                    delay.as_secs()
                );
                queue.postpone(key, now + delay);
            }
        }
    }
}

fn retry_delay(error: &CallError) -> Duration {
    match error {
        CallError::Unknown(_) => UNKNOWN_DELAY,
        CallError::Transient(_)
        | CallError::Permanent(_)
        | CallError::Missing
        | CallError::Exists
        | CallError::Conflict
        | CallError::Expired => TRANSIENT_DELAY,
    }
}

/// Adds the databases that a change affects.
fn enqueue(
    queue: &mut WorkQueue<Key>,
    versions: &mut BTreeMap<Key, Version>,
    source: ChangeSource,
    change: ObjectChange,
) {
    let now = Instant::now();
    let (objects, is_deleted) = match change {
        ObjectChange::Listed(objects) => (objects, false),
        ObjectChange::Applied(object) => (vec![object], false),
        ObjectChange::Deleted(object) => (vec![object], true),
    };
    for object in objects {
        let namespace = text(&object, "/metadata/namespace").to_owned();
        if source.is_some() {
            owner_references(&object, DATABASE)
                .for_each(|owner| queue.add((namespace.clone(), text(owner, "/name").to_owned()), now));
            continue;
        }
        let key = (namespace, name(&object).to_owned());
        if is_deleted {
            versions.remove(&key);
            continue;
        }
        let version: Version =
            ["uid", "generation", "deletionTimestamp"].map(|field| object["metadata"][field].clone()).into();
        if versions.get(&key) != Some(&version) {
            versions.insert(key.clone(), version);
            queue.add(key, now);
        }
    }
}
