//! The objects of a stack as one: how many are ready, the worst state, and the first reasons.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::health::{Health, HealthState};
use crate::object::Object;
use crate::{assess, explain, pods};

/// The most objects that are named in one summary; what is not ready comes first.
pub const RESOURCES_MAX: usize = 100;
/// The most different reasons in one summary.
pub const CONDITIONS_MAX: usize = 20;

/// One object, looked at together with its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssessedObject {
    /// Its kind.
    pub kind: String,
    /// Where it is; `None` for what belongs to the cluster.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// How it is doing.
    pub health: Health,
    /// Its pods that have not ended and are not on their way out, and whether each is ready.
    pub pods: BTreeMap<PodKey, bool>,
}

/// A pod, so that one that two objects select counts once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    /// Where it is.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl AssessedObject {
    /// Looks at an object and at the pods that [`pod_selector`](crate::pod_selector) selects, as far as they are known.
    pub fn new(object: &Value, pods: &[Value]) -> Self {
        let health = explain(assess(object), pods);
        let this = Object(object);
        // A pod that was declared counts as its own.
        let own = (this.group() == "" && this.kind() == "Pod").then_some(object);
        let pods = pods.iter().chain(own).map(Object).filter(|pod| !pods::has_ended(*pod) && !pod.is_being_deleted());
        Self {
            kind: this.kind().to_owned(),
            namespace: this.namespace().map(ToOwned::to_owned),
            name: this.name().to_owned(),
            health,
            pods: pods.map(|pod| (PodKey::of(pod), pods::is_ready(pod))).collect(),
        }
    }
}

impl PodKey {
    fn of(pod: Object<'_>) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default().to_owned(), name: pod.name().to_owned() }
    }
}

/// How a stack is doing, in the broker's words, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverallHealth {
    /// Every object is ready.
    Healthy,
    /// Nothing can be said: about some object, or because there is none.
    Unknown,
    /// Some object is not ready yet.
    Degraded,
    /// Some object needs somebody's help.
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

/// One object in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceHealth {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it is; `None` for what belongs to the cluster.
    pub namespace: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Why not.
    pub message: Option<String>,
}

/// How the objects of a stack are doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthSummary {
    /// The worst of all.
    pub status: OverallHealth,
    /// How many objects are ready.
    pub ready: usize,
    /// How many objects there are.
    pub total: usize,
    /// Why some are not ready, the worst first, each reason once.
    pub conditions: Vec<String>,
    /// How many pods are ready.
    pub pods_ready: usize,
    /// How many pods there are that have not ended.
    pub pods_total: usize,
    /// The objects, the worst first, then by kind, namespace and name.
    pub resources: Vec<ResourceHealth>,
}

/// Makes one answer of many. The order of the objects does not matter.
pub fn summarise(objects: &[AssessedObject]) -> HealthSummary {
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
        // Two looks at one pod may differ by a moment; the one that found it not ready counts.
        pods.entry(key).and_modify(|known| *known &= is_ready).or_insert(*is_ready);
    }
    HealthSummary {
        status: worst_first.first().map_or(OverallHealth::Unknown, |worst| worst.health.state.into()),
        ready: objects.iter().filter(|object| object.health.state == HealthState::Ready).count(),
        total: objects.len(),
        conditions: reasons(&worst_first),
        pods_ready: pods.values().filter(|is_ready| **is_ready).count(),
        pods_total: pods.len(),
        resources: worst_first.iter().take(RESOURCES_MAX).map(|object| ResourceHealth::of(object)).collect(),
    }
}

/// Each reason once, in the order of the objects.
fn reasons(objects: &[&AssessedObject]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let reasons =
        objects.iter().filter(|object| object.health.state != HealthState::Ready).map(|object| &object.health.reason);
    reasons.filter(|reason| seen.insert(reason.as_str())).take(CONDITIONS_MAX).cloned().collect()
}

impl ResourceHealth {
    fn of(object: &AssessedObject) -> Self {
        let Health { state, reason, message } = &object.health;
        let ready = *state == HealthState::Ready;
        let words =
            if message.is_empty() { reason.clone() } else { crate::health::one_line(&format!("{reason}: {message}")) };
        Self {
            kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            ready,
            message: (!ready).then_some(words),
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
    /// As the broker keeps it: the field `summary` of a report on health. The status stands beside it.
    pub fn to_json(&self) -> Value {
        let Self { status: _, ready: _, total: _, conditions, pods_ready, pods_total, resources } = self;
        let resources: Vec<Value> = resources.iter().map(ResourceHealth::to_json).collect();
        json!({ "conditions": conditions, "pods_ready": pods_ready, "pods_total": pods_total, "resources": resources })
    }
}
