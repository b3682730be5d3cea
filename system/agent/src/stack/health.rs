//! Health of the objects of a stack. Objects are read only if they have changed or are not ready yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sindri_health::{AssessedObject, Health, HealthState, HealthSummary, OverallHealth, pod_selector, summarize};
use sindri_model::ObjectKey;
use sindri_model::wire::{ConditionStatus, HealthStatus};
use tokio::time::Instant;

use super::conditions::ReadyCondition;
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError};
use crate::panics::catch_panic;
use crate::pass::creation::{CreationResult, SeenResult};
use crate::pass::desired::DesiredObject;
use crate::pass::order::ReadyObjects;
use crate::pass::summary::{SeenObject, SeenState};
use crate::telemetry::metrics::Metrics;

/// Number of objects that are not ready and named in a message.
const NAMED_MAX: usize = 5;
/// Time limit of all health reads of one pass. The next pass reads again; drift correction and new revisions must not wait
/// for minutes because one object cannot be read.
const READ_MAX: Duration = Duration::from_secs(10);

/// Health of the objects of one stack. It may be lost: the next pass reads it again.
#[derive(Debug, Default)]
pub struct StackHealth {
    objects: BTreeMap<Arc<ObjectKey>, ObjectHealth>,
    /// First failed read of the last update, or the first one that panicked.
    read_error: Option<ReadError>,
    /// True if the revision of the last update declares no object.
    declares_nothing: bool,
}

/// Reason why the health of an object was not read.
#[derive(Debug)]
enum ReadError {
    /// The object could not be read.
    Failed(String),
    /// The agent panicked.
    Panicked(String),
}

impl ReadError {
    fn to_condition(&self) -> ReadyCondition {
        let (reason, error) = match self {
            Self::Failed(error) => ("NotSeen", error),
            Self::Panicked(error) => ("InternalError", error),
        };
        ReadyCondition { status: ConditionStatus::Unknown, reason: reason.to_owned(), message: error.clone() }
    }
}

#[derive(Debug)]
struct ObjectHealth {
    /// resourceVersion of the live object; `None` if there is none, or it was not read.
    resource_version: Option<String>,
    assessed: AssessedObject,
    /// True if objects of later turns wait until it is ready.
    is_waited_for: bool,
}

impl StackHealth {
    /// Reads the objects that changed since the last update or are not ready, and the pods of those that are not ready.
    pub async fn update(
        &mut self,
        cluster: &Cluster,
        metrics: &Metrics,
        declared: Vec<SeenObject>,
        declares_nothing: bool,
    ) {
        self.declares_nothing = declares_nothing;
        if !self.objects.is_empty() {
            let keys: BTreeSet<&ObjectKey> = declared.iter().map(|declared| &*declared.object.key).collect();
            self.objects.retain(|key, _| keys.contains(&**key));
        }
        let mut due = Vec::new();
        for SeenObject { object, state } in declared {
            let (resource_version, assessed) = match state {
                SeenState::Present { resource_version, health: None } => {
                    if self.is_due(&object.key, &resource_version) {
                        due.push(object);
                    }
                    continue;
                }
                // The response to the write of this pass had the health; a later change causes a read.
                SeenState::Present { resource_version, health: Some(health) } => (Some(resource_version), health),
                SeenState::Missing => (None, assess_absent(&object.key, Health::missing())),
                SeenState::Done(result) => (None, assess_absent(&object.key, assess_done(result, &object))),
                SeenState::Unread => (None, assess_absent(&object.key, Health::not_read())),
            };
            let is_waited_for = object.is_waited_for();
            self.objects.insert(object.key.clone(), ObjectHealth { resource_version, assessed, is_waited_for });
        }
        let deadline = Instant::now() + READ_MAX;
        let cluster = &cluster.with_deadline(deadline);
        let read = run_concurrently(due, |object| read_isolated(cluster, metrics, deadline, object)).await;
        self.read_error = None;
        for read in read {
            match read {
                Ok(Some((key, health))) => {
                    self.objects.insert(key, health);
                }
                // The next pass observes that it is gone.
                Ok(None) => {}
                Err(error) => self.add_error(error),
            }
        }
    }

    /// Keeps the first error, which is the cause: later ones may only have run out of time. A panic replaces other errors.
    fn add_error(&mut self, error: ReadError) {
        match (&self.read_error, &error) {
            (None, _) | (Some(ReadError::Failed(_)), ReadError::Panicked(_)) => self.read_error = Some(error),
            _ => {}
        }
    }

    fn is_due(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let is_current = |known: &ObjectHealth| {
            known.resource_version.as_deref() == Some(resource_version)
                && known.assessed.health.state == HealthState::Ready
        };
        !self.objects.get(key).is_some_and(is_current)
    }

    /// Returns true if an object could not be read in the last update.
    pub fn has_read_error(&self) -> bool {
        self.read_error.is_some()
    }

    /// Returns the objects that are ready, or for which no other object waits.
    pub fn find_ready(&self) -> ReadyObjects {
        let is_ready = |health: &ObjectHealth| match health.assessed.health.state {
            HealthState::Ready => true,
            HealthState::Failing => false,
            _ => !health.is_waited_for,
        };
        self.objects.iter().filter(|(_, health)| is_ready(health)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns whether an object is ready or has failed; `None` if it is neither, or does not exist.
    pub fn find_result(&self, key: &ObjectKey) -> Option<SeenResult> {
        let known = self.objects.get(key).filter(|known| known.resource_version.is_some())?;
        SeenResult::from_assessed(&known.assessed)
    }

    /// Describes those of the objects that do not become ready by themselves.
    pub fn describe_failing(&self, keys: &[Arc<ObjectKey>]) -> Vec<(ObjectKey, String)> {
        let failing = keys.iter().filter_map(|key| {
            let health = &self.objects.get(key)?.assessed.health;
            let describe = || format!("{key} has failed: {}: {}", health.reason, health.message);
            (health.state == HealthState::Failing).then(|| (ObjectKey::clone(key), describe()))
        });
        failing.collect()
    }

    /// Returns the summary of all objects.
    pub fn summary(&self) -> HealthSummary {
        let all: Vec<AssessedObject> = self.objects.values().map(|health| health.assessed.clone()).collect();
        summarize(&all)
    }

    /// Returns the condition `Ready` of the stack.
    pub fn ready_condition(&self) -> ReadyCondition {
        if let Some(error) = &self.read_error {
            return error.to_condition();
        }
        if self.declares_nothing {
            let (status, reason) = (ConditionStatus::True, "Ready".to_owned());
            return ReadyCondition { status, reason, message: "the revision declares no object".to_owned() };
        }
        let summary = self.summary();
        let (status, reason) = match summary.status {
            OverallHealth::Healthy => (ConditionStatus::True, "Ready"),
            OverallHealth::Unknown => (ConditionStatus::Unknown, "NotKnown"),
            OverallHealth::Degraded => (ConditionStatus::False, "Progressing"),
            OverallHealth::Failing => (ConditionStatus::False, "Failing"),
        };
        let counted = format!("{} of {} objects are ready", summary.ready, summary.total);
        let unready = summary.resources.iter().filter(|resource| !resource.ready).take(NAMED_MAX).map(|resource| {
            let namespace = resource.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let why = resource.message.as_deref().unwrap_or("not ready");
            format!("{} {namespace}{}: {why}", resource.kind, resource.name)
        });
        let message = std::iter::once(counted).chain(unready).collect::<Vec<_>>().join("; ");
        ReadyCondition { status, reason: reason.to_owned(), message }
    }
}

/// Converts the status to the broker's type.
pub fn to_wire_status(summary: &HealthSummary) -> HealthStatus {
    match summary.status {
        OverallHealth::Healthy => HealthStatus::Healthy,
        OverallHealth::Unknown => HealthStatus::Unknown,
        OverallHealth::Degraded => HealthStatus::Degraded,
        OverallHealth::Failing => HealthStatus::Failing,
    }
}

/// Reads the results of objects that are applied once. One that cannot be read has none.
pub async fn read_results(
    cluster: &Cluster,
    metrics: &Metrics,
    objects: Vec<Arc<DesiredObject>>,
) -> BTreeMap<Arc<ObjectKey>, SeenResult> {
    let deadline = Instant::now() + READ_MAX;
    let cluster = &cluster.with_deadline(deadline);
    let read = run_concurrently(objects, |object| read_isolated(cluster, metrics, deadline, object)).await;
    let read = read.into_iter().filter_map(|read| read.ok().flatten());
    read.filter_map(|(key, health)| Some((key, SeenResult::from_assessed(&health.assessed)?))).collect()
}

/// Assesses an object that is applied once and gone. If others wait for it, only its completion lets them go on.
fn assess_done(result: CreationResult, object: &DesiredObject) -> Health {
    match result {
        CreationResult::Completed => Health::done(None),
        CreationResult::Failed(reason) => Health::done(Some(reason)),
        CreationResult::Unseen if object.is_waited_for() => {
            Health::done(Some("whether it had completed was not seen".to_owned()))
        }
        CreationResult::Unseen => Health::result_not_seen(),
    }
}

fn assess_absent(key: &ObjectKey, health: Health) -> AssessedObject {
    AssessedObject::without_pods(&key.kind, key.namespace.as_deref(), &key.name, health)
}

/// Reads the health of an object; a panic is counted, and a failure to read this object.
async fn read_isolated(
    cluster: &Cluster,
    metrics: &Metrics,
    deadline: Instant,
    declared: Arc<DesiredObject>,
) -> Result<Option<(Arc<ObjectKey>, ObjectHealth)>, ReadError> {
    let key = declared.key.clone();
    match catch_panic(read_health(cluster, deadline, declared)).await {
        Ok(read) => read.map_err(ReadError::Failed),
        Err(cause) => {
            tracing::error!("read {key}: {cause}");
            metrics.count_panic();
            Err(ReadError::Panicked(format!("read {key}: {cause}")))
        }
    }
}

async fn read_health(
    cluster: &Cluster,
    deadline: Instant,
    declared: Arc<DesiredObject>,
) -> Result<Option<(Arc<ObjectKey>, ObjectHealth)>, String> {
    let to_text = |error: ClusterError| error.to_string();
    if Instant::now() >= deadline {
        return Err(format!("read {}: not read within {} s", declared.key, READ_MAX.as_secs()));
    }
    let read: Option<Value> = cluster.get(&declared.resource, &declared.key).await.map_err(to_text)?;
    let Some(object) = read else { return Ok(None) };
    let mut assessed = AssessedObject::new(&object, &[]);
    if assessed.health.state != HealthState::Ready
        && let Some(selector) = pod_selector(&object)
    {
        let pods = cluster.list_pods(&selector).await.map_err(to_text)?;
        assessed = AssessedObject::new(&object, &pods);
    }
    let resource_version = object["metadata"]["resourceVersion"].as_str().map(ToOwned::to_owned);
    let is_waited_for = declared.is_waited_for();
    Ok(Some((declared.key.clone(), ObjectHealth { resource_version, assessed, is_waited_for })))
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use hyper::body::Incoming;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use serde_json::json;
    use sindri_model::{Checksum, IgnoredFields};
    use tower::BoxError;
    use tower::util::BoxCloneSyncService;

    use super::*;
    use crate::cluster::ownership::RevisionOwner;
    use crate::cluster::{ApiResource, RetryPolicy};
    use crate::pass::order::Turn;

    fn panic_at(request: &Request<Body>) -> Result<Response<Incoming>, BoxError> {
        panic!("at {}", request.uri())
    }

    fn config_map() -> Arc<DesiredObject> {
        let resource = Arc::new(ApiResource::from_namespaced_type::<ConfigMap>());
        let stack = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        Arc::new(DesiredObject {
            document: 1,
            key: Arc::new(resource.object_key(Some("shop"), "a")),
            resource,
            manifest: json!({}),
            owner: Arc::new(RevisionOwner::new(stack, &Checksum::compute(""))),
            ignored: IgnoredFields::default(),
            replace: false,
            turn: Turn::default(),
            once: None,
        })
    }

    #[tokio::test]
    async fn a_panic_while_health_is_read_is_counted_and_named_in_the_condition() {
        let sender = tower::service_fn(|request: Request<Body>| async move { panic_at(&request) });
        let cluster = Cluster::new(BoxCloneSyncService::new(sender), RetryPolicy::default());
        let state = SeenState::Present { resource_version: "1".to_owned(), health: None };
        let (metrics, mut health) = (Metrics::default(), StackHealth::default());
        health.update(&cluster, &metrics, vec![SeenObject { object: config_map(), state }], false).await;
        let ReadyCondition { status, reason, message } = health.ready_condition();
        assert_eq!((status, reason.as_str()), (ConditionStatus::Unknown, "InternalError"));
        assert!(message.starts_with("read ConfigMap shop/a: internal error: at "), "{message}");
        assert!(metrics.render().contains("sindri_agent_panics_total 1"));
    }

    #[test]
    fn a_revision_without_objects_is_ready_and_one_whose_objects_are_not_known_is_not() {
        assert_eq!(StackHealth::default().ready_condition().status, ConditionStatus::Unknown);
        let empty = StackHealth { declares_nothing: true, ..StackHealth::default() };
        let ReadyCondition { status, reason, message } = empty.ready_condition();
        assert_eq!(
            (status, reason.as_str(), message.as_str()),
            (ConditionStatus::True, "Ready", "the revision declares no object")
        );
        let unread = StackHealth { read_error: Some(ReadError::Failed("no answer".to_owned())), ..empty };
        assert_eq!(unread.ready_condition().status, ConditionStatus::Unknown);
    }
}
