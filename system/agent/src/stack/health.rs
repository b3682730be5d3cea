//! Whether what was applied works. Objects are read only when they have changed, or are not ready yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sindri_health::{Assessed, State, Status, Summary, pods_of, summarise};
use sindri_model::ObjectKey;
use sindri_model::wire::{ConditionStatus, HealthStatus};
use tokio::time::Instant;

use crate::cluster::concurrency::at_once;
use crate::cluster::{Cluster, ClusterError};
use crate::pass::observe::DesiredObject;
use crate::stack::conditions::Ready;

/// So many objects that are not ready are named.
const NAMED_MAX: usize = 5;
/// How long all looking of one pass may take. The next pass looks again; to correct drift, or to apply something new, must not
/// wait for minutes because a single object cannot be read.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// A declared object that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    /// The object.
    pub object: Arc<DesiredObject>,
    /// Its version.
    pub version: String,
    /// How it was doing when this pass wrote it.
    pub assessed: Option<Assessed>,
}

/// How the objects of a stack are doing. All of it can be lost.
#[derive(Debug, Default)]
pub struct Health {
    objects: BTreeMap<Arc<ObjectKey>, Looked>,
    /// Why nobody can tell.
    unseen: Option<String>,
}

#[derive(Debug)]
struct Looked {
    version: String,
    assessed: Assessed,
}

impl Health {
    /// Looks at what has changed since the last time, and at the pods of what is not ready.
    pub async fn look(&mut self, cluster: &Cluster, present: Vec<Present>) {
        if !self.objects.is_empty() {
            let there: BTreeSet<&ObjectKey> = present.iter().map(|present| &*present.object.key).collect();
            self.objects.retain(|key, _| there.contains(&**key));
        }
        let mut due = Vec::new();
        for Present { object, version, assessed } in present {
            match assessed {
                // What this pass wrote has told how it is doing; it will change, and then it is looked at again.
                Some(assessed) => {
                    self.objects.insert(object.key.clone(), Looked { version, assessed });
                }
                None if self.is_due(&object.key, &version) => due.push(object),
                None => {}
            }
        }
        let until = Instant::now() + LOOK_MAX;
        let looked = at_once(due, |object| look_at(cluster, until, object)).await;
        self.unseen = None;
        for looked in looked {
            match looked {
                Ok(Some((key, looked))) => {
                    self.objects.insert(key, looked);
                }
                // The next pass finds that it is gone.
                Ok(None) => {}
                // The first tells why; those after it may only have had no time left.
                Err(reason) => {
                    self.unseen.get_or_insert(reason);
                }
            }
        }
    }

    fn is_due(&self, key: &ObjectKey, version: &str) -> bool {
        let is_known = |known: &Looked| known.version == version && known.assessed.health.state == State::Ready;
        !self.objects.get(key).is_some_and(is_known)
    }

    /// Whether something could not be looked at the last time.
    pub fn is_out_of_sight(&self) -> bool {
        self.unseen.is_some()
    }

    /// All of them together.
    pub fn summary(&self) -> Summary {
        let all: Vec<Assessed> = self.objects.values().map(|looked| looked.assessed.clone()).collect();
        summarise(&all)
    }

    /// The condition of the stack.
    pub fn ready(&self) -> Ready {
        if let Some(unseen) = &self.unseen {
            let (status, reason) = (ConditionStatus::Unknown, "NotSeen".to_owned());
            return Ready { status, reason, message: unseen.clone() };
        }
        let summary = self.summary();
        let (status, reason) = match summary.status {
            Status::Healthy => (ConditionStatus::True, "Ready"),
            Status::Unknown => (ConditionStatus::Unknown, "NotKnown"),
            Status::Degraded => (ConditionStatus::False, "Progressing"),
            Status::Failing => (ConditionStatus::False, "Failing"),
        };
        let counted = format!("{} of {} objects are ready", summary.ready, summary.total);
        let unready = summary.resources.iter().filter(|resource| !resource.ready).take(NAMED_MAX).map(|resource| {
            let place = resource.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let why = resource.message.as_deref().unwrap_or("not ready");
            format!("{} {place}{}: {why}", resource.kind, resource.name)
        });
        let message = std::iter::once(counted).chain(unready).collect::<Vec<_>>().join("; ");
        Ready { status, reason: reason.to_owned(), message }
    }
}

/// What the broker calls it.
pub fn status(summary: &Summary) -> HealthStatus {
    match summary.status {
        Status::Healthy => HealthStatus::Healthy,
        Status::Unknown => HealthStatus::Unknown,
        Status::Degraded => HealthStatus::Degraded,
        Status::Failing => HealthStatus::Failing,
    }
}

async fn look_at(
    cluster: &Cluster,
    until: Instant,
    declared: Arc<DesiredObject>,
) -> Result<Option<(Arc<ObjectKey>, Looked)>, String> {
    let words = |error: ClusterError| error.to_string();
    if Instant::now() >= until {
        return Err(format!("read {}: {} s were over before its turn", declared.key, LOOK_MAX.as_secs()));
    }
    let read = cluster.read_until(until, &declared.resource, &declared.key).await;
    let Some(object) = read.map_err(words)? else { return Ok(None) };
    let mut assessed = Assessed::of(&object, &[]);
    if assessed.health.state != State::Ready
        && let Some(selector) = pods_of(&object)
    {
        assessed = Assessed::of(&object, &cluster.pods_until(until, &selector).await.map_err(words)?);
    }
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    Ok(Some((declared.key.clone(), Looked { version, assessed })))
}
