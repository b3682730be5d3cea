//! Metrics for Prometheus.
//!
//! The number of label values is limited: routes are templates, methods a fixed list, and ids and names are never labels.
//! The counters of a request are looked up by its route, which allocates only for the first request of a route.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::published_metrics::{PublishedMetrics, RequestMetrics};
use crate::store::{AttemptOutcome, DatabaseUsage, StoreFigures};

/// Route label of a request without a route.
const NO_ROUTE: &str = "-";
/// Histogram buckets, from half a millisecond to the longest wait of a poll.
const BUCKETS_SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: Arc<str>,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabel {
    route: Arc<str>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// Reason for which the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The head of a request did not arrive in time.
    SlowHead,
    /// The client did not read a response in time.
    SlowResponse,
    /// The TLS handshake failed or did not end in time.
    Handshake,
    /// A new connection of the same peer needed the place.
    ManyOfPeer,
    /// A trusted proxy did not name its client.
    ProxyHeader,
    /// A new connection needed the place.
    NoRoom,
}

/// Metrics of the responses of one route with one method and status.
struct ResponseMetrics {
    responses: Counter,
    published: RequestMetrics,
}

/// Metrics of one route.
struct RouteMetrics {
    name: Arc<str>,
    duration: Histogram,
    requests: Mutex<BTreeMap<(&'static str, u16), ResponseMetrics>>,
}

type HistogramFamily<L> = Family<L, Histogram, fn() -> Histogram>;

/// All metrics of a broker.
pub struct Metrics {
    registry: Registry,
    routes: RwLock<BTreeMap<Arc<str>, Arc<RouteMetrics>>>,
    requests: Family<RequestLabels, Counter>,
    request_duration: HistogramFamily<RouteLabel>,
    connections_open: Gauge,
    connections_closed: Family<ReasonLabel, Counter>,
    connections_full: Counter,
    throttled_keys: Counter,
    waiting_polls: Gauge,
    deliveries: Family<OutcomeLabel, Counter>,
    store: StoreMetrics,
    /// The same and more under the names of the published API.
    pub(crate) published: PublishedMetrics,
}

/// Metrics of the store.
#[derive(Default)]
struct StoreMetrics {
    reads: CallDuration,
    writes: CallDuration,
    calls: Gauge,
    connections_in_use: Gauge,
    bytes: Gauge,
    agents_online: Gauge,
    agents_offline: Gauge,
    stacks_behind: Gauge,
    stacks_failed: Gauge,
    approvals_pending: Gauge,
    deliveries_pending: Gauge,
}

/// Histogram of the durations of calls.
#[derive(Clone, Debug)]
struct CallDuration(Histogram);

impl Default for CallDuration {
    fn default() -> Self {
        Self(create_histogram())
    }
}

fn create_histogram() -> Histogram {
    Histogram::new(BUCKETS_SECONDS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            routes: RwLock::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(create_histogram),
            connections_open: Gauge::default(),
            connections_closed: Family::default(),
            connections_full: Counter::default(),
            throttled_keys: Counter::default(),
            waiting_polls: Gauge::default(),
            deliveries: Family::default(),
            store: StoreMetrics::default(),
            published: PublishedMetrics::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        self.published.register(&mut self.registry);
        let registry = self.registry.sub_registry_with_prefix("sindri");
        registry.register("http_requests", "Responses by method, route and status", self.requests.clone());
        let (name, help) = ("http_request_duration", "Time from the head of a request to the head of its response");
        registry.register_with_unit(name, help, Unit::Seconds, self.request_duration.clone());
        registry.register("connections_open", "Open connections", self.connections_open.clone());
        let help = "Connections that the broker closed, by reason";
        registry.register("connections_refused", help, self.connections_closed.clone());
        let help = "Number of times that the limit on connections was reached";
        registry.register("connections_full", help, self.connections_full.clone());
        let help = "Requests with a wrong key that were rejected because their source had sent too many";
        registry.register("throttled_keys", help, self.throttled_keys.clone());
        registry.register("waiting_polls", "Polls that wait for a change", self.waiting_polls.clone());
        registry.register("webhook_deliveries", "Attempts to deliver a webhook", self.deliveries.clone());
        self.store.register(registry);
    }

    /// Records a call to the store.
    pub(crate) fn record_store_call(&self, is_write: bool, duration: Duration) {
        let CallDuration(histogram) = if is_write { &self.store.writes } else { &self.store.reads };
        histogram.observe(duration.as_secs_f64());
    }

    /// Sets the use of the database's resources.
    pub(crate) fn set_database_usage(&self, usage: DatabaseUsage) {
        let set = |gauge: &Gauge, number: Option<u64>| {
            gauge.set(number.and_then(|number| i64::try_from(number).ok()).unwrap_or_default());
        };
        set(&self.store.calls, u64::try_from(usage.calls).ok());
        set(&self.store.connections_in_use, usage.connections_in_use.and_then(|number| u64::try_from(number).ok()));
        set(&self.store.bytes, usage.bytes);
    }

    /// Sets the figures of the store.
    pub(crate) fn set_figures(&self, figures: StoreFigures) {
        self.store.agents_online.set(figures.agents_online);
        self.store.agents_offline.set(figures.agents_offline);
        self.store.stacks_behind.set(figures.stacks_behind);
        self.store.stacks_failed.set(figures.stacks_failed);
        self.store.approvals_pending.set(figures.approvals_pending);
        self.store.deliveries_pending.set(figures.deliveries_pending);
    }

    /// Counts a response; `route` is `None` for a path without a route.
    pub fn record_request(&self, method: &Method, route: Option<&str>, status: StatusCode, duration: Duration) {
        let route = self.get_or_create_route(route.unwrap_or(NO_ROUTE));
        route.duration.observe(duration.as_secs_f64());
        let key = (method_label(method), status.as_u16());
        let mut requests = route.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = requests.entry(key).or_insert_with(|| {
            let labels = RequestLabels { method: key.0, route: route.name.clone(), status: key.1 };
            let published = self.published.get_or_create(&route.name, key.0, key.1);
            ResponseMetrics { responses: self.requests.get_or_create_owned(&labels), published }
        });
        metrics.responses.inc();
        metrics.published.record(duration);
    }

    fn get_or_create_route(&self, name: &str) -> Arc<RouteMetrics> {
        if let Some(route) = self.routes.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return route.clone();
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let name: Arc<str> = name.into();
        let create = || {
            let duration = self.request_duration.get_or_create_owned(&RouteLabel { route: name.clone() });
            Arc::new(RouteMetrics { name: name.clone(), duration, requests: Mutex::default() })
        };
        routes.entry(name.clone()).or_insert_with(create).clone()
    }

    /// Counts a poll that begins to wait.
    pub fn poll_wait_started(&self) {
        self.waiting_polls.inc();
    }

    /// Counts a poll that has stopped waiting.
    pub fn poll_wait_ended(&self) {
        self.waiting_polls.dec();
    }

    /// Counts an attempt to deliver a webhook.
    pub fn record_delivery(&self, outcome: AttemptOutcome) {
        let outcome = match outcome {
            AttemptOutcome::Delivered => "delivered",
            AttemptOutcome::RetryAt(_) => "retried",
            AttemptOutcome::Abandoned => "given_up",
        };
        self.deliveries.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn open_connection(self: &Arc<Self>) -> OpenConnection {
        self.connections_open.inc();
        OpenConnection(self.clone())
    }

    pub(crate) fn record_closed_connection(&self, reason: CloseReason) {
        let reason = match reason {
            CloseReason::SlowHead => "slow_head",
            CloseReason::SlowResponse => "slow_answer",
            CloseReason::Handshake => "handshake",
            CloseReason::ManyOfPeer => "many_of_peer",
            CloseReason::ProxyHeader => "proxy_header",
            CloseReason::NoRoom => "no_room",
        };
        self.connections_closed.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub(crate) fn record_connections_full(&self) {
        self.connections_full.inc();
    }

    pub(crate) fn record_throttled_key(&self) {
        self.throttled_keys.inc();
    }

    /// Returns all metrics in the text format of OpenMetrics, which Prometheus reads.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}

impl StoreMetrics {
    fn register(&self, registry: &mut Registry) {
        for (name, help, CallDuration(histogram)) in [
            ("store_read_duration", "Duration of calls to the store that only read", &self.reads),
            ("store_write_duration", "Duration of transactions of the store", &self.writes),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        }
        for (name, help, gauge) in [
            ("store_calls", "Calls that wait for the database or use it", &self.calls),
            ("store_connections_in_use", "Connections to PostgreSQL in use", &self.connections_in_use),
            ("store_size_bytes", "Size of the SQLite file with its write-ahead log", &self.bytes),
            ("agents_online", "Active agents whose heartbeats arrive", &self.agents_online),
            ("agents_offline", "Active agents whose heartbeats have stopped", &self.agents_offline),
            ("stacks_behind", "Stacks on agents that have not reported on the newest revision", &self.stacks_behind),
            ("stacks_failed", "Stacks on agents where the newest revision failed", &self.stacks_failed),
            ("approvals_pending", "Approvals that wait for a decision", &self.approvals_pending),
            ("webhook_deliveries_pending", "Webhook messages that wait", &self.deliveries_pending),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// An open connection.
pub(crate) struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.dec();
    }
}

/// Returns the label of a method; unknown methods share one, because a client can send any.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_operating_lists_every_metric() {
        let manual = include_str!("../../../docs/operating.md");
        let text = Metrics::default().to_text();
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let missing: Vec<&str> = names.filter(|name| !manual.contains(&format!("`{name}"))).collect();
        assert!(missing.is_empty(), "docs/operating.md has no row for {missing:?}");
    }

    #[test]
    fn every_metric_is_in_the_text_with_limited_labels() {
        let metrics = Arc::new(Metrics::default());
        let unknown = Method::from_bytes(b"BREW").unwrap();
        for method in [&Method::GET, &Method::GET, &unknown] {
            metrics.record_request(method, Some("/a/{id}"), StatusCode::OK, Duration::from_millis(2));
        }
        metrics.record_request(&Method::GET, None, StatusCode::NOT_FOUND, Duration::ZERO);
        metrics.poll_wait_started();
        metrics.record_delivery(AttemptOutcome::Abandoned);
        metrics.record_closed_connection(CloseReason::SlowHead);
        let open = (metrics.open_connection(), metrics.open_connection());
        drop(open.0);
        let text = metrics.to_text();
        for line in [
            "sindri_http_requests_total{method=\"GET\",route=\"/a/{id}\",status=\"200\"} 2",
            "sindri_http_requests_total{method=\"other\",route=\"/a/{id}\",status=\"200\"} 1",
            "sindri_http_requests_total{method=\"GET\",route=\"-\",status=\"404\"} 1",
            "sindri_http_request_duration_seconds_bucket{le=\"0.001\",route=\"/a/{id}\"} 0",
            "sindri_http_request_duration_seconds_bucket{le=\"0.0025\",route=\"/a/{id}\"} 3",
            "brokkr_http_requests_total{endpoint=\"/a/{id}\",method=\"GET\",status=\"200\"} 2",
            "brokkr_http_request_duration_seconds_count{endpoint=\"/a/{id}\",method=\"GET\"} 2",
            "brokkr_active_agents 0",
            "sindri_waiting_polls 1",
            "sindri_webhook_deliveries_total{outcome=\"given_up\"} 1",
            "sindri_connections_refused_total{reason=\"slow_head\"} 1",
            "sindri_connections_open 1",
            "sindri_throttled_keys_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
