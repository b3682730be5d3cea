//! Local copy of the objects with the ownership label, kept current by one watch for each resource type that a stack uses.
//!
//! Only saves reads: a type whose watch is not current is listed instead, and an object that is missing here is read before
//! anything is concluded from its absence. Memory grows with the labelled objects, not with the size of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sindri_model::{ObjectKey, StackId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::error::ClusterError;
use super::live_object::{LiveObject, is_older};
use super::objects::Cluster;
use super::resource::ApiResource;
use super::watch::WatchEvent;
use crate::pass_queue::{PassQueue, Reason};

/// Interval at which everything is listed again, in case a watch missed an event.
const RESYNC_INTERVAL: Duration = Duration::from_secs(600);
/// Pause before a failed watch is opened again; doubled after each further failure.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Objects that carry the ownership label, by resource type.
#[derive(Default)]
pub struct Reflector {
    types: Mutex<BTreeMap<Arc<ApiResource>, WatchedType>>,
    type_added: Notify,
    /// Number of lists that show that resourceVersions have gone back.
    restores: AtomicU64,
}

/// State of one resource type.
#[derive(Default)]
struct WatchedType {
    /// True if a task watches it.
    is_watched: bool,
    /// True if the copy follows the server.
    is_current: bool,
    /// resourceVersion up to which all events were received.
    seen_version: String,
    objects: BTreeMap<Arc<ObjectKey>, LiveObject>,
    /// Objects that the agent wrote after the list that is in progress began: the list may not have them yet.
    written_during_list: BTreeSet<Arc<ObjectKey>>,
}

/// Existence of an object according to an event or a list.
#[derive(Clone, Copy)]
enum Existence {
    Present,
    Gone,
}

/// Reason why a watch ended without an error.
enum WatchEnd {
    /// Everything must be listed again.
    ListAgain,
    /// The cluster does not serve the type any more.
    NotServed,
}

impl Reflector {
    fn add_type(&self, resource: &Arc<ApiResource>) {
        let mut types = self.lock();
        if !types.contains_key(resource) {
            types.insert(resource.clone(), WatchedType::default());
            self.type_added.notify_one();
        }
    }

    /// Returns the objects of a type that match; `None` if the copy of the type is not current. The first call for a type
    /// starts a watch of it.
    pub fn select(
        &self,
        resource: &Arc<ApiResource>,
        matches: impl Fn(&LiveObject) -> bool,
    ) -> Option<Vec<LiveObject>> {
        self.add_type(resource);
        let types = self.lock();
        let watched = types.get(resource).filter(|watched| watched.is_current)?;
        Some(watched.objects.values().filter(|object| matches(object)).cloned().collect())
    }

    /// Returns a number that grows when resourceVersions have gone back, because etcd was restored from a snapshot.
    pub fn restores(&self) -> u64 {
        self.restores.load(Ordering::Relaxed)
    }

    /// Watches every type that was selected, and queues passes of the stacks whose objects change. Never ends.
    pub async fn run(&self, cluster: &Cluster, queue: &PassQueue) -> std::convert::Infallible {
        let mut watches = FuturesUnordered::new();
        loop {
            let type_added = self.type_added.notified();
            for resource in self.take_unwatched() {
                watches.push(self.watch_type(resource, cluster, queue));
            }
            tokio::select! {
                biased; // any fixed order will do
                () = type_added => {}
                Some(()) = watches.next() => {}
            }
        }
    }

    fn take_unwatched(&self) -> Vec<Arc<ApiResource>> {
        let mut types = self.lock();
        let unwatched = types.iter_mut().filter(|(_, watched)| !watched.is_watched);
        unwatched
            .map(|(resource, watched)| {
                watched.is_watched = true;
                resource.clone()
            })
            .collect()
    }

    /// Watches a type until the cluster no longer serves it.
    async fn watch_type(&self, resource: Arc<ApiResource>, cluster: &Cluster, queue: &PassQueue) {
        let mut pause = PAUSE_FIRST;
        loop {
            let started = Instant::now();
            let ended = self.list_and_watch(&resource, cluster, queue).await;
            if started.elapsed() > PAUSE_MAX {
                pause = PAUSE_FIRST;
            }
            match ended {
                Ok(WatchEnd::NotServed) => {
                    self.lock().remove(&resource);
                    return;
                }
                Ok(WatchEnd::ListAgain) if started.elapsed() > PAUSE_MAX => continue,
                // A server that responds to lists and to no watch is not asked without a pause.
                Ok(WatchEnd::ListAgain) => tracing::info!("watch {}: its events have expired", resource.plural),
                Err(error) => tracing::info!("{error}"),
            }
            // Events may be missed until the watch is open again.
            self.set_current(&resource, false);
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn list_and_watch(
        &self,
        resource: &Arc<ApiResource>,
        cluster: &Cluster,
        queue: &PassQueue,
    ) -> Result<WatchEnd, ClusterError> {
        self.begin_list(resource);
        let (objects, mut version) = match cluster.list_labelled(resource).await {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(WatchEnd::NotServed),
            Err(error) => return Err(error),
        };
        self.replace_all(resource, objects, &version, queue);
        let (resync_at, mut pause) = (Instant::now() + RESYNC_INTERVAL, PAUSE_FIRST);
        while Instant::now() < resync_at {
            let opened = Instant::now();
            let watched = timeout_at(resync_at, self.follow_watch(resource, cluster, queue, &mut version)).await;
            match watched {
                Err(_) => return Ok(WatchEnd::ListAgain),
                Ok(Ok(())) if opened.elapsed() > PAUSE_MAX => pause = PAUSE_FIRST,
                // A server that ends every watch at once is not asked without a pause.
                Ok(Ok(())) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Ok(Err(error)) if error.is_expired() || error.is_not_found() => return Ok(WatchEnd::ListAgain),
                // While it was interrupted etcd may have been restored, so that a watch from the last version would miss
                // what is different since: everything is listed again.
                Ok(Err(error)) => return Err(error),
            }
        }
        Ok(WatchEnd::ListAgain)
    }

    /// Follows one watch until the server ends it.
    async fn follow_watch(
        &self,
        resource: &Arc<ApiResource>,
        cluster: &Cluster,
        queue: &PassQueue,
        version: &mut String,
    ) -> Result<(), ClusterError> {
        let mut watch = cluster.watch(resource, version).await?;
        self.set_current(resource, true);
        while let Some(event) = watch.next_event().await? {
            version.clone_from(&watch.resource_version);
            match event {
                WatchEvent::Changed(object) => self.update(resource, object, Existence::Present, queue),
                WatchEvent::Removed(object) => self.update(resource, object, Existence::Gone, queue),
                WatchEvent::Bookmark => {}
            }
            self.set_seen_version(resource, version);
        }
        Ok(())
    }

    fn begin_list(&self, resource: &Arc<ApiResource>) {
        if let Some(watched) = self.lock().get_mut(resource) {
            watched.written_during_list.clear();
        }
    }

    /// Replaces the copy of a type by a list, and queues passes of the stacks whose objects differ from the copy. Only what
    /// the agent wrote since the list began is kept. Otherwise the list is right even if its versions are lower: then etcd
    /// was restored from a backup.
    fn replace_all(
        &self,
        resource: &Arc<ApiResource>,
        objects: Vec<LiveObject>,
        list_version: &str,
        queue: &PassQueue,
    ) {
        let mut changed: BTreeSet<StackId> = BTreeSet::new();
        if let Some(watched) = self.lock().get_mut(resource) {
            let mut is_restored = is_older(list_version, &watched.seen_version);
            let mut before = std::mem::take(&mut watched.objects);
            let written = std::mem::take(&mut watched.written_during_list);
            for object in objects {
                let known = before.remove(&object.key);
                if known.as_ref() == Some(&object) {
                    watched.objects.insert(object.key.clone(), object);
                    continue;
                }
                // Versions of an object only grow, and all objects up to the last version are known.
                let is_older = match &known {
                    Some(known) => object.is_older_than(known),
                    None => is_older(&object.resource_version, &watched.seen_version),
                };
                is_restored |= is_older && !written.contains(&object.key);
                match known.filter(|known| written.contains(&known.key) && object.is_older_than(known)) {
                    Some(newer) => drop(watched.objects.insert(newer.key.clone(), newer)),
                    None => {
                        changed.extend(labelled_stack(&object));
                        watched.objects.insert(object.key.clone(), object);
                    }
                }
            }
            for (key, object) in before {
                if written.contains(&key) && is_older(list_version, &object.resource_version) {
                    watched.objects.insert(key, object);
                } else {
                    changed.extend(labelled_stack(&object));
                }
            }
            list_version.clone_into(&mut watched.seen_version);
            watched.is_current = true;
            if is_restored {
                tracing::warn!("resourceVersions of {} have gone back: etcd was restored", resource.plural);
                self.restores.fetch_add(1, Ordering::Relaxed);
            }
        }
        changed.into_iter().for_each(|stack| queue.request(stack, Reason::ObjectEvent));
    }

    /// Updates one object and queues passes of the stacks that its old and its new label name. Ignores a state that is older
    /// than the known one.
    fn update(&self, resource: &Arc<ApiResource>, object: LiveObject, existence: Existence, queue: &PassQueue) {
        let mut types = self.lock();
        let Some(watched) = types.get_mut(resource) else { return };
        let before = watched.objects.get(&object.key);
        if before.is_some_and(|before| object.is_older_than(before)) {
            return;
        }
        let stacks = [before.and_then(labelled_stack), labelled_stack(&object)];
        let has_changed = match existence {
            Existence::Present => before != Some(&object),
            Existence::Gone => before.is_some(),
        };
        match existence {
            Existence::Present => watched.objects.insert(object.key.clone(), object),
            Existence::Gone => watched.objects.remove(&object.key),
        };
        drop(types);
        for stack in stacks.into_iter().flatten().filter(|_| has_changed) {
            queue.request(stack, Reason::ObjectEvent);
        }
    }

    /// Adds the results of the agent's own writes that the watches have not reported yet, so that they do not look like
    /// drift. A write that a watch has already passed is ignored: the object may have changed since.
    pub fn add_written<'a>(&self, written: impl Iterator<Item = &'a LiveObject>) {
        let mut types = self.lock();
        for object in written {
            let Some(watched) = types.get_mut(&object.resource).filter(|watched| watched.is_current) else { continue };
            if is_older(&watched.seen_version, &object.resource_version) {
                watched.written_during_list.insert(object.key.clone());
                watched.objects.insert(object.key.clone(), object.clone());
            }
        }
    }

    fn set_seen_version(&self, resource: &Arc<ApiResource>, version: &str) {
        if let Some(watched) = self.lock().get_mut(resource) {
            version.clone_into(&mut watched.seen_version);
        }
    }

    fn set_current(&self, resource: &Arc<ApiResource>, is_current: bool) {
        if let Some(watched) = self.lock().get_mut(resource) {
            watched.is_current = is_current;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<ApiResource>, WatchedType>> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid map.
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn labelled_stack(object: &LiveObject) -> Option<StackId> {
    object.ownership.stack_label.as_deref().and_then(|label| label.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ownership::Ownership;

    fn config_maps() -> Arc<ApiResource> {
        let (group, version, plural, kind) = (String::new(), "v1".into(), "configmaps".into(), "ConfigMap".into());
        Arc::new(ApiResource { group, version, plural, kind, namespaced: true, is_aggregated: false })
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
        LiveObject {
            key: Arc::new(key),
            resource: config_maps(),
            uid: "7".to_owned(),
            resource_version: version.to_owned(),
            applied_fields: None,
            ownership: Ownership { stack_label: Some(stack().to_string()), ..Ownership::default() },
            owners: Vec::new(),
            service_account_uid: None,
            is_terminating: false,
            is_prune_disabled: false,
        }
    }

    /// Returns the known resourceVersion of one object, and whether a pass is due, after a list at version 5 in which the
    /// object had version 3, and further steps.
    fn state_after(steps: impl FnOnce(&Reflector, &PassQueue)) -> (Option<String>, bool) {
        let (reflector, queue) = (Reflector::default(), PassQueue::default());
        reflector.add_type(&config_maps());
        reflector.replace_all(&config_maps(), vec![object("3")], "5", &queue);
        queue.begin_pass(stack());
        steps(&reflector, &queue);
        let known = reflector.select(&config_maps(), |_| true).expect("the type is current");
        (known.first().map(|object| object.resource_version.clone()), queue.reason(stack()).is_some())
    }

    fn receive_event(reflector: &Reflector, version: &str, existence: Existence, queue: &PassQueue) {
        reflector.update(&config_maps(), object(version), existence, queue);
        reflector.set_seen_version(&config_maps(), version);
    }

    #[test]
    fn events_of_our_own_write_cause_no_pass_and_older_events_are_ignored() {
        let written = state_after(|reflector, queue| {
            reflector.add_written([&object("9")].into_iter());
            receive_event(reflector, "7", Existence::Present, queue);
            receive_event(reflector, "9", Existence::Present, queue);
        });
        assert_eq!(written, (Some("9".into()), false));
    }

    #[test]
    fn events_after_our_own_write_cause_a_pass() {
        let edited = state_after(|reflector, queue| {
            reflector.add_written([&object("9")].into_iter());
            receive_event(reflector, "10", Existence::Present, queue);
        });
        assert_eq!(edited, (Some("10".into()), true));
        let gone = state_after(|reflector, queue| {
            reflector.add_written([&object("9")].into_iter());
            receive_event(reflector, "10", Existence::Gone, queue);
        });
        assert_eq!(gone, (None, true));
    }

    #[test]
    fn a_late_write_response_does_not_restore_a_deleted_object() {
        let gone = state_after(|reflector, queue| {
            receive_event(reflector, "9", Existence::Present, queue);
            receive_event(reflector, "10", Existence::Gone, queue);
            reflector.add_written([&object("9")].into_iter());
        });
        assert_eq!(gone, (None, true));
    }

    #[test]
    fn a_list_with_lower_versions_is_right_after_etcd_was_restored() {
        let changed = state_after(|reflector, queue| {
            reflector.add_written([&object("9")].into_iter());
            reflector.begin_list(&config_maps());
            reflector.replace_all(&config_maps(), vec![object("2")], "4", queue);
        });
        assert_eq!(changed, (Some("2".into()), true));
        let gone = state_after(|reflector, queue| {
            reflector.begin_list(&config_maps());
            reflector.replace_all(&config_maps(), Vec::new(), "2", queue);
        });
        assert_eq!(gone, (None, true));
        let event = state_after(|reflector, queue| {
            reflector.begin_list(&config_maps());
            reflector.replace_all(&config_maps(), vec![object("2")], "2", queue);
            queue.begin_pass(stack());
            receive_event(reflector, "3", Existence::Present, queue);
        });
        assert_eq!(event, (Some("3".into()), true), "later events are compared with the list");
    }

    #[test]
    fn a_restore_of_etcd_is_noticed_also_when_the_versions_have_caught_up() {
        let restores_after = |objects: Vec<LiveObject>, list_version: &str| {
            let mut restores = 0;
            state_after(|reflector, queue| {
                receive_event(reflector, "6", Existence::Present, queue);
                reflector.begin_list(&config_maps());
                reflector.replace_all(&config_maps(), objects, list_version, queue);
                restores = reflector.restores();
            });
            restores
        };
        assert_eq!(restores_after(vec![object("6")], "9"), 0);
        assert_eq!(restores_after(vec![object("8")], "9"), 0, "the object was changed");
        assert_eq!(restores_after(vec![object("6")], "4"), 1, "the list is older");
        assert_eq!(restores_after(vec![object("3")], "9"), 1, "the object is older");
        let mut other = object("4");
        other.key = Arc::new(ObjectKey { name: "b".into(), ..ObjectKey::clone(&other.key) });
        assert_eq!(restores_after(vec![object("6"), other], "9"), 1, "an object that was gone exists again");
    }

    #[test]
    fn a_list_older_than_our_own_write_is_ignored_and_a_newer_one_is_not() {
        let older = state_after(|reflector, queue| {
            reflector.begin_list(&config_maps());
            reflector.add_written([&object("9")].into_iter());
            reflector.replace_all(&config_maps(), Vec::new(), "8", queue);
        });
        assert_eq!(older, (Some("9".into()), false));
        let newer = state_after(|reflector, queue| {
            reflector.add_written([&object("9")].into_iter());
            reflector.replace_all(&config_maps(), Vec::new(), "11", queue);
        });
        assert_eq!(newer, (None, true));
    }
}
