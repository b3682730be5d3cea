//! Requests for objects of one kind, each with a timeout, and their errors.
//!
//! Nothing is retried here: the caller decides, because the right reaction depends on the request.

use std::future::Future;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, WatchEvent, WatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

/// Timeout of a request, without the events of a watch.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Time after which the server ends a watch.
const WATCH_SECONDS: u32 = 240;
/// Time without events after which a watch is considered broken: the server sends a bookmark about once a minute.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Error of a request, sorted by the reaction that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The object, or the namespace to create it in, does not exist.
    #[error("the object does not exist")]
    Missing,
    /// An object of that name exists already.
    #[error("the object exists already")]
    Exists,
    /// Another client has changed the object since it was read.
    #[error("the object was changed by another client")]
    Conflict,
    /// The resourceVersion is too old.
    #[error("the resourceVersion is too old")]
    Expired,
    /// The server did not execute the request, and may execute a later one.
    #[error("temporary error: {0}")]
    Transient(String),
    /// There was no response, or one that does not say if the request was executed.
    #[error("unknown result: {0}")]
    Unknown(String),
    /// The request fails until the object or the configuration of the cluster changes.
    #[error("rejected: {0}")]
    Permanent(String),
}

impl CallError {
    /// Returns true if the caller should read the objects again and make a new plan.
    pub fn is_stale(&self) -> bool {
        match self {
            CallError::Missing | CallError::Exists | CallError::Conflict => true,
            CallError::Expired | CallError::Transient(_) | CallError::Unknown(_) | CallError::Permanent(_) => false,
        }
    }
}

/// A kind of Kubernetes object, with the parts of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Name of the kind, such as `Deployment`.
    pub kind: &'static str,
    /// Name in URLs, such as `deployments`.
    pub plural: &'static str,
}

impl ResourceKind {
    /// Returns `apiVersion` as objects contain it.
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

/// Event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectEvent {
    /// The object was added or modified.
    Applied(Value),
    /// The object was deleted; its last state.
    Deleted(Value),
    /// There are no other events up to this resourceVersion.
    Bookmark(String),
}

/// The objects of one kind, in one namespace or in all of them.
#[derive(Clone)]
pub struct Objects {
    api: Api<DynamicObject>,
    kind: ResourceKind,
}

impl Objects {
    /// Objects of one namespace.
    pub fn in_namespace(client: &Client, kind: ResourceKind, namespace: &str) -> Self {
        Self { api: Api::namespaced_with(client.clone(), namespace, &kind.resource()), kind }
    }

    /// Objects of all namespaces, to list and watch.
    pub fn in_all_namespaces(client: &Client, kind: ResourceKind) -> Self {
        Self { api: Api::all_with(client.clone(), &kind.resource()), kind }
    }

    /// Returns an object, if it exists.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, CallError> {
        match self.request(self.api.get(name)).await {
            Ok(object) => to_value(&object).map(Some),
            Err(CallError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects that a label selector matches (all for an empty one), with the resourceVersion of the list.
    pub async fn list(&self, selector: &str) -> Result<(Vec<Value>, String), CallError> {
        let list = self.request(self.api.list(&ListParams::default().labels(selector))).await?;
        let resource_version = list.metadata.resource_version.clone().unwrap_or_default();
        let api_version = self.kind.api_version();
        let items = list.items.iter().map(|item| {
            // Items of a list have no apiVersion and no kind.
            let mut item = to_value(item)?;
            item["apiVersion"] = api_version.clone().into();
            item["kind"] = self.kind.kind.into();
            Ok(item)
        });
        Ok((items.collect::<Result<_, CallError>>()?, resource_version))
    }

    /// Creates an object.
    pub async fn create(&self, object: &Value) -> Result<Value, CallError> {
        let object = to_dynamic(object)?;
        to_value(&self.request(self.api.create(&PostParams::default(), &object)).await?)
    }

    /// Replaces an object. With a resourceVersion, only if the object still has it.
    pub async fn replace(&self, object: &Value) -> Result<Value, CallError> {
        let object = to_dynamic(object)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        to_value(&self.request(self.api.replace(&name, &PostParams::default(), &object)).await?)
    }

    /// Replaces the status of an object. With a resourceVersion, only if the object still has it.
    pub async fn replace_status(&self, object: &Value) -> Result<Value, CallError> {
        let object = to_dynamic(object)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        to_value(&self.request(self.api.replace_status(&name, &PostParams::default(), &object)).await?)
    }

    /// Deletes an object. With a UID, only if the object has it.
    pub async fn delete(&self, name: &str, uid: Option<&str>) -> Result<(), CallError> {
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        self.request(self.api.delete(name, &params)).await.map(drop)
    }

    /// Watches objects after a resourceVersion; after `"0"`, existing objects come first.
    pub async fn watch(
        &self,
        resource_version: &str,
    ) -> Result<impl Stream<Item = Result<ObjectEvent, CallError>> + use<'_>, CallError> {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let events = self.request(async move { self.api.watch(&params, resource_version).await.map(Box::pin) }).await?;
        Ok(futures_util::stream::unfold(events, async |mut events| {
            let next = timeout(SILENCE_MAX, events.next()).await;
            let silent = || Some(Err(kube::Error::Service("the watch sent no events".into())));
            let event = match next.unwrap_or_else(|_| silent())? {
                Ok(event) => self.convert_event(event),
                Err(error) => Err(self.convert_error(&error)),
            };
            Some((event, events))
        }))
    }

    fn convert_event(&self, event: WatchEvent<DynamicObject>) -> Result<ObjectEvent, CallError> {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => to_value(&object).map(ObjectEvent::Applied),
            WatchEvent::Deleted(object) => to_value(&object).map(ObjectEvent::Deleted),
            WatchEvent::Bookmark(bookmark) => Ok(ObjectEvent::Bookmark(bookmark.metadata.resource_version)),
            WatchEvent::Error(status) => Err(self.convert_error(&kube::Error::Api(status))),
        }
    }

    async fn request<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        let response = timeout(REQUEST_MAX, call).await.map_err(|_| CallError::Unknown("no response".to_owned()))?;
        response.map_err(|error| self.convert_error(&error))
    }

    fn convert_error(&self, error: &kube::Error) -> CallError {
        let kube::Error::Api(status) = error else {
            return match error {
                kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => CallError::Permanent(error.to_string()),
                // The enum is not exhaustive: every other error means that there was no response.
                _ => CallError::Unknown("the connection failed".to_owned()),
            };
        };
        // An error message about a Secret may quote it.
        let message = if self.kind.kind == "Secret" { &status.reason } else { &status.message };
        let message = format!("{} ({})", message, status.code);
        match status.code {
            404 => CallError::Missing,
            409 if status.reason == "AlreadyExists" => CallError::Exists,
            409 => CallError::Conflict,
            410 => CallError::Expired,
            408 | 429 | 503 => CallError::Transient(message),
            500..=599 => CallError::Unknown(message),
            _ => CallError::Permanent(message),
        }
    }
}

fn to_dynamic(object: &Value) -> Result<DynamicObject, CallError> {
    // Without the error of serde, which may quote the object.
    serde_json::from_value(object.clone()).map_err(|_| CallError::Permanent("the object is malformed".to_owned()))
}

fn to_value(object: &DynamicObject) -> Result<Value, CallError> {
    serde_json::to_value(object).map_err(|_| CallError::Permanent("the response is malformed".to_owned()))
}
