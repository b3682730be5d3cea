//! Outcomes of containers: they run, unless an annotation or a rule says otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::fields::{name, string_at};

/// Annotation of a pod with the name of a [`PodOutcome`].
pub(crate) const OUTCOME_ANNOTATION: &str = "sindri.dev/pod-fate";

/// Outcome of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodOutcome {
    /// It starts and becomes ready; unless its pod restarts it always, it then exits successfully.
    #[default]
    Runs,
    /// It starts, becomes ready and never exits.
    KeepsRunning,
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
    /// Log of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl PodRule {
    pub(super) fn matches(&self, pod: &Value, container: &Value) -> bool {
        let check = |expected: &Option<String>, matches: &dyn Fn(&str) -> bool| expected.as_deref().is_none_or(matches);
        check(&self.namespace, &|expected| string_at(pod, "/metadata/namespace") == expected)
            && check(&self.pod, &|expected| name(pod).starts_with(expected))
            && check(&self.image, &|expected| string_at(container, "/image").contains(expected))
    }
}
