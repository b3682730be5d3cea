//! Aggregated health of the objects of a stack.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::health::{Health, HealthState};
use crate::object::Object;
use crate::{assess, assess_before_deletion, explain, pods};

/// Maximum number of objects in one summary; objects that are not ready come first.
pub const RESOURCES_MAX: usize = 100;
/// Maximum number of different reasons in one summary.
pub const CONDITIONS_MAX: usize = 20;

/// Health of one object and its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssessedObject {
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Health of the object.
    pub health: Health,
    /// Health that it would have if it were not being deleted; `None` if it is not.
    pub before_deletion: Option<Box<Health>>,
    /// Pods that have neither ended nor are being deleted; true if the pod is ready.
    pub pods: BTreeMap<PodKey, bool>,
}

/// Identity of a pod. A pod that two objects select counts once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl AssessedObject {
    /// Assesses an object together with its pods, as far as they are known. [`pod_selector`](crate::pod_selector) selects
    /// them.
    pub fn new(object: &Value, pods: &[Value]) -> Self {
        let health = explain(assess(object), pods);
        let this = Object(object);
        // A declared pod counts as its own pod.
        let own = (this.group() == "" && this.kind() == "Pod").then_some(object);
        let pods = pods.iter().chain(own).map(Object).filter(|pod| !pods::has_ended(*pod) && !pod.is_being_deleted());
        Self {
            kind: this.kind().to_owned(),
            namespace: this.namespace().map(ToOwned::to_owned),
            name: this.name().to_owned(),
            health,
            before_deletion: assess_before_deletion(object).map(Box::new),
            pods: pods.map(|pod| (PodKey::from_pod(pod), pods::is_ready(pod))).collect(),
        }
    }
}

impl AssessedObject {
    /// Returns an object that does not exist, or could not be read, with its health.
    pub fn without_pods(kind: &str, namespace: Option<&str>, name: &str, health: Health) -> Self {
        let (kind, namespace, name) = (kind.to_owned(), namespace.map(ToOwned::to_owned), name.to_owned());
        Self { kind, namespace, name, health, before_deletion: None, pods: BTreeMap::new() }
    }
}

impl PodKey {
    fn from_pod(pod: Object<'_>) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default().to_owned(), name: pod.name().to_owned() }
    }
}

/// Health of a stack with the names of the broker's API, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverallHealth {
    /// Every object is ready.
    Healthy,
    /// Some object cannot be assessed, or there are no objects.
    Unknown,
    /// Some object is not ready yet.
    Degraded,
    /// Some object will not become ready without an operator's action.
    Failing,
}

impl From<HealthState> for OverallHealth {
    fn from(state: HealthState) -> Self {
        match state {
            HealthState::Ready => Self::Healthy,
            HealthState::Unknown => Self::Unknown,
            HealthState::Progressing => Self::Degraded,
            HealthState::Failing => Self::Failing,
        }
    }
}

impl fmt::Display for OverallHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Failing => "failing",
        })
    }
}

/// Entry of a summary for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceHealth {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// True if the object is ready.
    pub ready: bool,
    /// Reason and message of an object that is not ready.
    pub message: Option<String>,
}

/// Aggregated health of the objects of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSummary {
    /// Worst health of all objects.
    pub status: OverallHealth,
    /// Number of ready objects.
    pub ready: usize,
    /// Number of objects.
    pub total: usize,
    /// Reasons of the objects that are not ready, the worst first, each once.
    pub conditions: Vec<String>,
    /// Number of ready pods.
    pub pods_ready: usize,
    /// Number of pods that have not ended.
    pub pods_total: usize,
    /// Objects, the worst first, then by kind, namespace and name.
    pub resources: Vec<ResourceHealth>,
}

/// Aggregates the health of objects, independent of their order.
pub fn summarize(objects: &[AssessedObject]) -> HealthSummary {
    let mut worst_first: Vec<&AssessedObject> = objects.iter().collect();
    worst_first.sort_by_key(|object| {
        (
            Reverse(object.health.state),
            &object.kind,
            &object.namespace,
            &object.name,
            &object.health.reason,
            &object.health.message,
        )
    });
    let mut pods: BTreeMap<&PodKey, bool> = BTreeMap::new();
    for (key, is_ready) in objects.iter().flat_map(|object| &object.pods) {
        // Two reads of one pod may differ; the one that is not ready counts.
        pods.entry(key).and_modify(|was_ready| *was_ready &= is_ready).or_insert(*is_ready);
    }
    HealthSummary {
        status: worst_first.first().map_or(OverallHealth::Unknown, |worst| worst.health.state.into()),
        ready: objects.iter().filter(|object| object.health.state == HealthState::Ready).count(),
        total: objects.len(),
        conditions: collect_reasons(&worst_first),
        pods_ready: pods.values().filter(|is_ready| **is_ready).count(),
        pods_total: pods.len(),
        resources: worst_first.iter().take(RESOURCES_MAX).map(|object| ResourceHealth::from_object(object)).collect(),
    }
}

/// Returns each reason once, in the order of the objects.
fn collect_reasons(objects: &[&AssessedObject]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let reasons =
        objects.iter().filter(|object| object.health.state != HealthState::Ready).map(|object| &object.health.reason);
    reasons.filter(|reason| seen.insert(reason.as_str())).take(CONDITIONS_MAX).cloned().collect()
}

impl ResourceHealth {
    fn from_object(object: &AssessedObject) -> Self {
        let Health { state, reason, message } = &object.health;
        let ready = *state == HealthState::Ready;
        let text = if message.is_empty() {
            reason.clone()
        } else {
            crate::health::to_message(&format!("{reason}: {message}"))
        };
        Self {
            kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            ready,
            message: (!ready).then_some(text),
        }
    }

    fn to_json(&self) -> Value {
        let Self { kind, name, namespace, ready, message } = self;
        let mut resource = json!({ "kind": kind, "name": name, "namespace": namespace.as_deref().unwrap_or_default(), "ready": ready });
        if let (Some(message), Some(fields)) = (message, resource.as_object_mut()) {
            fields.insert("message".to_owned(), json!(message));
        }
        resource
    }
}

impl HealthSummary {
    /// Serializes to the field `summary` of a health report, without the status.
    pub fn to_json(&self) -> Value {
        let Self { status: _, ready: _, total: _, conditions, pods_ready, pods_total, resources } = self;
        let resources: Vec<Value> = resources.iter().map(ResourceHealth::to_json).collect();
        json!({ "conditions": conditions, "pods_ready": pods_ready, "pods_total": pods_total, "resources": resources })
    }
}
