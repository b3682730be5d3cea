//! Prometheus metrics of the agent.
//!
//! Label values come from small fixed sets, except the ids of the first stacks; names are never label values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use sindri_client::ClientError;
use sindri_model::StackId;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StackLabel {
    stack: String,
}

/// Stacks that have metrics of their own; the others count only in the sums.
const LABELLED_STACKS_MAX: usize = 200;
/// Upper bounds of the histograms of durations, in seconds.
const DURATION_BOUNDS: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

/// Result of a pass, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    /// The stack is as declared.
    Done,
    /// The pass waits for an approval, or for deleted objects to be gone.
    Waiting,
    /// The pass failed.
    Failed,
    /// The pass exceeded its time limit.
    TimedOut,
    /// The pass panicked.
    Panicked,
}

/// Gauge values of one stack.
#[derive(Clone, Copy, Debug, Default)]
struct StackFigures {
    objects: usize,
    is_blocked: bool,
    is_drifted: bool,
    /// True if the stack has metrics of its own.
    is_labelled: bool,
}

/// Metrics of one agent. The agent updates them; [`Metrics::render`] returns them as text.
pub struct Metrics {
    registry: Registry,
    polls: Family<ResultLabel, Counter>,
    passes: Family<OutcomeLabel, Counter>,
    pass_seconds: Gauge<f64, AtomicU64>,
    panics: Counter,
    requests: Family<RequestLabels, Counter>,
    retries: Counter,
    corrections: Counter,
    stacks: Gauge,
    managed_objects: Gauge,
    stacks_blocked: Gauge,
    stacks_drifted: Gauge,
    stack_pass_seconds: Family<StackLabel, Histogram, fn() -> Histogram>,
    stack_ready: Family<StackLabel, Gauge>,
    figures: Mutex<BTreeMap<StackId, StackFigures>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sindri_agent"),
            polls: Family::default(),
            passes: Family::default(),
            pass_seconds: Gauge::default(),
            panics: Counter::default(),
            requests: Family::default(),
            retries: Counter::default(),
            corrections: Counter::default(),
            stacks: Gauge::default(),
            managed_objects: Gauge::default(),
            stacks_blocked: Gauge::default(),
            stacks_drifted: Gauge::default(),
            stack_pass_seconds: Family::new_with_constructor(|| Histogram::new(DURATION_BOUNDS)),
            stack_ready: Family::default(),
            figures: Mutex::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("polls", "Polls of the broker", self.polls.clone());
        registry.register("passes", "Passes of stacks", self.passes.clone());
        let help = "Duration of the last pass of a stack";
        registry.register_with_unit("last_pass", help, Unit::Seconds, self.pass_seconds.clone());
        let help = "Panics in passes, and while the health of objects was read";
        registry.register("panics", help, self.panics.clone());
        registry.register(
            "kubernetes_calls",
            "Requests to the API server, each attempt counted",
            self.requests.clone(),
        );
        registry.register("kubernetes_retries", "Requests to the API server that were retried", self.retries.clone());
        let help = "Objects that were applied again because they had drifted";
        registry.register("drift_corrections", help, self.corrections.clone());
        registry.register("stacks", "Stacks in the target state", self.stacks.clone());
        let help = "Objects in the inventories of the stacks";
        registry.register("managed_objects", help, self.managed_objects.clone());
        let help = "Stacks that wait for an approval";
        registry.register("stacks_blocked", help, self.stacks_blocked.clone());
        let help = "Stacks whose drift recurs, cannot be corrected, or is only reported";
        registry.register("stacks_drifted", help, self.stacks_drifted.clone());
        let help = "Duration of the passes of a stack";
        registry.register_with_unit("stack_pass", help, Unit::Seconds, self.stack_pass_seconds.clone());
        let help = "1 if the newest revision of a stack is applied and ready";
        registry.register("stack_ready", help, self.stack_ready.clone());
    }

    /// Counts a poll; `Ok(true)` if it returned a new target state.
    pub fn count_poll(&self, result: &Result<bool, ClientError>) {
        let result = match result {
            Ok(true) => "new",
            Ok(false) => "nothing_new",
            Err(ClientError::Unreachable { .. }) => "unreachable",
            Err(ClientError::Rejected { .. }) => "refused",
            Err(ClientError::Malformed { .. }) => "malformed",
        };
        self.polls.get_or_create(&ResultLabel { result }).inc();
    }

    /// Records the result and the duration of a pass of a stack.
    pub fn record_pass(&self, stack: StackId, outcome: PassOutcome, duration: Duration) {
        if outcome == PassOutcome::Panicked {
            self.count_panic();
        }
        let outcome = match outcome {
            PassOutcome::Done => "done",
            PassOutcome::Waiting => "waiting",
            PassOutcome::Failed => "failed",
            PassOutcome::TimedOut => "timed_out",
            PassOutcome::Panicked => "panicked",
        };
        self.passes.get_or_create(&OutcomeLabel { outcome }).inc();
        self.pass_seconds.set(duration.as_secs_f64());
        if let Some(label) = self.label_of(stack) {
            self.stack_pass_seconds.get_or_create(&label).observe(duration.as_secs_f64());
        }
    }

    /// Counts a panic in the work of a stack.
    pub fn count_panic(&self) {
        self.panics.inc();
    }

    /// Sets whether the newest revision of a stack is applied and ready.
    pub fn set_ready(&self, stack: StackId, is_ready: bool) {
        if let Some(label) = self.label_of(stack) {
            self.stack_ready.get_or_create(&label).set(i64::from(is_ready));
        }
    }

    /// Returns the label of a stack, unless as many others have one as there may be.
    fn label_of(&self, stack: StackId) -> Option<StackLabel> {
        let mut figures = self.lock();
        let labelled = figures.values().filter(|figures| figures.is_labelled).count();
        let figures = figures.entry(stack).or_default();
        figures.is_labelled |= labelled < LABELLED_STACKS_MAX;
        figures.is_labelled.then(|| StackLabel { stack: stack.to_string() })
    }

    /// Counts one attempt of a request to the API server; `None` if there was no readable response.
    pub fn count_request(&self, method: &Method, status: Option<u16>) {
        let status = match status.map(|status| status / 100) {
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(5) => "5xx",
            Some(_) => "other",
            None => "none",
        };
        self.requests.get_or_create(&RequestLabels { verb: verb(method), status }).inc();
    }

    /// Counts a retry of a request to the API server.
    pub fn count_retry(&self) {
        self.retries.inc();
    }

    /// Counts objects that were applied again because they had drifted.
    pub fn count_corrections(&self, objects: usize) {
        self.corrections.inc_by(objects as u64);
    }

    /// Sets the number of stacks in the target state.
    pub fn set_stacks(&self, stacks: usize) {
        self.stacks.set(stacks as i64);
    }

    /// Removes the figures of all other stacks.
    pub fn retain_stacks(&self, stacks: &BTreeSet<StackId>) {
        let mut figures = self.lock();
        figures.retain(|stack, _| {
            let label = StackLabel { stack: stack.to_string() };
            let is_kept = stacks.contains(stack);
            if !is_kept {
                self.stack_pass_seconds.remove(&label);
                self.stack_ready.remove(&label);
            }
            is_kept
        });
        self.update_gauges(&figures);
    }

    /// Sets the number of objects in the inventory of a stack.
    pub fn set_managed_objects(&self, stack: StackId, objects: usize) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().objects = objects;
        self.update_gauges(&figures);
    }

    /// Sets whether a stack waits for an approval.
    pub fn set_blocked(&self, stack: StackId, is_blocked: bool) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().is_blocked = is_blocked;
        self.update_gauges(&figures);
    }

    /// Sets whether a stack has drift that is reported.
    pub fn set_drifted(&self, stack: StackId, is_drifted: bool) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().is_drifted = is_drifted;
        self.update_gauges(&figures);
    }

    fn update_gauges(&self, figures: &BTreeMap<StackId, StackFigures>) {
        self.managed_objects.set(figures.values().map(|figures| figures.objects as i64).sum());
        self.stacks_blocked.set(figures.values().filter(|figures| figures.is_blocked).count() as i64);
        self.stacks_drifted.set(figures.values().filter(|figures| figures.is_drifted).count() as i64);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StackId, StackFigures>> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid map.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::Entropy;

    use super::*;

    fn stack(number: u8) -> StackId {
        StackId::generate(&Entropy::new(move |bytes| bytes.fill(number)))
    }

    #[test]
    fn all_metrics_are_rendered() {
        let metrics = Metrics::default();
        metrics.count_poll(&Ok(true));
        metrics.count_poll(&Err(ClientError::Malformed { operation: "poll".to_owned(), reason: "a page".to_owned() }));
        metrics.record_pass(stack(1), PassOutcome::Panicked, Duration::from_millis(100));
        metrics.count_panic();
        metrics.record_pass(stack(1), PassOutcome::TimedOut, Duration::from_millis(1_500));
        metrics.count_request(&Method::PATCH, Some(201));
        metrics.count_request(&Method::PATCH, Some(200));
        metrics.count_request(&Method::GET, None);
        metrics.count_retry();
        metrics.count_corrections(3);
        metrics.set_stacks(2);
        let text = metrics.render();
        for line in [
            "sindri_agent_polls_total{result=\"new\"} 1",
            "sindri_agent_polls_total{result=\"malformed\"} 1",
            "sindri_agent_passes_total{outcome=\"timed_out\"} 1",
            "sindri_agent_passes_total{outcome=\"panicked\"} 1",
            "sindri_agent_panics_total 2",
            "sindri_agent_last_pass_seconds 1.5",
            "sindri_agent_kubernetes_calls_total{verb=\"patch\",status=\"2xx\"} 2",
            "sindri_agent_kubernetes_calls_total{verb=\"get\",status=\"none\"} 1",
            "sindri_agent_kubernetes_retries_total 1",
            "sindri_agent_drift_corrections_total 3",
            "sindri_agent_stacks 2",
            "sindri_agent_stacks_blocked 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn docs_operating_lists_every_metric() {
        let manual = include_str!("../../../../docs/operating.md");
        let text = Metrics::default().render();
        let mut counted = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        assert!(counted.clone().count() > 5, "{text}");
        let missing = counted.find(|(name, kind)| {
            let suffix = if *kind == "counter" { "_total" } else { "" };
            !manual.contains(&format!("| `{name}{suffix}` |"))
        });
        assert_eq!(missing, None, "docs/operating.md");
    }

    #[test]
    fn a_limited_number_of_stacks_has_metrics_of_its_own_until_it_is_removed() {
        let metrics = Metrics::default();
        let stacks: Vec<StackId> = (0..=u8::MAX).map(stack).collect();
        stacks.iter().for_each(|stack| metrics.record_pass(*stack, PassOutcome::Done, Duration::from_secs(1)));
        metrics.set_ready(stacks[0], true);
        let count = |text: &str| metrics.render().lines().filter(|line| line.contains(text)).count();
        assert_eq!(count("sindri_agent_stack_pass_seconds_count{"), LABELLED_STACKS_MAX);
        assert_eq!(count(&format!("sindri_agent_stack_ready{{stack=\"{}\"}} 1", stacks[0])), 1);
        metrics.retain_stacks(&BTreeSet::from([stacks[1]]));
        assert_eq!((count("sindri_agent_stack_pass_seconds_count{"), count("sindri_agent_stack_ready{")), (1, 0));
    }

    #[test]
    fn gauges_are_sums_over_the_retained_stacks() {
        let metrics = Metrics::default();
        metrics.set_managed_objects(stack(1), 4);
        metrics.set_managed_objects(stack(2), 3);
        metrics.set_managed_objects(stack(1), 5);
        metrics.set_blocked(stack(2), true);
        let figures = |metrics: &Metrics| (metrics.managed_objects.get(), metrics.stacks_blocked.get());
        assert_eq!(figures(&metrics), (8, 1));
        metrics.retain_stacks(&BTreeSet::from([stack(1)]));
        assert_eq!(figures(&metrics), (5, 0));
    }
}
