//! When a database is reconciled: when it or one of its children changed, after a failure, and once in a while.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::act::{Outcome, Reconciler};
use super::children::{CHILDREN, owners};
use super::{Child, DATABASE};
use crate::client::{Objects, name, text};
use crate::follow::{Beginning, Change, follow};
use crate::queue::Queue;

/// A database is looked at again after this, whatever happens.
const RESYNC: Duration = Duration::from_secs(5 * 60);
/// How many changes may wait.
const CHANGES_MAX: usize = 64;
/// How long a queue without keys sleeps.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// Namespace and name of a declaration.
type Key = (String, String);
/// Whether a change is one of a declaration or of a child.
type Of = Option<Child>;
/// What of a declaration matters: its identity and its generation, but not its status, which is our own writing.
type Seen = (Value, Value, Value);

/// The whole controller.
#[derive(Debug)]
pub struct Controller {
    /// What it does with one declaration.
    pub reconciler: Reconciler,
}

impl Controller {
    /// Runs until it is dropped.
    pub async fn run(self) {
        let (tell, mut changes) = mpsc::channel(CHANGES_MAX);
        let mut watches = JoinSet::new();
        for of in std::iter::once(None).chain(CHILDREN.map(Some)) {
            let objects = Objects::everywhere(&self.reconciler.client, of.map_or(DATABASE, Child::kind));
            watches.spawn(follow(objects, of, Beginning::List, tell.clone()));
        }
        let (mut queue, mut seen) = (Queue::new(), BTreeMap::new());
        loop {
            if let Some(key) = queue.take_due(Instant::now()) {
                self.reconcile(&mut queue, key).await;
                continue;
            }
            let next = queue.next_due().unwrap_or_else(|| Instant::now() + IDLE);
            tokio::select! {
                biased; // what changed comes before what waits anyway
                Some((of, change)) = changes.recv() => note(&mut queue, &mut seen, of, change),
                () = sleep_until(next) => {}
            }
        }
    }

    async fn reconcile(&self, queue: &mut Queue<Key>, key: Key) {
        let ended = self.reconciler.reconcile(&key.0, &key.1).await;
        let now = Instant::now();
        match ended {
            Ok(Outcome::NothingToDo) => queue.settled(&key),
            Ok(Outcome::Applied) => {
                queue.settled(&key);
                queue.add(key, now + RESYNC);
            }
            Ok(Outcome::Refused(words)) => {
                tracing::warn!("{}/{} cannot be as declared: {words}", key.0, key.1);
                queue.settled(&key);
                queue.add(key, now + RESYNC);
            }
            Err(failure) => {
                let words = format!("{}/{} failed: {failure}", key.0, key.1);
                let delay = queue.failed(key, now);
                tracing::info!("{words}; again in {} s", delay.as_secs());
            }
        }
    }
}

fn note(queue: &mut Queue<Key>, seen: &mut BTreeMap<Key, Seen>, of: Of, change: Change) {
    let now = Instant::now();
    let (objects, is_gone) = match change {
        Change::Listed(objects) => (objects, false),
        Change::Seen(object) => (vec![object], false),
        Change::Gone(object) => (vec![object], true),
    };
    for object in objects {
        let namespace = text(&object, "/metadata/namespace").to_owned();
        if of.is_some() {
            owners(&object).for_each(|owner| queue.add((namespace.clone(), text(owner, "/name").to_owned()), now));
            continue;
        }
        let key = (namespace, name(&object).to_owned());
        if is_gone {
            seen.remove(&key);
            continue;
        }
        let what: Seen =
            ["uid", "generation", "deletionTimestamp"].map(|field| object["metadata"][field].clone()).into();
        if seen.get(&key) != Some(&what) {
            seen.insert(key.clone(), what);
            queue.add(key, now);
        }
    }
}
