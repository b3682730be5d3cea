//! What the agent counts, for Prometheus.
//!
//! Labels are bounded: each is one of a few words of ours. No name and no id of anything is ever one.

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
struct CallLabels {
    verb: &'static str,
    status: &'static str,
}

/// How a pass of a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    /// Everything is as it was declared.
    Done,
    /// What was deleted is not gone yet.
    Waiting,
    /// Something could not be done.
    Failed,
    /// It took too long and was given up.
    TimedOut,
}

/// What is known of one stack.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    objects: usize,
    is_blocked: bool,
    is_drifted: bool,
}

/// Everything that is counted. The library fills it in; whoever holds it may show it.
pub struct Metrics {
    registry: Registry,
    polls: Family<ResultLabel, Counter>,
    passes: Family<OutcomeLabel, Counter>,
    pass_seconds: Gauge<f64, AtomicU64>,
    calls: Family<CallLabels, Counter>,
    retries: Counter,
    corrections: Counter,
    stacks: Gauge,
    managed_objects: Gauge,
    stacks_blocked: Gauge,
    stacks_drifted: Gauge,
    figures: Mutex<BTreeMap<StackId, Figures>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sindri_agent"),
            polls: Family::default(),
            passes: Family::default(),
            pass_seconds: Gauge::default(),
            calls: Family::default(),
            retries: Counter::default(),
            corrections: Counter::default(),
            stacks: Gauge::default(),
            managed_objects: Gauge::default(),
            stacks_blocked: Gauge::default(),
            stacks_drifted: Gauge::default(),
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
        let help = "How long the last pass of a stack took";
        registry.register_with_unit("last_pass", help, Unit::Seconds, self.pass_seconds.clone());
        registry.register("kubernetes_calls", "Calls to the API server, each attempt by itself", self.calls.clone());
        registry.register("kubernetes_retries", "Calls that were tried again", self.retries.clone());
        let help = "Objects that were put right although nothing new was wanted";
        registry.register("drift_corrections", help, self.corrections.clone());
        registry.register("stacks", "Stacks of which something is wanted", self.stacks.clone());
        let help = "Objects in the inventories of the stacks that were looked at";
        registry.register("managed_objects", help, self.managed_objects.clone());
        let help = "Stacks that wait for somebody's approval";
        registry.register("stacks_blocked", help, self.stacks_blocked.clone());
        let help = "Stacks whose drift comes back, cannot be put right, or is left";
        registry.register("stacks_drifted", help, self.stacks_drifted.clone());
    }

    /// A poll was answered, with something new or without, or it was not.
    pub fn polled(&self, polled: &Result<bool, ClientError>) {
        let result = match polled {
            Ok(true) => "new",
            Ok(false) => "nothing_new",
            Err(ClientError::Unreachable { .. }) => "unreachable",
            Err(ClientError::Refused { .. }) => "refused",
            Err(ClientError::Malformed { .. }) => "malformed",
        };
        self.polls.get_or_create(&ResultLabel { result }).inc();
    }

    /// A pass has ended.
    pub fn passed(&self, outcome: PassOutcome, took: Duration) {
        let outcome = match outcome {
            PassOutcome::Done => "done",
            PassOutcome::Waiting => "waiting",
            PassOutcome::Failed => "failed",
            PassOutcome::TimedOut => "timed_out",
        };
        self.passes.get_or_create(&OutcomeLabel { outcome }).inc();
        self.pass_seconds.set(took.as_secs_f64());
    }

    /// One attempt of a call to the API server has ended; without a status there was no answer that could be read.
    pub fn called(&self, method: &Method, status: Option<u16>) {
        let status = match status.map(|status| status / 100) {
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(5) => "5xx",
            Some(_) => "other",
            None => "none",
        };
        self.calls.get_or_create(&CallLabels { verb: verb(method), status }).inc();
    }

    /// A call to the API server is tried again.
    pub fn retried(&self) {
        self.retries.inc();
    }

    /// So many objects were put right although nothing new was wanted.
    pub fn corrected(&self, objects: usize) {
        self.corrections.inc_by(objects as u64);
    }

    /// Something is wanted of so many stacks.
    pub fn wanted(&self, stacks: usize) {
        self.stacks.set(stacks as i64);
    }

    /// Forgets the figures of all stacks but these.
    pub fn keep(&self, stacks: &BTreeSet<StackId>) {
        let mut figures = self.lock();
        figures.retain(|stack, _| stacks.contains(stack));
        self.sum_up(&figures);
    }

    /// So many objects of a stack are the agent's.
    pub fn managed(&self, stack: StackId, objects: usize) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().objects = objects;
        self.sum_up(&figures);
    }

    /// Whether a stack waits for somebody's approval.
    pub fn blocked(&self, stack: StackId, is_blocked: bool) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().is_blocked = is_blocked;
        self.sum_up(&figures);
    }

    /// Whether the drift of a stack is more than what happens once.
    pub fn drifted(&self, stack: StackId, is_drifted: bool) {
        let mut figures = self.lock();
        figures.entry(stack).or_default().is_drifted = is_drifted;
        self.sum_up(&figures);
    }

    fn sum_up(&self, figures: &BTreeMap<StackId, Figures>) {
        self.managed_objects.set(figures.values().map(|figures| figures.objects as i64).sum());
        self.stacks_blocked.set(figures.values().filter(|figures| figures.is_blocked).count() as i64);
        self.stacks_drifted.set(figures.values().filter(|figures| figures.is_drifted).count() as i64);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StackId, Figures>> {
        // Nothing here can be left half done.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
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
        StackId::mint(&Entropy::new(move |bytes| bytes.fill(number)))
    }

    #[test]
    fn everything_that_is_counted_is_in_the_text() {
        let metrics = Metrics::default();
        metrics.polled(&Ok(true));
        metrics.polled(&Err(ClientError::Malformed { operation: "poll".to_owned(), reason: "a page".to_owned() }));
        metrics.passed(PassOutcome::TimedOut, Duration::from_millis(1_500));
        metrics.called(&Method::PATCH, Some(201));
        metrics.called(&Method::PATCH, Some(200));
        metrics.called(&Method::GET, None);
        metrics.retried();
        metrics.corrected(3);
        metrics.wanted(2);
        let text = metrics.text();
        for line in [
            "sindri_agent_polls_total{result=\"new\"} 1",
            "sindri_agent_polls_total{result=\"malformed\"} 1",
            "sindri_agent_passes_total{outcome=\"timed_out\"} 1",
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
    fn the_manual_names_everything_that_is_counted() {
        let manual = include_str!("../../../../docs/operating.md");
        let text = Metrics::default().text();
        let mut counted = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        assert!(counted.clone().count() > 5, "{text}");
        let missing = counted.find(|(name, kind)| {
            let suffix = if *kind == "counter" { "_total" } else { "" };
            !manual.contains(&format!("| `{name}{suffix}` |"))
        });
        assert_eq!(missing, None, "docs/operating.md");
    }

    #[test]
    fn objects_and_blocked_stacks_are_summed_up_over_the_stacks_that_are_kept() {
        let metrics = Metrics::default();
        metrics.managed(stack(1), 4);
        metrics.managed(stack(2), 3);
        metrics.managed(stack(1), 5);
        metrics.blocked(stack(2), true);
        let figures = |metrics: &Metrics| (metrics.managed_objects.get(), metrics.stacks_blocked.get());
        assert_eq!(figures(&metrics), (8, 1));
        metrics.keep(&BTreeSet::from([stack(1)]));
        assert_eq!(figures(&metrics), (5, 0));
    }
}
