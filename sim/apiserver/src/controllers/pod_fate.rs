//! What becomes of the containers of a pod: they run, unless somebody was told otherwise.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::fields::{at, name, text};
use crate::server::ApiServer;

/// An annotation of a pod with the name of a [`PodFate`].
pub(super) const FATE_ANNOTATION: &str = "sindri.dev/pod-fate";

/// How many rules are kept; the oldest goes.
const RULES_MAX: usize = 1_000;

/// What becomes of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodFate {
    /// It starts and becomes ready; that of a Job ends well after a while.
    #[default]
    Runs,
    /// Its image cannot be pulled.
    ImagePullError,
    /// It ends with an error soon after each start; whether there is another start, the restart policy decides.
    CrashLoop,
    /// It runs and never becomes ready.
    NeverReady,
}

/// Which containers have a fate. What a rule does not say fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodRule {
    /// The namespace of the pod.
    pub namespace: Option<String>,
    /// How the name of the pod begins.
    pub pod: Option<String>,
    /// A part of the name of the image.
    pub image: Option<String>,
    /// What becomes of the container.
    pub fate: PodFate,
}

impl PodRule {
    fn fits(&self, pod: &Value, container: &Value) -> bool {
        let says = |asked: &Option<String>, fits: &dyn Fn(&str) -> bool| asked.as_deref().is_none_or(fits);
        says(&self.namespace, &|asked| text(pod, "/metadata/namespace") == asked)
            && says(&self.pod, &|asked| name(pod).starts_with(asked))
            && says(&self.image, &|asked| text(container, "/image").contains(asked))
    }
}

impl ApiServer {
    /// Decides what becomes of the containers that a rule fits. A newer rule comes before the older ones.
    pub fn decide_fate(&mut self, now: Timestamp, rule: PodRule) {
        self.workloads.rules.insert(0, rule);
        self.workloads.rules.truncate(RULES_MAX);
        self.plan_running(now);
    }

    /// Forgets every rule: what could not run does from now on.
    pub fn forget_fates(&mut self, now: Timestamp) {
        self.workloads.rules.clear();
        self.plan_running(now);
    }

    /// The rules that decide, the first that fits.
    #[must_use]
    pub fn fates(&self) -> &[PodRule] {
        &self.workloads.rules
    }

    /// What becomes of one container: by the pod's own annotation, or by the first rule that fits.
    pub(super) fn fate_of(&self, pod: &Value, container: &Value) -> PodFate {
        let said = at(pod, "/metadata/annotations").and_then(|all| all.get(FATE_ANNOTATION)).cloned();
        let said = said.and_then(|said| serde_json::from_value(said).ok());
        let rule = || self.workloads.rules.iter().find(|rule| rule.fits(pod, container)).map(|rule| rule.fate);
        said.or_else(rule).unwrap_or_default()
    }
}
