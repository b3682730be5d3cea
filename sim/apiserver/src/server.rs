//! The machine: its state, its front door, and the one place where changes are committed.
//!
//! What each verb does is in `verbs`, what happens by itself later is in `controllers`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::auth::Tokens;
use crate::controllers::Workloads;
use crate::discovery::{groups, health, openapi};
use crate::http::error::{ApiError, refusal};
use crate::http::media;
use crate::http::request::{Credentials, Fault, Request};
use crate::http::response::{Response, WatchId};
use crate::http::route::{Route, route};
use crate::object::fields::{later, uid};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::registry::resource::Registry;
use crate::state::schedule::{Schedule, Task};
use crate::state::watch::Watch;
use crate::storage::ids::Ids;
use crate::storage::journal::{Actor, Verb, Write};
use crate::storage::store::{Event, Store};

/// The largest body that is read, as in the real server.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How long the controllers of the control plane take, and how long history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lags {
    /// From the deletion of a namespace to the deletion of its content.
    pub namespace_termination: SignedDuration,
    /// From the creation of a namespace to its default service account.
    pub namespace_furniture: SignedDuration,
    /// From the creation of a definition to its condition `Established`.
    pub definition_established: SignedDuration,
    /// From that to its kind being served.
    pub definition_served: SignedDuration,
    /// From the deletion of a definition to the deletion of its instances.
    pub definition_finalization: SignedDuration,
    /// From the deletion of an owner to the deletion of its dependents.
    pub garbage_collection: SignedDuration,
    /// From a change to the deployment controller's look at it.
    pub deployment: SignedDuration,
    /// The same of the controller of replica sets.
    pub replica_set: SignedDuration,
    /// The same of the controller of stateful sets.
    pub stateful_set: SignedDuration,
    /// The same of the controller of daemon sets.
    pub daemon_set: SignedDuration,
    /// The same of the controller of jobs.
    pub job: SignedDuration,
    /// The same of the controller of cron jobs, and from a scheduled time to the job.
    pub cron_job: SignedDuration,
    /// The same of the controller of endpoints.
    pub endpoints: SignedDuration,
    /// The same of the controller of endpoint slices.
    pub endpoint_slice: SignedDuration,
    /// From the creation of a pod to its node.
    pub scheduling: SignedDuration,
    /// From that to its containers running.
    pub pod_start: SignedDuration,
    /// From that to its readiness, where a probe has to find out.
    pub pod_ready: SignedDuration,
    /// From the deletion of a pod to its end.
    pub pod_stop: SignedDuration,
    /// How long a container runs that ends by itself: that of a job, and one that crashes.
    pub container_ends: SignedDuration,
    /// How far back a watch may start.
    pub history: SignedDuration,
}

impl Default for Lags {
    fn default() -> Self {
        Self {
            namespace_termination: SignedDuration::from_millis(500),
            namespace_furniture: SignedDuration::from_millis(50),
            definition_established: SignedDuration::from_millis(100),
            definition_served: SignedDuration::from_millis(100),
            definition_finalization: SignedDuration::from_millis(200),
            garbage_collection: SignedDuration::from_millis(500),
            deployment: SignedDuration::from_millis(20),
            replica_set: SignedDuration::from_millis(20),
            stateful_set: SignedDuration::from_millis(20),
            daemon_set: SignedDuration::from_millis(20),
            job: SignedDuration::from_millis(20),
            cron_job: SignedDuration::from_millis(20),
            endpoints: SignedDuration::from_millis(50),
            endpoint_slice: SignedDuration::from_millis(50),
            scheduling: SignedDuration::from_millis(20),
            pod_start: SignedDuration::from_millis(500),
            pod_ready: SignedDuration::from_millis(500),
            pod_stop: SignedDuration::from_millis(300),
            container_ends: SignedDuration::from_secs(1),
            history: SignedDuration::from_secs(300),
        }
    }
}

/// One Kubernetes API server as a machine.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) schedule: Schedule,
    pub(crate) ids: Ids,
    pub(crate) lags: Lags,
    watches: BTreeMap<WatchId, Watch>,
    watches_opened: u64,
    journal: Vec<Write>,
    journaling: bool,
    /// How many cluster addresses were given to services.
    pub(crate) addresses: u32,
    /// How many ports on nodes were given to services.
    pub(crate) node_ports: u32,
    /// Whether the controllers of a whole control plane run.
    controllers: bool,
    /// Whether pods need an account, and get its token.
    pub(crate) admits_accounts: bool,
    /// The controllers of workloads, if the server has them.
    pub(crate) workloads: Workloads,
    /// The administrator's token; without one everybody is the administrator.
    pub(crate) administrator: Option<Credentials>,
    /// The tokens that accounts got.
    pub(crate) tokens: Tokens,
}

impl ApiServer {
    /// A fresh server with its first namespaces. Identities come from a generator with this seed.
    #[must_use]
    pub fn new(seed: u64, now: Timestamp) -> Self {
        Self::with_lags(seed, now, Lags::default())
    }

    /// A fresh server whose controllers take this long.
    #[must_use]
    pub fn with_lags(seed: u64, now: Timestamp, lags: Lags) -> Self {
        let mut server = Self {
            store: Store::default(),
            registry: Registry::new(),
            schedule: Schedule::default(),
            ids: Ids::new(seed),
            lags,
            watches: BTreeMap::new(),
            watches_opened: 0,
            journal: Vec::new(),
            journaling: true,
            addresses: 0,
            node_ports: 0,
            controllers: true,
            admits_accounts: true,
            workloads: Workloads::default(),
            administrator: None,
            tokens: Tokens::default(),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            server.create_namespace(now, name);
        }
        server.journal.clear();
        server
    }

    /// The same server without a journal, for when nobody reads it.
    #[must_use]
    pub fn without_journal(mut self) -> Self {
        self.journal.clear();
        self.journaling = false;
        self
    }

    /// The same server without what runs beside an API server: namespaces are not furnished or emptied, and no garbage
    /// is collected. Definitions are still served, which the API server itself does.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        self
    }

    /// The same server without the part of admission that wants an account for each pod and mounts its token.
    #[must_use]
    pub fn without_account_admission(mut self) -> Self {
        self.admits_accounts = false;
        self
    }

    /// Handles one request.
    pub fn handle(&mut self, now: Timestamp, request: &Request, fault: Option<&Fault>) -> Response {
        // What was due before this request happened before it, whether or not someone called `tick` in between.
        self.tick(now);
        match fault {
            None => self.answer(now, request),
            Some(Fault::Refuse { status, retry_after_secs }) => refusal(*status, *retry_after_secs),
            Some(Fault::CutBeforeCommit) => Response::Cut,
            Some(Fault::Rewrite(patch)) => self.answer(now, &request.rewritten(patch)),
            Some(Fault::BreakStream { after_events, how }) => {
                let answered = self.answer(now, request);
                if let Response::Watch(id) = &answered
                    && let Some(watch) = self.watches.get_mut(id)
                {
                    watch.break_after(*after_events, *how);
                }
                answered
            }
            Some(Fault::LoseAnswer) => {
                if let Response::Watch(id) = self.answer(now, request) {
                    self.close_watch(id);
                }
                Response::Cut
            }
        }
    }

    /// Does what the control plane does by itself, up to this moment.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(task) = self.schedule.take_due(now) {
            self.run(now, task);
        }
        self.store.compact(now, self.lags.history);
    }

    /// When there is something to do next.
    #[must_use]
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.schedule.next()
    }

    /// The headers of a watch.
    #[must_use]
    pub fn watch_headers(&self, id: WatchId) -> Vec<(&'static str, String)> {
        let media = self.watches.get(&id).map_or("application/json", Watch::media);
        vec![("content-type", media.to_owned())]
    }

    /// The events of a watch since the last call: lines of JSON, or messages with their length before them.
    pub fn watch_events(&mut self, id: WatchId, now: Timestamp) -> Vec<Bytes> {
        self.watches.get_mut(&id).map(|watch| watch.read(&self.store, now)).unwrap_or_default()
    }

    /// Whether a watch has ended and everything in it was read.
    #[must_use]
    pub fn watch_is_closed(&self, id: WatchId) -> bool {
        self.watches.get(&id).is_none_or(Watch::is_closed)
    }

    /// Whether the connection of a watch breaks where the watch ends.
    #[must_use]
    pub fn watch_is_cut(&self, id: WatchId) -> bool {
        self.watches.get(&id).is_some_and(Watch::is_cut)
    }

    /// When a watch has something to say although nothing changed: a bookmark, or its end.
    #[must_use]
    pub fn watch_wakes_at(&self, id: WatchId) -> Option<Timestamp> {
        self.watches.get(&id).and_then(Watch::next_wake)
    }

    /// Forgets a watch.
    pub fn close_watch(&mut self, id: WatchId) {
        self.watches.remove(&id);
    }

    /// How many watches are open.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.watches.len()
    }

    /// Forgets the whole history, so that each watch that is behind ends with 410.
    pub fn compact(&mut self) {
        self.store.compact_all();
    }

    /// Every committed change since the last call, in order.
    pub fn take_journal(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.journal)
    }

    /// Every object, by resource, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = (&StoredKey, &Arc<Value>)> {
        self.store.all().map(|entry| (&*entry.key, &**entry.object))
    }

    /// One object.
    #[must_use]
    pub fn get(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Option<&Arc<Value>> {
        self.store.get(group, plural, namespace, name).map(|entry| &**entry.object)
    }

    /// The revision of the newest change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Changes whenever watches or the tick loop may have something to do.
    pub(crate) fn pulse(&self) -> (u64, u64, Option<Timestamp>) {
        (self.store.revision(), self.store.compacted(), self.schedule.next())
    }

    fn answer(&mut self, now: Timestamp, request: &Request) -> Response {
        let (request, route) = match route(&request.path) {
            Route::Watch(inner) => (&request.as_watch(), *inner),
            other => (request, other),
        };
        let answered = match (self.admit(request, &route), route) {
            (Err(refused), _) => Err(refused),
            (Ok(user), Route::Objects(objects)) => self.answer_objects(now, request, user, objects),
            (Ok(_), other) => self.answer_document(request, &other),
        };
        let refused = |error: ApiError| error.into_response().in_notation(media::plain_notation(request));
        let response = answered.unwrap_or_else(refused);
        if request.method == Method::HEAD { response.without_body() } else { response.encoded(request) }
    }

    /// Answers what is not about objects. All of it is read-only.
    fn answer_document(&self, request: &Request, route: &Route) -> Result<Response, ApiError> {
        let notation = media::plain_notation(request);
        let found = |document: Option<Value>| {
            let answer = |document: Value| Response::json(200, &document).in_notation(notation);
            document.map(answer).ok_or(ApiError::NoSuchPath)
        };
        // Documents that there are in one notation only.
        let only = |document: Value, media: &str| match media::refuses(request, media) {
            true => Err(ApiError::not_acceptable(&[media])),
            false => Ok(Response::json(200, &document).with_header("content-type", media.to_owned())),
        };
        match route {
            Route::Nowhere => return Err(ApiError::NoSuchPath),
            Route::NoResource => return Err(ApiError::no_such_resource()),
            _ if request.method != Method::GET => return Err(ApiError::method_not_allowed()),
            _ => {}
        }
        let aggregated = media::aggregated_discovery(request);
        let tag = &request.headers.if_none_match;
        match route {
            Route::Version => only(groups::version(), "application/json"),
            Route::Health { endpoint, check } => health::answer(request, endpoint, check),
            Route::Root => Ok(Response::json(200, &groups::paths(&self.registry))),
            Route::Keys => only(groups::keys(), "application/jwk-set+json"),
            Route::Issuer => only(groups::issuer(), "application/json"),
            Route::Core | Route::Groups => {
                let is_core = *route == Route::Core;
                match aggregated {
                    Some(notation) => Ok(groups::tagged(&groups::aggregated(&self.registry, is_core), notation, tag)),
                    None if is_core => found(Some(groups::core())),
                    None => found(Some(groups::groups(&self.registry))),
                }
            }
            Route::Group(group) => found(groups::group(&self.registry, group)),
            Route::Resources { group, version } => match groups::resources(&self.registry, group, version) {
                None if self.registry.has_group(group) => Err(ApiError::no_such_resource()),
                document => found(document),
            },
            Route::OpenApi2 => Ok(openapi::version_2(request)),
            Route::OpenApi3Index => Ok(Response::json(200, &openapi::index(&self.registry))
                .with_header("content-type", "text/plain; charset=utf-8".to_owned())),
            Route::OpenApi3 { group, version } => match openapi::document(&self.registry, group, version) {
                Some(document) => Ok(openapi::answer(document.into(), tag, false)),
                None => Ok(Response::Full { status: 404, headers: Vec::new(), body: Bytes::new() }),
            },
            Route::Objects(_) | Route::Watch(_) | Route::NoResource | Route::Nowhere => Err(ApiError::NoSuchPath),
        }
    }

    pub(crate) fn open_watch(&mut self, watch: Watch) -> WatchId {
        self.watches_opened += 1;
        let id = WatchId(self.watches_opened);
        self.watches.insert(id, watch);
        id
    }

    /// Ends the watches of a resource that is no longer served.
    pub(crate) fn close_watches_of(&mut self, group: &str, plural: &str) {
        for watch in self.watches.values_mut().filter(|watch| watch.scope.target.resource.is(group, plural)) {
            watch.close();
        }
    }

    /// Stores an object. The caller has found out that it differs from what is stored.
    pub(crate) fn commit(&mut self, now: Timestamp, who: &Authorship, key: StoredKey, object: Value) -> Arc<Stored> {
        let event = self.store.put(now, key, object);
        self.record(now, who, &event);
        event.object
    }

    /// Removes an object and returns its last state.
    pub(crate) fn expunge(&mut self, now: Timestamp, who: &Authorship, key: &StoredKey) -> Option<Arc<Stored>> {
        let event = self.store.remove(now, key)?;
        self.record(now, who, &event);
        Some(event.object)
    }

    fn record(&mut self, now: Timestamp, who: &Authorship, event: &Event) {
        assert!(event.gone || event.before.as_ref() != Some(&event.object), "a write changes something");
        if self.journaling {
            self.journal.push(Write {
                at: now,
                actor: who.actor.clone(),
                verb: who.verb,
                subresource: who.subresource,
                key: event.key.clone(),
                uid: uid(&event.object).to_owned(),
                resource_version: event.revision,
                before: event.before.as_ref().map(|before| before.object()),
                after: (!event.gone).then(|| event.object.object()),
            });
        }
        self.react(now, event);
    }

    pub(crate) fn schedule_after(&mut self, now: Timestamp, lag: SignedDuration, task: Task) {
        if !self.controllers && !task.is_of_the_server() {
            return;
        }
        self.schedule.add(later(now, lag), task);
    }

    /// The next cluster address for a service.
    pub(crate) fn next_address(&mut self) -> Value {
        self.addresses += 1;
        let [_, high, middle, low] = self.addresses.to_be_bytes();
        json!(format!("10.{}.{middle}.{low}", 96_u8.saturating_add(high)))
    }
}

/// Who makes a change, and how.
#[derive(Clone, Debug)]
pub(crate) struct Authorship {
    pub(crate) actor: Actor,
    pub(crate) verb: Verb,
    pub(crate) subresource: &'static str,
}

impl Authorship {
    pub(crate) fn controller(name: &'static str, verb: Verb) -> Self {
        Self { actor: Actor::Controller(name), verb, subresource: "" }
    }
}
