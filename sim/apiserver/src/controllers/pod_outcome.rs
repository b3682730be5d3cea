//! Outcomes of containers: they run, unless an annotation or a rule says otherwise.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::fields::{at, name, text};
use crate::server::ApiServer;

/// Annotation of a pod with the name of a [`PodOutcome`].
pub(super) const OUTCOME_ANNOTATION: &str = "sindri.dev/pod-fate";

/// Number of rules that are kept; the oldest is dropped.
const RULES_MAX: usize = 1_000;

/// Outcome of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodOutcome {
    /// It starts and becomes ready; a container of a Job then exits successfully.
    #[default]
    Runs,
    /// Its image cannot be pulled.
    ImagePullError,
    /// It exits with an error soon after each start; the pod's restart policy decides about a restart.
    CrashLoop,
    /// It runs and never becomes ready.
    NeverReady,
}

/// Outcome of the containers that match all given fields. A field without value matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodRule {
    /// Namespace of the pod.
    pub namespace: Option<String>,
    /// Prefix of the pod's name.
    pub pod: Option<String>,
    /// Part of the image's name.
    pub image: Option<String>,
    /// Outcome of the container.
    #[serde(rename = "fate")]
    pub outcome: PodOutcome,
}

impl PodRule {
    fn matches(&self, pod: &Value, container: &Value) -> bool {
        let check = |expected: &Option<String>, matches: &dyn Fn(&str) -> bool| expected.as_deref().is_none_or(matches);
        check(&self.namespace, &|expected| text(pod, "/metadata/namespace") == expected)
            && check(&self.pod, &|expected| name(pod).starts_with(expected))
            && check(&self.image, &|expected| text(container, "/image").contains(expected))
    }
}

impl ApiServer {
    /// Adds a rule for the outcome of containers. A newer rule takes precedence over older ones.
    pub fn add_pod_rule(&mut self, now: Timestamp, rule: PodRule) {
        self.workloads.rules.insert(0, rule);
        self.workloads.rules.truncate(RULES_MAX);
        self.reschedule_running_pods(now);
    }

    /// Removes all rules: containers that could not run start from now on.
    pub fn clear_pod_rules(&mut self, now: Timestamp) {
        self.workloads.rules.clear();
        self.reschedule_running_pods(now);
    }

    /// Returns the rules in order of precedence.
    #[must_use]
    pub fn pod_rules(&self) -> &[PodRule] {
        &self.workloads.rules
    }

    /// Returns the outcome of one container: that of the pod's annotation, or of the first matching rule.
    pub(super) fn outcome_of(&self, pod: &Value, container: &Value) -> PodOutcome {
        let annotation = at(pod, "/metadata/annotations").and_then(|all| all.get(OUTCOME_ANNOTATION)).cloned();
        let annotated = annotation.and_then(|value| serde_json::from_value(value).ok());
        let rule = || self.workloads.rules.iter().find(|rule| rule.matches(pod, container)).map(|rule| rule.outcome);
        annotated.or_else(rule).unwrap_or_default()
    }
}
