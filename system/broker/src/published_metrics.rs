//! Metrics under the names and labels of the published API, so that existing dashboards and alerts work.
//!
//! Counts of records are read from the store together with its figures.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::store::RecordCounts;

/// Limit on the agents with a metric of their own.
pub(crate) const AGENTS_MAX: i64 = 1_000;
/// Histogram buckets of the published API.
const BUCKETS_SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    endpoint: Arc<str>,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DurationLabels {
    endpoint: Arc<str>,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AgentLabels {
    agent_id: String,
    agent_name: String,
}

/// Metrics of requests with one route, method and status.
pub(crate) struct RequestMetrics {
    requests: Counter,
    duration: Histogram,
}

impl RequestMetrics {
    pub(crate) fn record(&self, duration: Duration) {
        self.requests.inc();
        self.duration.observe(duration.as_secs_f64());
    }
}

/// Seconds since the last heartbeat of an agent.
pub(crate) struct HeartbeatAge {
    pub id: String,
    pub name: String,
    pub seconds: i64,
}

/// The published metrics of a broker.
pub(crate) struct PublishedMetrics {
    requests: Family<RequestLabels, Counter>,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
    active_agents: Gauge,
    heartbeat_age: Family<AgentLabels, Gauge>,
    stacks: Gauge,
    deployment_objects: Gauge,
}

fn create_histogram() -> Histogram {
    Histogram::new(BUCKETS_SECONDS)
}

impl Default for PublishedMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(create_histogram),
            active_agents: Gauge::default(),
            heartbeat_age: Family::default(),
            stacks: Gauge::default(),
            deployment_objects: Gauge::default(),
        }
    }
}

impl PublishedMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("brokkr");
        registry.register("http_requests", "Responses by endpoint, method and status", self.requests.clone());
        let (name, help) = ("http_request_duration", "Time from the head of a request to the head of its response");
        registry.register_with_unit(name, help, Unit::Seconds, self.duration.clone());
        registry.register("active_agents", "Agents whose status is ACTIVE", self.active_agents.clone());
        let (name, help) = ("agent_heartbeat_age", "Time since the last heartbeat of an agent");
        registry.register_with_unit(name, help, Unit::Seconds, self.heartbeat_age.clone());
        registry.register("stacks_total", "Stacks that are not deleted", self.stacks.clone());
        let help = "Revisions and deletion markers";
        registry.register("deployment_objects_total", help, self.deployment_objects.clone());
    }

    pub(crate) fn get_or_create(&self, endpoint: &Arc<str>, method: &'static str, status: u16) -> RequestMetrics {
        let labels = RequestLabels { endpoint: endpoint.clone(), method, status };
        let requests = self.requests.get_or_create_owned(&labels);
        let duration = self.duration.get_or_create_owned(&DurationLabels { endpoint: endpoint.clone(), method });
        RequestMetrics { requests, duration }
    }

    /// Sets the metrics that are counted in the store.
    pub(crate) fn set_counts(&self, counts: RecordCounts, ages: Vec<HeartbeatAge>) {
        self.active_agents.set(counts.active_agents);
        self.stacks.set(counts.stacks);
        self.deployment_objects.set(counts.revisions);
        self.heartbeat_age.clear();
        for HeartbeatAge { id, name, seconds } in ages {
            self.heartbeat_age.get_or_create(&AgentLabels { agent_id: id, agent_name: name }).set(seconds);
        }
    }
}
