//! What the broker counts, for Prometheus.
//!
//! Labels are bounded: routes are templates, methods a short list, and no id or name of anyone is ever one. What a
//! request counts in is found by its route, without allocating after the first request of its kind.

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

/// The route of a request that no route takes.
const NO_ROUTE: &str = "-";
/// From half a millisecond to the longest wait of a poll.
const SECONDS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0];

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

/// Why a connection was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// The head of a request took too long.
    SlowHead,
    /// An answer was not taken.
    SlowAnswer,
    /// There was no handshake, or not in time.
    Handshake,
}

/// What became of an attempt to deliver a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver took it.
    Delivered,
    /// It failed and will be tried again.
    Retried,
    /// It failed for good.
    GivenUp,
}

/// Where the requests of one route are counted.
struct Route {
    name: Arc<str>,
    duration: Histogram,
    answered: Mutex<BTreeMap<(&'static str, u16), Counter>>,
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    routes: RwLock<BTreeMap<Arc<str>, Arc<Route>>>,
    requests: Family<RequestLabels, Counter>,
    request_duration: Durations<RouteLabel>,
    connections_open: Gauge,
    connections_refused: Family<ReasonLabel, Counter>,
    connections_full: Counter,
    throttled: Counter,
    waiting_polls: Gauge,
    deliveries: Family<OutcomeLabel, Counter>,
}

fn durations() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sindri"),
            routes: RwLock::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(durations),
            connections_open: Gauge::default(),
            connections_refused: Family::default(),
            connections_full: Counter::default(),
            throttled: Counter::default(),
            waiting_polls: Gauge::default(),
            deliveries: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests that were answered", self.requests.clone());
        let (name, help) = ("http_request_duration", "From the head of a request to the head of its answer");
        registry.register_with_unit(name, help, Unit::Seconds, self.request_duration.clone());
        registry.register("connections_open", "Open connections", self.connections_open.clone());
        let help = "Connections that were cut off";
        registry.register("connections_refused", help, self.connections_refused.clone());
        let help = "How often there was no room for another connection";
        registry.register("connections_full", help, self.connections_full.clone());
        let help = "Wrong keys that were refused because there were too many before";
        registry.register("throttled_keys", help, self.throttled.clone());
        registry.register("waiting_polls", "Polls that wait for a change", self.waiting_polls.clone());
        registry.register("webhook_deliveries", "Attempts to deliver a webhook", self.deliveries.clone());
    }

    /// A request was answered. Without a route it was refused for that.
    pub fn request(&self, method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
        let route = self.route(route.unwrap_or(NO_ROUTE));
        route.duration.observe(took.as_secs_f64());
        let key = (method_label(method), status.as_u16());
        let mut answered = route.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = answered.entry(key).or_insert_with(|| {
            let labels = RequestLabels { method: key.0, route: route.name.clone(), status: key.1 };
            self.requests.get_or_create_owned(&labels)
        });
        counter.inc();
    }

    fn route(&self, name: &str) -> Arc<Route> {
        if let Some(route) = self.routes.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return route.clone();
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let name: Arc<str> = name.into();
        let make = || {
            let duration = self.request_duration.get_or_create_owned(&RouteLabel { route: name.clone() });
            Arc::new(Route { name: name.clone(), duration, answered: Mutex::default() })
        };
        routes.entry(name.clone()).or_insert_with(make).clone()
    }

    /// A poll begins to wait.
    pub fn poll_waits(&self) {
        self.waiting_polls.inc();
    }

    /// A poll has stopped waiting.
    pub fn poll_goes_on(&self) {
        self.waiting_polls.dec();
    }

    /// An attempt to deliver a webhook has ended.
    pub fn webhook_delivery(&self, delivery: Delivery) {
        let outcome = match delivery {
            Delivery::Delivered => "delivered",
            Delivery::Retried => "retried",
            Delivery::GivenUp => "given_up",
        };
        self.deliveries.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// A connection is open for as long as the guard lives.
    pub(crate) fn connection(self: &Arc<Self>) -> OpenConnection {
        self.connections_open.inc();
        OpenConnection(self.clone())
    }

    pub(crate) fn connection_cut_off(&self, why: CutOff) {
        let reason = match why {
            CutOff::SlowHead => "slow_head",
            CutOff::SlowAnswer => "slow_answer",
            CutOff::Handshake => "handshake",
        };
        self.connections_refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub(crate) fn connections_full(&self) {
        self.connections_full.inc();
    }

    pub(crate) fn key_throttled(&self) {
        self.throttled.inc();
    }

    /// Everything, in the text form of OpenMetrics, which Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// A connection that is open.
pub(crate) struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.dec();
    }
}

/// Anyone can send any method.
fn method_label(method: &Method) -> &'static str {
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
    fn everything_that_is_counted_is_in_the_text_with_bounded_labels() {
        let metrics = Arc::new(Metrics::default());
        let strange = Method::from_bytes(b"BREW").unwrap();
        for method in [&Method::GET, &Method::GET, &strange] {
            metrics.request(method, Some("/a/{id}"), StatusCode::OK, Duration::from_millis(2));
        }
        metrics.request(&Method::GET, None, StatusCode::NOT_FOUND, Duration::ZERO);
        metrics.poll_waits();
        metrics.webhook_delivery(Delivery::GivenUp);
        metrics.connection_cut_off(CutOff::SlowHead);
        let open = (metrics.connection(), metrics.connection());
        drop(open.0);
        let text = metrics.text();
        for line in [
            "sindri_http_requests_total{method=\"GET\",route=\"/a/{id}\",status=\"200\"} 2",
            "sindri_http_requests_total{method=\"other\",route=\"/a/{id}\",status=\"200\"} 1",
            "sindri_http_requests_total{method=\"GET\",route=\"-\",status=\"404\"} 1",
            "sindri_http_request_duration_seconds_bucket{le=\"0.001\",route=\"/a/{id}\"} 0",
            "sindri_http_request_duration_seconds_bucket{le=\"0.0025\",route=\"/a/{id}\"} 3",
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
