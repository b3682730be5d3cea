//! Settings and memory of the workload controllers.

use serde_json::Value;

use super::pod_outcome::{OUTCOME_ANNOTATION, PodOutcome, PodRule};
use crate::object::fields::value_at;

/// Largest number of pod rules; adding another drops the oldest.
const RULES_MAX: usize = 1_000;

/// Workload controllers of a server, and their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workloads {
    /// True if controllers create pods and endpoints.
    pub(crate) controllers: bool,
    /// True if pods are scheduled to nodes and run there.
    pub(crate) kubelet: bool,
    /// Outcomes of containers; the first matching rule applies.
    pub(crate) rules: Vec<PodRule>,
    /// Number of pod addresses that were assigned.
    pub(crate) addresses: u32,
}

impl Workloads {
    /// Adds a rule before the older ones.
    pub(crate) fn add_rule(&mut self, rule: PodRule) {
        self.rules.insert(0, rule);
        self.rules.truncate(RULES_MAX);
    }

    /// Returns the log of one container from the first rule that matches and has one.
    pub(crate) fn log_of(&self, pod: &Value, container: &Value) -> Option<String> {
        self.rules.iter().filter(|rule| rule.matches(pod, container)).find_map(|rule| rule.log.clone())
    }

    /// Returns the outcome of one container: from the annotation of its pod, or from the first rule that matches.
    pub(crate) fn outcome_of(&self, pod: &Value, container: &Value) -> PodOutcome {
        let annotation = value_at(pod, "/metadata/annotations").and_then(|all| all.get(OUTCOME_ANNOTATION)).cloned();
        let annotation = annotation.and_then(|annotation| serde_json::from_value(annotation).ok());
        let rule = || self.rules.iter().find(|rule| rule.matches(pod, container)).map(|rule| rule.outcome);
        annotation.or_else(rule).unwrap_or_default()
    }
}
