//! The cluster as passes use it: read, list, watch, apply and delete objects of any kind.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sindri_client::percent_encode;
use sindri_health::{AssessedObject, PodSelector};
use sindri_model::{ObjectKey, ServiceAccount, StackId, parse_json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connect::Sender;
use super::discovery::{Discovery, ListedTypes};
use super::error::ClusterError;
use super::limits::Limits;
use super::live_object::LiveObject;
use super::namespaces::{AGENT_NAMESPACE, DEFAULT_NAMESPACE};
use super::ownership::{STACK_LABEL, without_ownership};
use super::requests::{ApiClient, ApiRequest, ApiResponse, JSON, METADATA, METADATA_LIST, Operation};
use super::resource::ApiResource;
use super::response_object::{FIELD_MANAGER, ResponseObject};
use super::retry::RetryPolicy;
use super::rewritten_field::find_rewritten_field;
use super::unserved_kind::UnservedKind;
use super::watch::Watch;
use super::write_gate::WriteGate;
use crate::telemetry::metrics::Metrics;

const APPLY_PATCH: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Most pages of one list.
const PAGES_MAX: usize = 10_000;
/// Initial capacity for a serialized object; most are smaller.
const OBJECT_BYTES: usize = 1_024;
/// Pods that are read to explain why an object is not ready.
const PODS_MAX: usize = 100;

/// Client of one cluster. Each request is retried by the retry policy.
#[derive(Clone)]
pub struct Cluster {
    api: ApiClient,
    discovery: Arc<Discovery>,
    /// The only namespace that the agent may touch; `None` for the whole cluster.
    namespace_scope: Option<String>,
    /// Namespaces that no stack may use, besides the agent's own.
    reserved_namespaces: Vec<String>,
    /// False if every delete is an error.
    may_delete: bool,
}

/// Persistence of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMode {
    /// The server validates and responds, and stores nothing.
    DryRun,
    /// The server stores the object.
    Persist,
}

/// Serialized object to apply. Most objects are sent twice: for validation, and to be stored.
pub struct ApplyPatch<'a> {
    resource: &'a Arc<ApiResource>,
    key: &'a ObjectKey,
    path: String,
    body: Bytes,
}

impl<'a> ApplyPatch<'a> {
    /// Serializes the object at `key`.
    pub fn new(resource: &'a Arc<ApiResource>, key: &'a ObjectKey, object: &impl Serialize) -> Self {
        let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", resource.object_path(key));
        Self { resource, key, path, body: serialize(object) }
    }

    /// Returns the path of the first field that has another value in `live` than was applied.
    pub fn find_rewritten_field(&self, live: &Value) -> Option<String> {
        let mut applied: Value = parse_json(&self.body).ok()?;
        // A precondition, not a value that the object is to have.
        if let Some(metadata) = applied["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        find_rewritten_field(&applied, live)
    }
}

/// Result of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedObject {
    /// Object after the apply.
    pub live: LiveObject,
    /// Health of the object after the apply.
    pub health: AssessedObject,
    /// True if this request created the object.
    pub created: bool,
    /// Path of the first field that has another value than was applied.
    pub rewritten_field: Option<String>,
}

/// Number of times that an object is checked again because it changed between the check and the delete.
const CHANGES_MAX: usize = 5;
/// Checks of one attempt to write an object, if each time the write has to wait.
const CHECKS_MAX: usize = 20;
/// Time for which a check is valid at least; one that took long is valid for twice as long.
const CHECK_VALID_MIN: Duration = Duration::from_secs(1);

/// Result of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteResult {
    /// The object did not exist.
    Absent,
    /// The server accepted the delete; the object is gone once its finalizers are done.
    Accepted,
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
    resource_version: Option<String>,
}

/// Metadata of the objects of one page of a list.
struct MetadataPage {
    objects: Vec<LiveObject>,
    /// Token of the next page, if there is one.
    next: Option<String>,
    resource_version: String,
}

impl<T> Page<T> {
    /// Returns the items. The server serializes an empty list of metadata as null; any other document without items is malformed.
    fn into_items(self, request: &ApiRequest<'_>) -> Result<Vec<T>, ClusterError> {
        match self.items {
            Some(items) => Ok(items),
            None if self.kind.is_some_and(|kind| kind.ends_with("List")) => Ok(Vec::new()),
            None => Err(request.malformed("it has no items")),
        }
    }
}

impl Cluster {
    /// Returns a client that sends requests by `sender`; see [`super::sender()`].
    pub fn new(sender: Sender, retry_policy: RetryPolicy) -> Self {
        let api = ApiClient::new(sender, retry_policy, Arc::default(), Limits::default());
        Self {
            api,
            discovery: Arc::default(),
            namespace_scope: None,
            reserved_namespaces: Vec::new(),
            may_delete: true,
        }
    }

    /// Limits the agent to one namespace, if one is given.
    #[must_use]
    pub fn with_namespace_scope(mut self, namespace: Option<String>) -> Self {
        self.namespace_scope = namespace;
        self
    }

    /// Closes further namespaces to stacks.
    #[must_use]
    pub fn with_reserved_namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.reserved_namespaces = namespaces;
        self
    }

    /// Returns the namespaces that no stack may use. An agent of one namespace keeps its own objects beside those of stacks.
    pub(crate) fn reserved_namespaces(&self) -> impl Iterator<Item = &str> {
        let own = self.namespace_scope.is_none().then_some(AGENT_NAMESPACE);
        own.into_iter().chain(self.reserved_namespaces.iter().map(String::as_str))
    }

    /// Sets the limits of the agent's work.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.api.set_limits(limits);
        self
    }

    /// Returns the limits of the agent's work.
    pub(crate) fn limits(&self) -> Limits {
        self.api.limits()
    }

    /// Counts requests in these metrics.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.api.set_metrics(metrics);
        self
    }

    /// Returns a client of the same cluster that still works after shutdown and while the write gate is closed, for leader
    /// election.
    pub(crate) fn independent(&self) -> Self {
        Self { api: self.api.independent(), discovery: Arc::default(), ..self.clone() }
    }

    /// Returns a client of the same cluster whose requests and retries end at a deadline.
    pub(crate) fn with_deadline(&self, deadline: Instant) -> Self {
        let mut limited = self.clone();
        limited.api.deadline = Some(deadline);
        limited
    }

    /// Returns a client of the same cluster that does not retry failed requests any more once the token is cancelled.
    pub(crate) fn with_retries_until(&self, cancelled: CancellationToken) -> Self {
        let mut limited = self.clone();
        limited.api.no_more_retries = cancelled;
        limited
    }

    /// Returns true if failed requests are not retried any more.
    pub(crate) fn has_ended_retries(&self) -> bool {
        self.api.no_more_retries.is_cancelled()
    }

    /// Returns a client of the same cluster whose retries only its deadline and shutdown end: for steps that must not
    /// remain half done.
    pub(crate) fn with_all_retries(&self) -> Self {
        self.with_retries_until(CancellationToken::new())
    }

    /// Returns a client of the same cluster that does not retry requests for which a webhook could not be called.
    pub(crate) fn without_webhook_retries(&self) -> Self {
        let mut limited = self.clone();
        limited.api.retries_webhooks = false;
        limited
    }

    /// Returns a client of the same cluster that deletes nothing.
    pub(crate) fn without_deletes(&self) -> Self {
        Self { may_delete: false, ..self.clone() }
    }

    /// Returns the user name of the ServiceAccount as which writes are authorized, if they are.
    pub(crate) fn impersonated_user(&self) -> Option<&str> {
        self.api.impersonated_user.as_deref()
    }

    /// Returns a client of the same cluster whose writes, dry runs included, are authorized as those of a ServiceAccount.
    pub(crate) fn as_service_account(&self, account: Option<&ServiceAccount>) -> Self {
        let mut client = self.clone();
        client.api.impersonated_user = account.map(|account| account.to_user().into());
        client
    }

    /// Returns the write gate. From the first call on, writes wait until it is open.
    pub(crate) fn write_gate(&self) -> WriteGate {
        self.api.write_gate().clone()
    }

    /// Returns the token that stops this client: once it is cancelled, no request is sent any more.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.api.shutdown
    }

    /// Returns the only namespace that the agent may touch, if it is limited to one.
    pub(crate) fn namespace_scope(&self) -> Option<&str> {
        self.namespace_scope.as_deref()
    }

    /// Returns the namespace of the agent's own objects.
    pub(crate) fn agent_namespace(&self) -> &str {
        self.namespace_scope().unwrap_or(AGENT_NAMESPACE)
    }

    /// Returns the namespace of declared objects that name none.
    pub(crate) fn default_namespace(&self) -> &str {
        self.namespace_scope().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the response time of the server; `None` if it does not respond. Not retried.
    pub(crate) async fn ping(&self) -> Option<Duration> {
        self.api.ping().await
    }

    /// Returns the resource type of a kind; `None` if the cluster does not serve it.
    pub(crate) async fn find_resource(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        self.discovery.find(&self.api, group, version, kind).await
    }

    /// Returns the resource type in any version that serves it, the given one first; `None` if no version does, and its objects are
    /// provably gone.
    pub(crate) async fn find_resource_in_any_version(
        &self,
        known: &ApiResource,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        let found = self.discovery.find_in_any_version(&self.api, known).await?;
        if found.is_none() {
            let (namespace, agent_namespace) = (self.namespace_scope(), self.agent_namespace());
            UnservedKind { known, api: &self.api, namespace, agent_namespace }.check_objects_are_gone().await?;
        }
        Ok(found)
    }

    /// The same after reading discovery again, because a request for the cached type failed with 404.
    pub(crate) async fn find_resource_again(
        &self,
        known: &ApiResource,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        self.forget_group(&known.group).await;
        self.find_resource_in_any_version(known).await
    }

    /// Returns every resource type that can be listed, in every version, and the errors of the versions that cannot be read. An
    /// agent of one namespace gets the namespaced types.
    pub(crate) async fn list_resources(&self) -> Result<ListedTypes, ClusterError> {
        let mut types = self.discovery.list_all(&self.api).await?;
        types.resources.retain(|resource| resource.namespaced || self.namespace_scope.is_none());
        Ok(types)
    }

    /// Returns every resource type that can be listed; fails if a version of a group cannot be read.
    pub(crate) async fn list_all_resources(&self) -> Result<Vec<Arc<ApiResource>>, ClusterError> {
        let ListedTypes { resources, errors } = self.list_resources().await?;
        errors.into_iter().next().map_or(Ok(resources), Err)
    }

    /// Removes a group from the discovery cache, because a CRD in it changed.
    pub(crate) async fn forget_group(&self, group: &str) {
        self.discovery.forget_group(group).await;
    }

    /// Returns the metadata of an object, in any version that is served; `None` if it does not exist.
    pub(crate) async fn get_metadata(
        &self,
        resource: &Arc<ApiResource>,
        key: &ObjectKey,
    ) -> Result<Option<LiveObject>, ClusterError> {
        match self.read_metadata(resource, key).await {
            Err(error) if error.is_not_found() => match self.find_other_version(resource, error).await? {
                Some(served) => self.read_metadata(&served, key).await,
                None => Ok(None),
            },
            read => read,
        }
    }

    async fn read_metadata(
        &self,
        resource: &Arc<ApiResource>,
        key: &ObjectKey,
    ) -> Result<Option<LiveObject>, ClusterError> {
        let request = ApiRequest::get(Operation::Object("read", key), resource.object_path(key)).accepting(METADATA);
        match self.api.send_for_response(&request).await {
            Ok(response) => LiveObject::from_response(&request, resource, &response.read(&request)?).map(Some),
            Err(error) if error.proves_absence(&key.name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns another version in which a type is served, after a request for it failed with 404 and proved nothing; `None`
    /// if no version is served any more, or only in the other scope, so that no object of this key exists. Fails if the type is
    /// served as before.
    async fn find_other_version(
        &self,
        resource: &ApiResource,
        not_found: ClusterError,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        match self.find_resource_again(resource).await? {
            Some(served) if *served == *resource => Err(not_found),
            // The scope of a CRD cannot be changed: it was deleted with all of its objects, and created again.
            Some(served) if served.namespaced != resource.namespaced && !resource.is_aggregated => Ok(None),
            served => Ok(served),
        }
    }

    /// Returns a whole object; `None` if it does not exist.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
    ) -> Result<Option<T>, ClusterError> {
        self.send_get(key, ApiRequest::get(Operation::Object("read", key), resource.object_path(key))).await
    }

    async fn send_get<T: DeserializeOwned>(
        &self,
        key: &ObjectKey,
        request: ApiRequest<'_>,
    ) -> Result<Option<T>, ClusterError> {
        match self.api.send_for_response(&request).await {
            Ok(response) => response.read(&request).map(Some),
            Err(error) if error.proves_absence(&key.name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the metadata of every object of a type that carries the label of this stack.
    pub(crate) async fn list_stack_objects(
        &self,
        resource: &Arc<ApiResource>,
        stack: StackId,
    ) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} of stack {stack}", resource.plural);
        let query = format!("labelSelector={STACK_LABEL}%3D{stack}");
        self.list(operation, resource, None, &query).await
    }

    /// Returns the metadata of every object of a type in a namespace.
    pub(crate) async fn list_namespace(
        &self,
        resource: &Arc<ApiResource>,
        namespace: &str,
    ) -> Result<Vec<LiveObject>, ClusterError> {
        let operation = format!("list {} in namespace {namespace}", resource.plural);
        self.list(operation, resource, Some(namespace), "").await
    }

    /// Returns the metadata of every object of a type.
    pub(crate) async fn list_all(&self, resource: &Arc<ApiResource>) -> Result<Vec<LiveObject>, ClusterError> {
        self.list(format!("list {}", resource.plural), resource, None, "").await
    }

    /// Returns the metadata of every object of a type in a namespace, or in the cluster, if one page holds them all.
    pub(crate) async fn list_single_page(
        &self,
        resource: &Arc<ApiResource>,
        namespace: Option<&str>,
    ) -> Result<Option<Vec<LiveObject>>, ClusterError> {
        let operation = Operation::Other(format!("list {}", resource.plural));
        let path = format!("{}?limit={}", resource.path(namespace), self.limits().list_page);
        let request = ApiRequest::get(operation, path).accepting(METADATA_LIST);
        let page = self.read_page(&request, resource).await?;
        Ok(page.next.is_none().then_some(page.objects))
    }

    /// Returns the metadata of every object of a type that carries the ownership label, and the resourceVersion of the list.
    pub(crate) async fn list_labelled(
        &self,
        resource: &Arc<ApiResource>,
    ) -> Result<(Vec<LiveObject>, String), ClusterError> {
        let operation = format!("list labelled {}", resource.plural);
        self.list_pages(operation, resource, None, &format!("labelSelector={STACK_LABEL}")).await
    }

    async fn list(
        &self,
        operation: String,
        resource: &Arc<ApiResource>,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<Vec<LiveObject>, ClusterError> {
        let listed = match self.list_pages(operation.clone(), resource, namespace, query).await {
            // The type, or its version, was removed between discovery and this request.
            Err(error) if error.is_not_found() => match self.find_other_version(resource, error).await? {
                Some(served) => self.list_pages(operation, &served, namespace, query).await,
                None => return Ok(Vec::new()),
            },
            listed => listed,
        };
        listed.map(|(objects, _)| objects)
    }

    /// Lists page by page, and returns the resourceVersion of the list.
    async fn list_pages(
        &self,
        operation: String,
        resource: &Arc<ApiResource>,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<(Vec<LiveObject>, String), ClusterError> {
        let namespace = namespace.or(self.namespace_scope().filter(|_| resource.namespaced));
        let base = format!("{}?limit={}&{query}", resource.path(namespace), self.limits().list_page);
        let mut request = ApiRequest::get(Operation::Other(operation), base.clone()).accepting(METADATA_LIST);
        let mut objects = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = self.read_page(&request, resource).await?;
            objects.extend(page.objects);
            match page.next {
                Some(token) => request.path = format!("{base}&continue={token}"),
                None => return Ok((objects, page.resource_version)),
            }
        }
        Err(request.malformed(format!("it has more than {PAGES_MAX} pages")))
    }

    async fn read_page(
        &self,
        request: &ApiRequest<'_>,
        resource: &Arc<ApiResource>,
    ) -> Result<MetadataPage, ClusterError> {
        let response = self.api.send_for_response(request).await?;
        let mut page: Page<ResponseObject<'_>> = response.read(request)?;
        let PageMetadata { next, resource_version } = page.metadata.take().unwrap_or_default();
        // Items without a UID, such as PodMetrics, are computed and not stored: they cannot be owned or deleted.
        let items = page.into_items(request)?;
        let stored = items.iter().filter(|item| item.metadata()["uid"].is_string());
        let objects =
            stored.map(|item| LiveObject::from_response(request, resource, item)).collect::<Result<_, _>>()?;
        let next = next.filter(|token| !token.is_empty());
        Ok(MetadataPage { objects, next, resource_version: resource_version.unwrap_or_default() })
    }

    /// Watches the objects of a type that carry the ownership label, from a resourceVersion on. Not retried: the caller
    /// decides between watching again and listing again.
    pub(crate) async fn watch(
        &self,
        resource: &Arc<ApiResource>,
        resource_version: &str,
    ) -> Result<Watch, ClusterError> {
        Watch::open(&self.api, resource, self.namespace_scope(), resource_version).await
    }

    /// Returns whole objects in a namespace that carry a label.
    pub(crate) async fn list_full<T: DeserializeOwned>(
        &self,
        resource: &ApiResource,
        namespace: &str,
        label: &str,
        value: &str,
    ) -> Result<Vec<T>, ClusterError> {
        let path = format!("{}?labelSelector={label}%3D{value}", resource.path(Some(namespace)));
        let operation = Operation::Other(format!("list {} with {label}={value}", resource.plural));
        self.list_one_page(ApiRequest::get(operation, path)).await
    }

    /// Returns the first pods of a selector, which are enough to explain a failure.
    pub(crate) async fn list_pods(&self, selector: &PodSelector) -> Result<Vec<Value>, ClusterError> {
        let (namespace, labels) = (percent_encode(&selector.namespace), percent_encode(&selector.labels));
        let path = format!("/api/v1/namespaces/{namespace}/pods?limit={PODS_MAX}&labelSelector={labels}");
        let operation = Operation::Other(format!("list the pods with {}", selector.labels));
        self.list_one_page(ApiRequest::get(operation, path)).await
    }

    async fn list_one_page<T: DeserializeOwned>(&self, request: ApiRequest<'_>) -> Result<Vec<T>, ClusterError> {
        let response = self.api.send_for_response(&request).await?;
        response.read::<Page<T>>(&request)?.into_items(&request)
    }

    /// Applies an object with server-side apply and force, under the agent's field manager.
    pub(crate) async fn apply(&self, patch: &ApplyPatch<'_>, mode: ApplyMode) -> Result<AppliedObject, ClusterError> {
        // Asks for the whole object, so that its health is known without a further read.
        let (request, response) = self.send_patch(patch, mode, JSON).await?;
        let object: ResponseObject<'_> = response.read(&request)?;
        Ok(AppliedObject {
            live: LiveObject::from_response(&request, patch.resource, &object)?,
            health: AssessedObject::new(&object.value, &[]),
            created: response.status == StatusCode::CREATED,
            rewritten_field: patch.find_rewritten_field(&object.value),
        })
    }

    /// Returns the object as an apply would leave it.
    pub(crate) async fn dry_run_apply(&self, patch: &ApplyPatch<'_>) -> Result<Value, ClusterError> {
        let (request, response) = self.send_patch(patch, ApplyMode::DryRun, JSON).await?;
        response.read(&request)
    }

    /// Applies or validates an object without reading the result.
    pub(crate) async fn apply_only(&self, patch: &ApplyPatch<'_>, mode: ApplyMode) -> Result<(), ClusterError> {
        let (request, response) = self.send_patch(patch, mode, METADATA).await?;
        response.read::<IgnoredAny>(&request).map(drop)
    }

    /// Applies an object and returns its metadata.
    pub(crate) async fn apply_metadata(
        &self,
        patch: &ApplyPatch<'_>,
        mode: ApplyMode,
    ) -> Result<LiveObject, ClusterError> {
        let (request, response) = self.send_patch(patch, mode, METADATA).await?;
        LiveObject::from_response(&request, patch.resource, &response.read(&request)?)
    }

    async fn send_patch<'a>(
        &self,
        patch: &'a ApplyPatch<'_>,
        mode: ApplyMode,
        accept: &'static str,
    ) -> Result<(ApiRequest<'a>, ApiResponse), ClusterError> {
        let (verb, dry_run) = match mode {
            ApplyMode::DryRun => ("validate", "&dryRun=All"),
            ApplyMode::Persist => ("apply", ""),
        };
        let (operation, path) = (Operation::Object(verb, patch.key), [&patch.path, dry_run].concat());
        let mut request = ApiRequest::new(operation, Method::PATCH, path, patch.body.clone()).accepting(accept);
        request.content_type = APPLY_PATCH;
        let response = self.api.send_for_response(&request).await?;
        Ok((request, response))
    }

    /// Creates an object and returns its metadata; a conflict if one of this name exists.
    pub(crate) async fn create(
        &self,
        resource: &Arc<ApiResource>,
        key: &ObjectKey,
        object: &impl Serialize,
    ) -> Result<LiveObject, ClusterError> {
        let path = format!("{}?fieldManager={FIELD_MANAGER}", resource.path(key.namespace.as_deref()));
        let request = ApiRequest::new(Operation::Object("create", key), Method::POST, path, serialize(object))
            .accepting(METADATA);
        let response = self.api.send_for_response(&request).await?;
        LiveObject::from_response(&request, resource, &response.read(&request)?)
    }

    /// Creates an object without a resourceVersion, or replaces exactly the given resourceVersion.
    pub(crate) async fn create_or_replace<T: Serialize + Metadata<Ty = ObjectMeta>>(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        object: &T,
    ) -> Result<(), ClusterError> {
        let (method, path) = match object.metadata().resource_version {
            None => (Method::POST, resource.path(key.namespace.as_deref())),
            Some(_) => (Method::PUT, resource.object_path(key)),
        };
        let path = format!("{path}?fieldManager={FIELD_MANAGER}");
        let request = ApiRequest::new(Operation::Object("write", key), method, path, serialize(object));
        self.api.send(&request).await.map(drop)
    }

    /// Creates an Event, unless it exists.
    pub(crate) async fn create_event(&self, event: &Event) -> Result<(), ClusterError> {
        let resource = ApiResource::from_namespaced_type::<Event>();
        let (namespace, name) = (event.metadata.namespace.as_deref(), event.metadata.name.as_deref());
        let key = resource.object_key(namespace, name.unwrap_or_default());
        match self.create_or_replace(&resource, &key, event).await {
            Err(error) if error.is_conflict() => Ok(()),
            created => created,
        }
    }

    /// Removes the ownership label and annotations from an object as `check` returns it, and changes nothing else. Checked before
    /// each attempt as in [`Self::delete`].
    pub(crate) async fn release<E, F>(
        &self,
        key: &ObjectKey,
        check: impl Fn() -> F,
    ) -> Result<Result<(), E>, ClusterError>
    where
        F: Future<Output = Result<Option<LiveObject>, E>>,
    {
        let send = |live: Option<LiveObject>, latest| async move {
            match live {
                Some(live) => self.release_once(&live, latest).await,
                None => Ok(Some(())),
            }
        };
        self.attempt_checked(("release", key), check, send).await
    }

    async fn release_once(&self, live: &LiveObject, latest: Instant) -> Result<Option<()>, ClusterError> {
        let patch = json!({"metadata": without_ownership(&live.uid, &live.resource_version)});
        let path = format!("{}?fieldManager={FIELD_MANAGER}", live.resource.object_path(&live.key));
        let operation = Operation::Object("release", &live.key);
        let mut request = ApiRequest::new(operation, Method::PATCH, path, serialize(&patch)).accepting(METADATA);
        request.content_type = MERGE_PATCH;
        match self.api.send_until(&request, latest).await {
            Ok(sent) => Ok(sent.map(drop)),
            Err(error) if error.proves_absence(&live.key.name) => Ok(Some(())),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object as `check` returns it, and no other, in any version that is served. Before each attempt it is checked
    /// again, also after a conflict or a wait; `check` returns `None` if it is gone, and an error if it must not be deleted.
    pub(crate) async fn delete<E, F>(
        &self,
        key: &ObjectKey,
        check: impl Fn() -> F,
    ) -> Result<Result<DeleteResult, E>, ClusterError>
    where
        F: Future<Output = Result<Option<LiveObject>, E>>,
    {
        let send = |live: Option<LiveObject>, latest| async move {
            match live {
                Some(live) if live.is_terminating => Ok(Some(DeleteResult::Accepted)),
                Some(live) => self.delete_once(&live, latest).await,
                None => Ok(Some(DeleteResult::Absent)),
            }
        };
        self.attempt_checked(("delete", key), check, send).await
    }

    /// Checks an object and then sends a write, in attempts that are repeated after failures that are worth a retry, and after
    /// conflicts. Nothing is waited for between the two: the Lease before the check, and a write that cannot be sent before
    /// `latest` is checked again.
    async fn attempt_checked<T, E, C, S>(
        &self,
        (verb, key): (&'static str, &ObjectKey),
        check: impl Fn() -> C,
        send: impl Fn(Option<LiveObject>, Instant) -> S,
    ) -> Result<Result<T, E>, ClusterError>
    where
        C: Future<Output = Result<Option<LiveObject>, E>>,
        S: Future<Output = Result<Option<T>, ClusterError>>,
    {
        let attempt = || async {
            for _ in 0..CHECKS_MAX {
                self.api.wait_until_writable(Operation::Object(verb, key)).await?;
                let began = Instant::now();
                let live = match check().await {
                    Ok(live) => live,
                    // The checks retry their own requests.
                    Err(refusal) => return Ok(Err(refusal)),
                };
                // Many other requests may be in flight, whose responses take as long as those of the check.
                let valid = (2 * began.elapsed()).max(CHECK_VALID_MIN);
                if let Some(sent) = send(live, Instant::now() + valid).await? {
                    return Ok(Ok(sent));
                }
            }
            let cause = "it could not be sent soon enough after it was checked".to_owned();
            let operation = Operation::Object(verb, key).to_failed();
            Err(ClusterError::Unreachable { operation, cause, attempts: 0 })
        };
        for _ in 0..CHANGES_MAX {
            match self.api.retry(&attempt).await {
                Err(error) if error.is_conflict() => {}
                ended => return ended,
            }
        }
        self.api.retry(&attempt).await
    }

    async fn delete_once(&self, live: &LiveObject, latest: Instant) -> Result<Option<DeleteResult>, ClusterError> {
        if !self.may_delete {
            return Err(ClusterError::DeleteWithheld { operation: Operation::Object("delete", &live.key).to_failed() });
        }
        match self.send_delete(&live.resource, live, latest).await {
            Err(error) if error.is_not_found() => match self.find_other_version(&live.resource, error).await? {
                Some(served) => self.send_delete(&served, live, latest).await,
                None => Ok(Some(DeleteResult::Absent)),
            },
            deleted => deleted,
        }
    }

    async fn send_delete(
        &self,
        resource: &Arc<ApiResource>,
        live: &LiveObject,
        latest: Instant,
    ) -> Result<Option<DeleteResult>, ClusterError> {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": live.uid, "resourceVersion": live.resource_version},
        });
        let (operation, path) = (Operation::Object("delete", &live.key), resource.object_path(&live.key));
        let request = ApiRequest::new(operation, Method::DELETE, path, serialize(&options));
        match self.api.send_until(&request, latest).await {
            Ok(sent) => Ok(sent.map(|_| DeleteResult::Accepted)),
            Err(error) if error.proves_absence(&live.key.name) => Ok(Some(DeleteResult::Absent)),
            Err(error) => Err(error),
        }
    }

    /// Creates the namespace of the agent's own objects, if it does not exist. An agent of one namespace uses that one.
    pub(crate) async fn ensure_agent_namespace(&self) -> Result<(), ClusterError> {
        if self.namespace_scope.is_some() {
            return Ok(());
        }
        let resource = Arc::new(ApiResource::from_cluster_type::<Namespace>());
        let key = resource.object_key(None, AGENT_NAMESPACE);
        if self.get_metadata(&resource, &key).await?.is_none() {
            let metadata = ObjectMeta { name: Some(AGENT_NAMESPACE.to_owned()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            self.apply_only(&ApplyPatch::new(&resource, &key, &namespace), ApplyMode::Persist).await?;
        }
        Ok(())
    }
}

fn serialize(object: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(OBJECT_BYTES);
    serde_json::to_writer(&mut text, object).expect("objects have string keys only");
    Bytes::from(text)
}
