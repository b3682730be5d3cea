//! The verbs: read metadata, apply, delete; and plain ConfigMaps for the inventory.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sindri_client::encoded;
use sindri_health::{Assessed, PodSelector};
use sindri_model::{ObjectKey, StackId, json_value};
use tokio::time::Instant;

use super::discovery::Resource;
use super::error::ClusterError;
use super::requests::{Answer, Call, Cluster, JSON, Operation};
use super::response_object::{FIELD_MANAGER, Fingerprint, Received};
use super::rewritten_field::rewritten;
use crate::cluster::ownership::{Marks, STACK_LABEL};

const APPLY_PATCH: &str = "application/apply-patch+yaml";
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Objects per page of a list, and the most pages that are read.
const PAGE_SIZE: usize = 500;
const PAGES_MAX: usize = 10_000;
/// Most objects have no more than this, and room is made for more only when there is more.
const OBJECT_BYTES: usize = 1_024;
/// So many pods are looked at to explain why something is not ready.
const PODS_MAX: usize = 100;

/// What the agent needs to know of a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// Which object.
    pub key: Arc<ObjectKey>,
    /// Where it was found.
    pub resource: Arc<Resource>,
    /// Its identity: another object of the same name has another.
    pub uid: String,
    /// Another one after every change, of its status too.
    pub version: String,
    /// What we own of it.
    pub ours: Option<Fingerprint>,
    /// Whose it is said to be.
    pub marks: Marks,
    /// Whether another object owns it.
    pub owned: bool,
    /// Whether it is on its way out.
    pub deleting: bool,
}

impl LiveObject {
    /// Whether this is how the object was before `other`, as far as the versions tell.
    pub fn is_before(&self, other: &Self) -> bool {
        matches!((version_number(&self.version), version_number(&other.version)), (Some(this), Some(other)) if this < other)
    }
}

/// A version as a number, which grows with every write to the cluster.
pub fn version_number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// Whether a write counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The server checks and answers, and stores nothing.
    DryRun,
    /// For good.
    Real,
}

/// An object to apply, written out once: most are sent twice, for validation and for good.
pub struct Patch<'a> {
    resource: &'a Arc<Resource>,
    key: &'a ObjectKey,
    path: String,
    text: Bytes,
}

impl<'a> Patch<'a> {
    /// For the object at `key`, which is sent as it is written out.
    pub fn new(resource: &'a Arc<Resource>, key: &'a ObjectKey, object: &impl Serialize) -> Self {
        Self { resource, key, path: patch_path(resource, key), text: written(object) }
    }

    /// The first field that the server has with another value than was just applied.
    pub fn rewritten(&self, live: &Value) -> Option<String> {
        rewritten(&json_value(&self.text).ok()?, live)
    }
}

/// What an apply left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The object after the apply.
    pub live: LiveObject,
    /// How it was doing then.
    pub assessed: Assessed,
    /// Whether this very call made it.
    pub created: bool,
    /// The first field that has another value than was applied.
    pub rewritten: Option<String>,
}

/// One page of a list.
#[derive(Deserialize)]
struct Page<T> {
    kind: Option<String>,
    metadata: Option<PageMetadata>,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
}

impl<T> Page<T> {
    /// Its items. The server writes an empty list of metadata as null; what is no list has no items at all.
    fn into_items(self, call: &Call<'_>) -> Result<Vec<T>, ClusterError> {
        match self.items {
            Some(items) => Ok(items),
            None if self.kind.is_some_and(|kind| kind.ends_with("List")) => Ok(Vec::new()),
            None => Err(call.malformed("it has no items")),
        }
    }
}

/// What a delete came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object was not there.
    Absent,
    /// The server accepted; the object goes now or when its finalizers are done.
    Accepted,
    /// Another object of that name is there now; it stays.
    Replaced,
}

impl Cluster {
    /// The metadata of one object; `None` when the server answers that there is none.
    pub async fn metadata(
        &self,
        resource: &Arc<Resource>,
        key: &ObjectKey,
    ) -> Result<Option<LiveObject>, ClusterError> {
        let call = Call::get(Operation::Of("read", key), resource.object_path(key)).accepting(METADATA);
        match self.send_for_answer(&call).await {
            Ok(answer) => live(&call, resource, &answer.read(&call)?).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The metadata of every object of a kind that is labelled with this stack.
    pub async fn labelled(&self, resource: &Arc<Resource>, stack: StackId) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} of stack {stack}", resource.plural);
        let query = format!("labelSelector={STACK_LABEL}%3D{stack}");
        self.list(operation, resource, None, &query).await
    }

    /// The metadata of every object of a kind in a namespace.
    pub async fn in_namespace(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
    ) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} in namespace {namespace}", resource.plural);
        self.list(operation, resource, Some(namespace), "").await
    }

    /// The metadata of every object of a kind.
    pub async fn instances(&self, resource: &Arc<Resource>) -> Result<Vec<LiveObject>, ClusterError> {
        self.list(format!("list {}", resource.plural), resource, None, "").await
    }

    async fn list(
        &self,
        operation: String,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<Vec<LiveObject>, ClusterError> {
        match self.list_at(operation, resource, namespace, query).await {
            Ok((objects, _)) => Ok(objects),
            // The kind went away between discovery and this call: nothing of it can be there.
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// A list, and the version of the cluster at which it holds.
    pub(super) async fn list_at(
        &self,
        operation: String,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<(Vec<LiveObject>, String), ClusterError> {
        let namespace = namespace.or(self.scope().filter(|_| resource.namespaced));
        let base = format!("{}?limit={PAGE_SIZE}&{query}", resource.path(namespace));
        let mut call = Call::get(Operation::Said(operation), base.clone()).accepting(METADATA_LIST);
        let mut objects = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.send_for_answer(&call).await?;
            let mut page: Page<Received<'_>> = answer.read(&call)?;
            let PageMetadata { next, version } = page.metadata.take().unwrap_or_default();
            for item in page.into_items(&call)? {
                objects.push(live(&call, resource, &item)?);
            }
            match next.filter(|token| !token.is_empty()) {
                Some(token) => call.path = format!("{base}&continue={token}"),
                None => return Ok((objects, version.unwrap_or_default())),
            }
        }
        Err(call.malformed(format!("it has more than {PAGES_MAX} pages")))
    }

    /// Server-side apply with force, under our field manager.
    pub async fn apply(&self, patch: &Patch<'_>, mode: Mode) -> Result<Applied, ClusterError> {
        // All of it, so that nobody has to read it once more to know how it is doing.
        let (call, answer) = self.send_patch(patch, mode, JSON).await?;
        let received: Received<'_> = answer.read(&call)?;
        let (live, assessed) = (live(&call, patch.resource, &received)?, Assessed::of(&received.object, &[]));
        let (created, rewritten) = (answer.status == StatusCode::CREATED, patch.rewritten(&received.object));
        Ok(Applied { live, assessed, created, rewritten })
    }

    /// The object as an apply would leave it.
    pub async fn preview(&self, patch: &Patch<'_>) -> Result<Value, ClusterError> {
        let (call, answer) = self.send_patch(patch, Mode::DryRun, JSON).await?;
        answer.read(&call)
    }

    /// Applies an object, or asks whether the server would take it. What becomes of it is not looked at.
    pub async fn apply_unseen(&self, patch: &Patch<'_>, mode: Mode) -> Result<(), ClusterError> {
        let (call, answer) = self.send_patch(patch, mode, METADATA).await?;
        answer.read::<IgnoredAny>(&call).map(drop)
    }

    async fn send_patch<'a>(
        &self,
        patch: &'a Patch<'_>,
        mode: Mode,
        accept: &'static str,
    ) -> Result<(Call<'a>, Answer), ClusterError> {
        let (verb, dry_run) = match mode {
            Mode::DryRun => ("validate", "&dryRun=All"),
            Mode::Real => ("apply", ""),
        };
        let call = Call {
            operation: Operation::Of(verb, patch.key),
            method: Method::PATCH,
            path: [&patch.path, dry_run].concat(),
            accept,
            content_type: APPLY_PATCH,
            if_none_match: None,
            body: patch.text.clone(),
            until: None,
        };
        let secret = patch.resource.group.is_empty() && patch.resource.kind == "Secret";
        let sent = self.send_for_answer(&call).await;
        let answer = sent.map_err(|error| if secret { error.without_content() } else { error })?;
        Ok((call, answer))
    }

    /// Writes a whole object: makes it if it has no version, else replaces exactly that version.
    pub async fn put(&self, resource: &Resource, key: &ObjectKey, object: &Value) -> Result<Value, ClusterError> {
        let is_new = object["metadata"]["resourceVersion"].is_null();
        let path = if is_new { resource.path(key.namespace.as_deref()) } else { resource.object_path(key) };
        let call = Call {
            operation: Operation::Of("write", key),
            method: if is_new { Method::POST } else { Method::PUT },
            path: format!("{path}?fieldManager={FIELD_MANAGER}"),
            accept: JSON,
            content_type: JSON,
            if_none_match: None,
            body: written(object),
            until: None,
        };
        self.send(&call).await
    }

    /// Deletes the object with this identity and no other.
    pub async fn delete(&self, resource: &Arc<Resource>, key: &ObjectKey, uid: &str) -> Result<Deletion, ClusterError> {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": {"uid": uid}, "propagationPolicy": "Background",
        });
        let call = Call {
            operation: Operation::Of("delete", key),
            method: Method::DELETE,
            path: resource.object_path(key),
            accept: JSON,
            content_type: JSON,
            if_none_match: None,
            body: written(&options),
            until: None,
        };
        match self.send(&call).await {
            Ok(_) => Ok(Deletion::Accepted),
            Err(error) if error.is_not_found() => Ok(Deletion::Absent),
            Err(error) if error.is_conflict() => match self.metadata(resource, key).await? {
                None => Ok(Deletion::Absent),
                Some(live) if live.uid != uid => Ok(Deletion::Replaced),
                // It is the one that was meant: something else stood against it.
                Some(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// A whole object; `None` when the server answers that there is none.
    pub async fn read(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, ClusterError> {
        self.found(Call::get(Operation::Of("read", key), resource.object_path(key))).await
    }

    /// The same, for somebody who does not wait for ever.
    pub async fn read_until(
        &self,
        until: Instant,
        resource: &Resource,
        key: &ObjectKey,
    ) -> Result<Option<Value>, ClusterError> {
        self.found(Call::get(Operation::Of("read", key), resource.object_path(key)).until(until)).await
    }

    async fn found(&self, call: Call<'_>) -> Result<Option<Value>, ClusterError> {
        match self.send(&call).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first pods that a selector finds: the worst of so many tell enough.
    pub async fn pods_until(&self, until: Instant, selector: &PodSelector) -> Result<Vec<Value>, ClusterError> {
        let (namespace, labels) = (encoded(&selector.namespace), encoded(&selector.labels));
        let path = format!("/api/v1/namespaces/{namespace}/pods?limit={PODS_MAX}&labelSelector={labels}");
        let call = Call::get(Operation::Said(format!("list the pods with {}", selector.labels)), path).until(until);
        self.send_for_answer(&call).await?.read::<Page<Value>>(&call)?.into_items(&call)
    }

    /// Whole objects of a namespace by label.
    pub async fn read_labelled(
        &self,
        resource: &Resource,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let path = format!("{}?labelSelector={label}%3D{value}", resource.path(Some(namespace)));
        let call = Call::get(Operation::Said(format!("list {} with {label}={value}", resource.plural)), path);
        self.send_for_answer(&call).await?.read::<Page<Value>>(&call)?.into_items(&call)
    }
}

fn patch_path(resource: &Resource, key: &ObjectKey) -> String {
    format!("{}?fieldManager={FIELD_MANAGER}&force=true", resource.object_path(key))
}

fn written(object: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(OBJECT_BYTES);
    serde_json::to_writer(&mut text, object).expect("an object is values under names");
    Bytes::from(text)
}

fn identity(call: &Call<'_>, metadata: &Value) -> Result<String, ClusterError> {
    let uid = metadata["uid"].as_str().filter(|uid| !uid.is_empty());
    uid.map(str::to_owned).ok_or_else(|| call.malformed("it has no uid"))
}

pub(super) fn live(
    call: &Call<'_>,
    resource: &Arc<Resource>,
    received: &Received<'_>,
) -> Result<LiveObject, ClusterError> {
    let metadata = received.metadata();
    let name = metadata["name"].as_str().ok_or_else(|| call.malformed("an object has no name"))?;
    Ok(LiveObject {
        key: Arc::new(ObjectKey {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: name.to_owned(),
        }),
        resource: resource.clone(),
        uid: identity(call, metadata)?,
        version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        ours: received.ours(),
        marks: Marks::of(metadata),
        owned: metadata["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty()),
        deleting: metadata["deletionTimestamp"].is_string(),
    })
}
