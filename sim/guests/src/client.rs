//! The verbs that a guest uses on objects of one kind, each with a deadline, and what may go wrong with them.
//!
//! Nothing is retried here: what to do about a failure depends on what was being done.

use std::future::Future;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, WatchEvent, WatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

/// No answer takes longer; a watch may be silent for longer.
const DEADLINE: Duration = Duration::from_secs(10);
/// After this the server ends a watch.
const WATCH_SECONDS: u32 = 240;
/// A quiet watch has a bookmark about once a minute; one that is quieter than this is taken for broken.
const QUIET_MAX: Duration = Duration::from_secs(90);

/// Why a call did not succeed, by what its caller has to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// There is no such object, or no such namespace to create it in.
    #[error("it is not there")]
    Missing,
    /// There is one of that name already.
    #[error("it exists already")]
    Exists,
    /// Somebody else wrote it since it was read.
    #[error("it was changed by someone else")]
    Conflict,
    /// The history does not reach back that far.
    #[error("the history is gone")]
    Expired,
    /// Nobody knows whether it was carried out; later it may work.
    #[error("for now: {0}")]
    Transient(String),
    /// It will not work until somebody changes something.
    #[error("refused: {0}")]
    Permanent(String),
}

impl Failure {
    /// Whether reading again and planning again settles it.
    pub fn is_stale(&self) -> bool {
        match self {
            Failure::Missing | Failure::Exists | Failure::Conflict => true,
            Failure::Expired | Failure::Transient(_) | Failure::Permanent(_) => false,
        }
    }
}

/// A kind, as its address needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind, such as `Deployment`.
    pub kind: &'static str,
    /// The resource, such as `deployments`.
    pub plural: &'static str,
}

impl Kind {
    /// As objects write it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// What a watch has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The object is there, and like this.
    Seen(Value),
    /// It is gone; this is how it was.
    Gone(Value),
    /// Nothing happened up to this version.
    Bookmark(String),
}

/// The objects of one kind, in one namespace or in all of them.
#[derive(Clone)]
pub struct Objects {
    api: Api<DynamicObject>,
    kind: Kind,
}

impl Objects {
    /// The objects of one namespace.
    pub fn within(client: &Client, kind: Kind, namespace: &str) -> Self {
        Self { api: Api::namespaced_with(client.clone(), namespace, &kind.resource()), kind }
    }

    /// Those of every namespace, to be listed and watched.
    pub fn everywhere(client: &Client, kind: Kind) -> Self {
        Self { api: Api::all_with(client.clone(), &kind.resource()), kind }
    }

    /// One object, if it is there.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Failure> {
        match self.ask(self.api.get(name)).await {
            Ok(object) => written(&object).map(Some),
            Err(Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Those that a label selector selects (all of them if it is empty), and the version of the list.
    pub async fn list(&self, selector: &str) -> Result<(Vec<Value>, String), Failure> {
        let list = self.ask(self.api.list(&ListParams::default().labels(selector))).await?;
        let version = list.metadata.resource_version.clone().unwrap_or_default();
        let api_version = self.kind.api_version();
        let items = list.items.iter().map(|item| {
            // Items of a list do not say what they are.
            let mut item = written(item)?;
            item["apiVersion"] = api_version.clone().into();
            item["kind"] = self.kind.kind.into();
            Ok(item)
        });
        Ok((items.collect::<Result<_, Failure>>()?, version))
    }

    /// Creates an object.
    pub async fn create(&self, object: &Value) -> Result<Value, Failure> {
        let object = read(object)?;
        written(&self.ask(self.api.create(&PostParams::default(), &object)).await?)
    }

    /// Replaces an object; if it has a version, only that version.
    pub async fn replace(&self, object: &Value) -> Result<Value, Failure> {
        let object = read(object)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        written(&self.ask(self.api.replace(&name, &PostParams::default(), &object)).await?)
    }

    /// Replaces the status of an object; if it has a version, only that version.
    pub async fn replace_status(&self, object: &Value) -> Result<Value, Failure> {
        let object = read(object)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        written(&self.ask(self.api.replace_status(&name, &PostParams::default(), &object)).await?)
    }

    /// Deletes an object; with an identity, only the one that has it.
    pub async fn delete(&self, name: &str, uid: Option<&str>) -> Result<(), Failure> {
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let how = DeleteParams { preconditions, ..DeleteParams::default() };
        self.ask(self.api.delete(name, &how)).await.map(drop)
    }

    /// What happens from a version on; from `"0"` on, what is there comes first.
    pub async fn watch(&self, version: &str) -> Result<impl Stream<Item = Result<Event, Failure>> + use<'_>, Failure> {
        let how = WatchParams::default().timeout(WATCH_SECONDS);
        let events = self.ask(async move { self.api.watch(&how, version).await.map(Box::pin) }).await?;
        Ok(futures_util::stream::unfold(events, async |mut events| {
            let told = timeout(QUIET_MAX, events.next()).await;
            let told = match told.unwrap_or_else(|_| Some(Err(kube::Error::Service("the watch fell silent".into()))))? {
                Ok(event) => self.event(event),
                Err(error) => Err(self.failure(&error)),
            };
            Some((told, events))
        }))
    }

    fn event(&self, event: WatchEvent<DynamicObject>) -> Result<Event, Failure> {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => written(&object).map(Event::Seen),
            WatchEvent::Deleted(object) => written(&object).map(Event::Gone),
            WatchEvent::Bookmark(bookmark) => Ok(Event::Bookmark(bookmark.metadata.resource_version)),
            WatchEvent::Error(status) => Err(self.failure(&kube::Error::Api(status))),
        }
    }

    async fn ask<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        let answered = timeout(DEADLINE, call).await.map_err(|_| Failure::Transient("no answer".to_owned()))?;
        answered.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &kube::Error) -> Failure {
        let kube::Error::Api(status) = error else {
            return match error {
                kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Failure::Permanent(error.to_string()),
                // Other people's enum: whatever else it says, the answer did not come.
                _ => Failure::Transient("the connection broke".to_owned()),
            };
        };
        // What a server says about a Secret may quote it.
        let words = if self.kind.kind == "Secret" { &status.reason } else { &status.message };
        let words = format!("{} ({})", words, status.code);
        match status.code {
            404 => Failure::Missing,
            409 if status.reason == "AlreadyExists" => Failure::Exists,
            409 => Failure::Conflict,
            410 => Failure::Expired,
            408 | 429 | 500..=599 => Failure::Transient(words),
            _ => Failure::Permanent(words),
        }
    }
}

fn read(object: &Value) -> Result<DynamicObject, Failure> {
    // The error is not told: it may quote the object.
    serde_json::from_value(object.clone()).map_err(|_| Failure::Permanent("the object is malformed".to_owned()))
}

fn written(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|_| Failure::Permanent("the answer is malformed".to_owned()))
}

/// A text in an object; empty if it is not there.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The identity of an object.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Whether an object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}
