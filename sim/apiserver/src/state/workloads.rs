//! Settings and memory of the workload controllers.

use serde_json::Value;

use super::container_rules::{ExecRule, PortRule, default_answer};
use super::pod_outcome::{OUTCOME_ANNOTATION, PodOutcome, PodRule};
use crate::object::fields::value_at;
use crate::process::port_server::PortAnswer;

/// Largest number of rules of a kind; adding another drops the oldest.
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
    /// Results of commands in containers; the first matching rule applies.
    pub(crate) exec_rules: Vec<ExecRule>,
    /// Answers of ports; the first matching rule applies.
    pub(crate) port_rules: Vec<PortRule>,
    /// Number of pod addresses that were assigned.
    pub(crate) addresses: u32,
}

impl Workloads {
    /// Adds a rule before the older ones.
    pub(crate) fn add_rule(&mut self, rule: PodRule) {
        self.rules.insert(0, rule);
        self.rules.truncate(RULES_MAX);
    }

    /// Adds a rule for commands before the older ones.
    pub(crate) fn add_exec_rule(&mut self, rule: ExecRule) {
        self.exec_rules.insert(0, rule);
        self.exec_rules.truncate(RULES_MAX);
    }

    /// Adds a rule for ports before the older ones.
    pub(crate) fn add_port_rule(&mut self, rule: PortRule) {
        self.port_rules.insert(0, rule);
        self.port_rules.truncate(RULES_MAX);
    }

    /// Returns the first rule for a command in a container.
    pub(crate) fn find_exec_rule(&self, pod: &Value, container: &str, arguments: &[String]) -> Option<&ExecRule> {
        let command = arguments.join(" ");
        self.exec_rules.iter().find(|rule| rule.matches(pod, container, &command))
    }

    /// Returns the answer of a port of a pod.
    pub(crate) fn answer_port(&self, pod: &Value, port: u16) -> PortAnswer {
        let rule = self.port_rules.iter().find(|rule| rule.matches(pod, port));
        rule.map_or_else(|| default_answer(pod, port), |rule| rule.answer(pod, port))
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
