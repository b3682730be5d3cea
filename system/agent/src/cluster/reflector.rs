//! What is in the cluster under our label, kept up to date by one watch for each kind that some stack uses.
//!
//! It only saves looking: a kind whose watch does not run is listed instead, and what is missing here is read before
//! anything is concluded from it. Memory grows with what is ours, not with what is in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::{ObjectKey, StackId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::cluster::{Change, Cluster, ClusterError, LiveObject, Resource, version_number};
use crate::pass_queue::{Queue, Why};

/// How often everything is listed again, in case a watch has lied.
const RESYNC_EVERY: Duration = Duration::from_secs(600);
/// The pause before a watch that broke is begun again; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The objects that carry our label, by kind.
#[derive(Default)]
pub struct Watches {
    kinds: Mutex<BTreeMap<Arc<Resource>, Kind>>,
    asked: Notify,
}

/// One kind.
#[derive(Default)]
struct Kind {
    /// Somebody watches it.
    is_watched: bool,
    /// What the watch knows is what the server knows, or will be in a moment.
    is_current: bool,
    /// Up to which version everything has been heard.
    heard: String,
    objects: BTreeMap<Arc<ObjectKey>, LiveObject>,
}

/// What was heard of an object.
#[derive(Clone, Copy)]
enum Is {
    There,
    Gone,
}

/// Why a watch ended.
enum Ended {
    /// Everything has to be listed again.
    Stale,
    /// The cluster does not serve the kind.
    NotServed,
}

impl Watches {
    fn want(&self, resource: &Arc<Resource>) {
        let mut kinds = self.lock();
        if !kinds.contains_key(resource) {
            kinds.insert(resource.clone(), Kind::default());
            self.asked.notify_one();
        }
    }

    /// The objects of a kind that carry our label and are meant; `None` if that is not known now. From then on the kind is
    /// watched.
    pub fn select(&self, resource: &Arc<Resource>, is_meant: impl Fn(&LiveObject) -> bool) -> Option<Vec<LiveObject>> {
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

    fn unwatched(&self) -> Vec<Arc<Resource>> {
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
    async fn watch(&self, resource: Arc<Resource>, cluster: &Cluster, queue: &Queue) {
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

    async fn follow(&self, resource: &Arc<Resource>, cluster: &Cluster, queue: &Queue) -> Result<Ended, ClusterError> {
        let listed = cluster.marked(resource).await;
        let (objects, mut version) = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(Ended::NotServed),
            Err(error) => return Err(error),
        };
        self.renew(resource, objects, &version, queue);
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
        resource: &Arc<Resource>,
        cluster: &Cluster,
        queue: &Queue,
        version: &mut String,
    ) -> Result<(), ClusterError> {
        let mut changes = cluster.watch(resource, version).await?;
        self.set_current(resource, true);
        while let Some(change) = changes.next().await? {
            version.clone_from(&changes.version);
            match change {
                Change::Seen(object) => self.note(resource, object, Is::There, queue),
                Change::Gone(object) => self.note(resource, object, Is::Gone, queue),
                Change::Bookmark => {}
            }
            self.heard(resource, version);
        }
        Ok(())
    }

    /// Takes in a whole list.
    fn renew(&self, resource: &Arc<Resource>, objects: Vec<LiveObject>, version: &str, queue: &Queue) {
        let listed: BTreeSet<&ObjectKey> = objects.iter().map(|object| &*object.key).collect();
        let known: Vec<LiveObject> =
            self.lock().get(resource).map(|kind| kind.objects.values().cloned().collect()).unwrap_or_default();
        for object in known.into_iter().filter(|object| !listed.contains(&*object.key)) {
            // It was gone when the list was made, if it was there before.
            self.note(resource, LiveObject { version: version.to_owned(), ..object }, Is::Gone, queue);
        }
        for object in objects {
            self.note(resource, object, Is::There, queue);
        }
        self.heard(resource, version);
        self.set_current(resource, true);
    }

    /// Takes in one object, and asks for a pass of the stacks to which its change may matter. What is older than what was
    /// learnt from an answer is no news.
    fn note(&self, resource: &Arc<Resource>, object: LiveObject, is: Is, queue: &Queue) {
        let mut kinds = self.lock();
        let Some(kind) = kinds.get_mut(resource) else { return };
        let before = kind.objects.get(&object.key);
        if before.is_some_and(|before| object.is_before(before)) {
            return;
        }
        let labels = [before.and_then(stack_of), stack_of(&object)];
        let is_news = match is {
            Is::There => before != Some(&object),
            Is::Gone => before.is_some(),
        };
        match is {
            Is::There => kind.objects.insert(object.key.clone(), object),
            Is::Gone => kind.objects.remove(&object.key),
        };
        drop(kinds);
        for stack in labels.into_iter().flatten().filter(|_| is_news) {
            queue.ask(stack, Why::Seen);
        }
    }

    /// Takes in what writes were answered with, as far as the watches are behind it. What they are not behind may have
    /// changed since, or be gone.
    pub fn learn<'a>(&self, written: impl Iterator<Item = &'a LiveObject>) {
        let mut kinds = self.lock();
        for object in written {
            let Some(kind) = kinds.get_mut(&object.resource).filter(|kind| kind.is_current) else { continue };
            let (heard, written) = (version_number(&kind.heard), version_number(&object.version));
            if matches!((heard, written), (Some(heard), Some(written)) if heard < written) {
                kind.objects.insert(object.key.clone(), object.clone());
            }
        }
    }

    fn heard(&self, resource: &Arc<Resource>, version: &str) {
        if let Some(kind) = self.lock().get_mut(resource) {
            version.clone_into(&mut kind.heard);
        }
    }

    fn set_current(&self, resource: &Arc<Resource>, is_current: bool) {
        if let Some(kind) = self.lock().get_mut(resource) {
            kind.is_current = is_current;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<Resource>, Kind>> {
        // Nothing here can be left half done.
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stack_of(object: &LiveObject) -> Option<StackId> {
    object.marks.label.as_deref().and_then(|label| label.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::ownership::Marks;

    fn config_maps() -> Arc<Resource> {
        let (group, version, plural, kind) = (String::new(), "v1".into(), "configmaps".into(), "ConfigMap".into());
        Arc::new(Resource { group, version, plural, kind, namespaced: true })
    }

    fn stack() -> StackId {
        "10000000-0000-4000-8000-000000000000".parse().unwrap()
    }

    fn object(version: &str) -> LiveObject {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("shop".into()),
            name: "a".into(),
        };
        let (uid, version, resource) = ("7".to_owned(), version.to_owned(), config_maps());
        let marks = Marks { label: Some(stack().to_string()), ..Marks::of(&json!({})) };
        LiveObject { key: Arc::new(key), resource, uid, version, ours: None, marks, owned: false, deleting: false }
    }

    /// The version that is known of the one object, after a list at version 5 in which it had version 3.
    fn known(then: impl FnOnce(&Watches, &Queue)) -> (Option<String>, bool) {
        let (watches, queue) = (Watches::default(), Queue::default());
        watches.want(&config_maps());
        watches.renew(&config_maps(), vec![object("3")], "5", &queue);
        queue.begin(stack());
        then(&watches, &queue);
        let known = watches.select(&config_maps(), |_| true).expect("it is current");
        (known.first().map(|object| object.version.clone()), queue.why(stack()).is_some())
    }

    fn hear(watches: &Watches, version: &str, is: Is, queue: &Queue) {
        watches.note(&config_maps(), object(version), is, queue);
        watches.heard(&config_maps(), version);
    }

    #[test]
    fn a_watch_that_is_behind_an_answer_takes_nothing_back_and_makes_no_pass() {
        let learnt = known(|watches, queue| {
            watches.learn([&object("9")].into_iter());
            hear(watches, "7", Is::There, queue);
            hear(watches, "9", Is::There, queue);
        });
        assert_eq!(learnt, (Some("9".into()), false));
    }

    #[test]
    fn what_happens_after_the_answer_counts() {
        let edited = known(|watches, queue| {
            watches.learn([&object("9")].into_iter());
            hear(watches, "10", Is::There, queue);
        });
        assert_eq!(edited, (Some("10".into()), true));
        let gone = known(|watches, queue| {
            watches.learn([&object("9")].into_iter());
            hear(watches, "10", Is::Gone, queue);
        });
        assert_eq!(gone, (None, true));
    }

    #[test]
    fn an_answer_that_comes_late_brings_nothing_back() {
        let gone = known(|watches, queue| {
            hear(watches, "9", Is::There, queue);
            hear(watches, "10", Is::Gone, queue);
            watches.learn([&object("9")].into_iter());
        });
        assert_eq!(gone, (None, true));
    }

    #[test]
    fn a_list_from_before_the_answer_does_not_take_it_back_and_one_from_after_it_does() {
        let older = known(|watches, queue| {
            watches.learn([&object("9")].into_iter());
            watches.renew(&config_maps(), Vec::new(), "8", queue);
        });
        assert_eq!(older, (Some("9".into()), false));
        let newer = known(|watches, queue| {
            watches.learn([&object("9")].into_iter());
            watches.renew(&config_maps(), Vec::new(), "11", queue);
        });
        assert_eq!(newer, (None, true));
    }
}
