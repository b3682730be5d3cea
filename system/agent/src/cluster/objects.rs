//! The verbs: read metadata, apply, delete; and plain ConfigMaps for the inventory.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sindri_client::encoded;
use sindri_health::{Assessed, PodSelector};
use sindri_model::{Checksum, ObjectKey, StackId};

use super::call::{Answer, Call, Cluster, JSON};
use super::discovery::Resource;
use super::error::ClusterError;
use super::rewritten::rewritten;
use crate::ignore::Ignored;
use crate::marks::{Marks, STACK_LABEL};

/// The field manager of everything that the agent applies.
const FIELD_MANAGER: &str = "sindri-agent";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Objects per page of a list, and the most pages that are read.
const PAGE_SIZE: usize = 500;
const PAGES_MAX: usize = 10_000;
/// So many pods are looked at to explain why something is not ready.
const PODS_MAX: usize = 100;

/// What the agent needs to know of a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// Which object.
    pub key: ObjectKey,
    /// Where it was found.
    pub resource: Resource,
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

/// Stands for the fields that we applied to an object, and when: the server takes a field from us as soon as anybody
/// else gives it another value or takes it away, so that as long as this is the same, so is every declared value that is
/// not left to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(Checksum);

impl Fingerprint {
    /// Reads it out of an object's metadata.
    pub fn of(metadata: &Value) -> Option<Self> {
        let managers = metadata["managedFields"].as_array()?;
        let ours = managers.iter().find(|entry| {
            entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply" && entry["subresource"].is_null()
        })?;
        let (ignored, fields, time) = (Ignored::of(metadata), &ours["fieldsV1"], &ours["time"]);
        if ignored.is_empty() {
            return Some(Self(Checksum::of(&format!("{time} {fields}"))));
        }
        let mut fields = fields.clone();
        ignored.strip(&mut fields);
        Some(Self(Checksum::of(&format!("{time} {fields}"))))
    }
}

/// Whether a write counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The server checks and answers, and stores nothing.
    DryRun,
    /// For good.
    Real,
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
    pub async fn metadata(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<LiveObject>, ClusterError> {
        let call = Call::get(format!("read {key}"), resource.object_path(key)).accepting(METADATA);
        match self.send(&call).await {
            Ok(object) => live(&call, resource, &object).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The metadata of every object of a kind that is labelled with this stack.
    pub async fn labelled(&self, resource: &Resource, stack: StackId) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} of stack {stack}", resource.plural);
        let query = format!("labelSelector={STACK_LABEL}%3D{stack}");
        self.list(operation, resource, None, &query).await
    }

    /// The metadata of every object of a kind in a namespace.
    pub async fn in_namespace(&self, resource: &Resource, namespace: &str) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} in namespace {namespace}", resource.plural);
        self.list(operation, resource, Some(namespace), "").await
    }

    /// The metadata of every object of a kind.
    pub async fn instances(&self, resource: &Resource) -> Result<Vec<LiveObject>, ClusterError> {
        self.list(format!("list {}", resource.plural), resource, None, "").await
    }

    async fn list(
        &self,
        operation: String,
        resource: &Resource,
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
        resource: &Resource,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<(Vec<LiveObject>, String), ClusterError> {
        let namespace = namespace.or(self.scope().filter(|_| resource.namespaced));
        let base = format!("{}?limit={PAGE_SIZE}&{query}", resource.path(namespace));
        let mut call = Call::get(operation, base.clone()).accepting(METADATA_LIST);
        let mut objects = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = self.send(&call).await?;
            for item in items(&call, &page)? {
                objects.push(live(&call, resource, item)?);
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => call.path = format!("{base}&continue={token}"),
                None => {
                    let version = page["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                    return Ok((objects, version.to_owned()));
                }
            }
        }
        Err(call.malformed(format!("it has more than {PAGES_MAX} pages")))
    }

    /// Server-side apply with force, under our field manager.
    pub async fn apply(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        manifest: &Value,
        mode: Mode,
    ) -> Result<Applied, ClusterError> {
        // All of it, so that nobody has to read it once more to know how it is doing.
        let (call, answer) = self.send_apply(resource, key, manifest, mode, JSON).await?;
        let (status, object) = (answer.status, answer.read::<Value>(&call)?);
        let (live, assessed) = (live(&call, resource, &object)?, Assessed::of(&object, &[]));
        let (created, rewritten) = (status == StatusCode::CREATED, rewritten(manifest, &object));
        Ok(Applied { live, assessed, created, rewritten })
    }

    /// The object as an apply would leave it.
    pub async fn preview(&self, resource: &Resource, key: &ObjectKey, manifest: &Value) -> Result<Value, ClusterError> {
        let (call, answer) = self.send_apply(resource, key, manifest, Mode::DryRun, JSON).await?;
        answer.read(&call)
    }

    /// Applies an object, or asks whether the server would take it. What becomes of it is not looked at.
    pub async fn apply_unseen(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        manifest: &Value,
        mode: Mode,
    ) -> Result<(), ClusterError> {
        let (call, answer) = self.send_apply(resource, key, manifest, mode, METADATA).await?;
        answer.read::<IgnoredAny>(&call).map(drop)
    }

    async fn send_apply(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        manifest: &Value,
        mode: Mode,
        accept: &'static str,
    ) -> Result<(Call, Answer), ClusterError> {
        let (verb, dry_run) = match mode {
            Mode::DryRun => ("validate", "&dryRun=All"),
            Mode::Real => ("apply", ""),
        };
        let call = Call {
            operation: format!("{verb} {key}"),
            method: Method::PATCH,
            path: format!("{}?fieldManager={FIELD_MANAGER}&force=true{dry_run}", resource.object_path(key)),
            accept,
            content_type: APPLY_PATCH,
            if_none_match: None,
            body: written(manifest),
        };
        let secret = resource.group.is_empty() && resource.kind == "Secret";
        let sent = self.send_for_answer(&call).await;
        let answer = sent.map_err(|error| if secret { error.without_content() } else { error })?;
        Ok((call, answer))
    }

    /// Writes a whole object: makes it if it has no version, else replaces exactly that version.
    pub async fn put(&self, resource: &Resource, key: &ObjectKey, object: &Value) -> Result<Value, ClusterError> {
        let is_new = object["metadata"]["resourceVersion"].is_null();
        let path = if is_new { resource.path(key.namespace.as_deref()) } else { resource.object_path(key) };
        let call = Call {
            operation: format!("write {key}"),
            method: if is_new { Method::POST } else { Method::PUT },
            path: format!("{path}?fieldManager={FIELD_MANAGER}"),
            accept: JSON,
            content_type: JSON,
            if_none_match: None,
            body: written(object),
        };
        self.send(&call).await
    }

    /// Deletes the object with this identity and no other.
    pub async fn delete(&self, resource: &Resource, key: &ObjectKey, uid: &str) -> Result<Deletion, ClusterError> {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": {"uid": uid}, "propagationPolicy": "Background",
        });
        let call = Call {
            operation: format!("delete {key}"),
            method: Method::DELETE,
            path: resource.object_path(key),
            accept: JSON,
            content_type: JSON,
            if_none_match: None,
            body: written(&options),
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
        match self.send(&Call::get(format!("read {key}"), resource.object_path(key))).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first pods that a selector finds: the worst of so many tell enough.
    pub async fn pods(&self, selector: &PodSelector) -> Result<Vec<Value>, ClusterError> {
        let (namespace, labels) = (encoded(&selector.namespace), encoded(&selector.labels));
        let path = format!("/api/v1/namespaces/{namespace}/pods?limit={PODS_MAX}&labelSelector={labels}");
        let call = Call::get(format!("list the pods with {}", selector.labels), path);
        let list = self.send(&call).await?;
        Ok(items(&call, &list)?.to_vec())
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
        let call = Call::get(format!("list {} with {label}={value}", resource.plural), path);
        let list = self.send(&call).await?;
        Ok(items(&call, &list)?.to_vec())
    }
}

fn written(object: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(object).expect("a value is texts under names"))
}

/// The items of a list. The server writes an empty list of metadata as null; what is no list has no items at all.
fn items<'a>(call: &Call, list: &'a Value) -> Result<&'a [Value], ClusterError> {
    match &list["items"] {
        Value::Array(items) => Ok(items),
        Value::Null if list["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => Ok(&[]),
        _ => Err(call.malformed("it has no items")),
    }
}

fn identity(call: &Call, metadata: &Value) -> Result<String, ClusterError> {
    let uid = metadata["uid"].as_str().filter(|uid| !uid.is_empty());
    uid.map(str::to_owned).ok_or_else(|| call.malformed("it has no uid"))
}

pub(super) fn live(call: &Call, resource: &Resource, object: &Value) -> Result<LiveObject, ClusterError> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().ok_or_else(|| call.malformed("an object has no name"))?;
    Ok(LiveObject {
        key: ObjectKey {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: name.to_owned(),
        },
        resource: resource.clone(),
        uid: identity(call, metadata)?,
        version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        ours: Fingerprint::of(metadata),
        marks: Marks::of(metadata),
        owned: metadata["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty()),
        deleting: metadata["deletionTimestamp"].is_string(),
    })
}
