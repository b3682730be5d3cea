//! What is in the cluster under our label, kept up to date by one watch for each kind that some stack uses.
//!
//! It only saves looking: a kind whose watch does not run is listed instead, and what is missing here is read before
//! anything is concluded from it. Memory grows with what is ours, not with what is in the cluster.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::ObjectKey;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::cluster::{Change, Cluster, ClusterError, LiveObject, Resource};
use crate::queue::{Queue, Why};

/// How often everything is listed again, in case a watch has lied.
const RESYNC_EVERY: Duration = Duration::from_secs(600);
/// The pause before a watch that broke is begun again; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The objects that carry our label, by kind.
#[derive(Default)]
pub struct Watches {
    kinds: Mutex<BTreeMap<Resource, Kind>>,
    asked: Notify,
}

/// One kind.
#[derive(Default)]
struct Kind {
    /// Somebody watches it.
    is_watched: bool,
    /// What the watch knows is what the server knows, or will be in a moment.
    is_current: bool,
    objects: BTreeMap<ObjectKey, LiveObject>,
}

/// Why a watch ended.
enum Ended {
    /// Everything has to be listed again.
    Stale,
    /// The cluster does not serve the kind.
    NotServed,
}

impl Watches {
    fn want(&self, resource: &Resource) {
        let mut kinds = self.lock();
        if !kinds.contains_key(resource) {
            kinds.insert(resource.clone(), Kind::default());
            self.asked.notify_one();
        }
    }

    /// The objects of a kind that carry our label and are meant; `None` if that is not known now. From then on the kind is
    /// watched.
    pub fn select(&self, resource: &Resource, is_meant: impl Fn(&LiveObject) -> bool) -> Option<Vec<LiveObject>> {
        self.want(resource);
        let kinds = self.lock();
        let kind = kinds.get(resource).filter(|kind| kind.is_current)?;
        Some(kind.objects.values().filter(|object| is_meant(object)).cloned().collect())
    }

    /// Watches every kind that was asked for. Never ends.
    pub async fn run(&self, cluster: &Cluster, queue: &Queue) -> std::convert::Infallible {
        let mut watching = FuturesUnordered::new();
        loop {
            let asked = self.asked.notified();
            for resource in self.unwatched() {
                watching.push(self.watch(resource, cluster, queue));
            }
            tokio::select! {
                biased; // neither is urgent; the order only has to be one
                () = asked => {}
                Some(()) = watching.next() => {}
            }
        }
    }

    fn unwatched(&self) -> Vec<Resource> {
        let mut kinds = self.lock();
        let unwatched = kinds.iter_mut().filter(|(_, kind)| !kind.is_watched);
        unwatched
            .map(|(resource, kind)| {
                kind.is_watched = true;
                resource.clone()
            })
            .collect()
    }

    /// Until the cluster no longer serves the kind.
    async fn watch(&self, resource: Resource, cluster: &Cluster, queue: &Queue) {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.follow(&resource, cluster, queue).await {
                Ok(Ended::Stale) => pause = PAUSE_FIRST,
                Ok(Ended::NotServed) => {
                    self.lock().remove(&resource);
                    return;
                }
                Err(error) => {
                    tracing::info!("{error}");
                    self.set_current(&resource, false);
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn follow(&self, resource: &Resource, cluster: &Cluster, queue: &Queue) -> Result<Ended, ClusterError> {
        let listed = cluster.marked(resource).await;
        let (objects, mut version) = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(Ended::NotServed),
            Err(error) => return Err(error),
        };
        self.renew(resource, objects, queue);
        let (until, mut pause) = (Instant::now() + RESYNC_EVERY, PAUSE_FIRST);
        while Instant::now() < until {
            let began = Instant::now();
            let watched = timeout_at(until, self.listen(resource, cluster, queue, &mut version)).await;
            match watched {
                Err(_) => return Ok(Ended::Stale),
                Ok(Ok(())) if began.elapsed() > PAUSE_MAX => pause = PAUSE_FIRST,
                // A server that ends every watch at once is not asked as fast as it answers.
                Ok(Ok(())) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Ok(Err(error)) if error.is_gone() || error.is_not_found() => return Ok(Ended::Stale),
                Ok(Err(error)) => {
                    tracing::info!("{error}");
                    // Until it runs again nobody knows what it missed.
                    self.set_current(resource, false);
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        Ok(Ended::Stale)
    }

    /// One watch, until the server ends it.
    async fn listen(
        &self,
        resource: &Resource,
        cluster: &Cluster,
        queue: &Queue,
        version: &mut String,
    ) -> Result<(), ClusterError> {
        let mut changes = cluster.watch(resource, version).await?;
        self.set_current(resource, true);
        while let Some(change) = changes.next().await? {
            version.clone_from(&changes.version);
            match change {
                Change::Seen(object) => self.note(resource, object.key.clone(), Some(object), queue),
                Change::Gone(object) => self.note(resource, object.key, None, queue),
                Change::Bookmark => {}
            }
        }
        Ok(())
    }

    /// Takes in a whole list.
    fn renew(&self, resource: &Resource, objects: Vec<LiveObject>, queue: &Queue) {
        let objects: BTreeMap<ObjectKey, LiveObject> =
            objects.into_iter().map(|object| (object.key.clone(), object)).collect();
        let known: Vec<ObjectKey> =
            self.lock().get(resource).map(|kind| kind.objects.keys().cloned().collect()).unwrap_or_default();
        for key in known.into_iter().filter(|key| !objects.contains_key(key)) {
            self.note(resource, key, None, queue);
        }
        for (key, object) in objects {
            self.note(resource, key, Some(object), queue);
        }
        self.set_current(resource, true);
    }

    /// Takes in one object, and asks for a pass of the stacks to which its change may matter.
    fn note(&self, resource: &Resource, key: ObjectKey, now: Option<LiveObject>, queue: &Queue) {
        let mut kinds = self.lock();
        let Some(kind) = kinds.get_mut(resource) else { return };
        let before = match &now {
            Some(object) => kind.objects.insert(key, object.clone()),
            None => kind.objects.remove(&key),
        };
        drop(kinds);
        if before == now {
            return;
        }
        for object in before.iter().chain(&now) {
            if let Some(stack) = object.marks.label.as_deref().and_then(|label| label.parse().ok()) {
                queue.ask(stack, Why::Seen);
            }
        }
    }

    fn set_current(&self, resource: &Resource, is_current: bool) {
        if let Some(kind) = self.lock().get_mut(resource) {
            kind.is_current = is_current;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Resource, Kind>> {
        // Nothing here can be left half done.
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
