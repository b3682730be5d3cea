//! Problem of one pod: that of its init containers first, then of its containers, then its own.

use std::cmp::Reverse;

use serde_json::Value;

use crate::conditions::Conditions;
use crate::health::{Health, HealthState, is_valid_reason, truncate};
use crate::object::Object;

/// Maximum length of a container's termination message, which may be the end of its log.
const TERMINATION_MESSAGE_CHARACTERS_MAX: usize = 300;
/// Waiting reasons of images that no retry can pull.
const UNPULLABLE_IMAGE_REASONS: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];
const IMAGE_REASONS: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"];
const CONFIGURATION_REASONS: [&str; 3] = ["CreateContainerConfigError", "CreateContainerError", "RunContainerError"];

/// Severity of a problem, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The pod is starting.
    Starting,
    /// The pod failed, and its controller replaces it.
    Replaced,
    /// The pod runs and is not ready.
    NotReady,
    Unschedulable,
    Configuration,
    Image,
    Crashing,
}

/// Reason why a pod is not ready.
#[derive(Clone, Debug)]
pub(crate) struct PodProblem {
    pub severity: Severity,
    pub state: HealthState,
    pub reason: String,
    pub message: String,
}

impl PodProblem {
    fn new(severity: Severity, reason: &str, message: String) -> Self {
        let reason = if is_valid_reason(reason) { reason } else { "NotReady" };
        Self { severity, state: HealthState::Progressing, reason: reason.to_owned(), message }
    }

    fn into_failing(self) -> Self {
        Self { state: HealthState::Failing, ..self }
    }

    pub fn into_health(self) -> Health {
        Health::new(self.state, &self.reason, self.message)
    }
}

/// Returns true if the pod is ready.
pub(crate) fn is_ready(pod: Object<'_>) -> bool {
    pod.condition("Ready").is_some_and(|condition| condition.is_true())
}

/// Returns true if the pod has succeeded or failed.
pub(crate) fn has_ended(pod: Object<'_>) -> bool {
    matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// Returns the most severe problem of a pod that is not ready.
pub(crate) fn find_problem(pod: Object<'_>) -> PodProblem {
    let find_in_init_containers =
        || find_container_problem(pod, "initContainers", "initContainerStatuses", "init container");
    let find_in_containers = || {
        find_in_init_containers()
            .or_else(|| find_container_problem(pod, "containers", "containerStatuses", "container"))
    };
    if pod.text(&["status", "phase"]) == Some("Failed") {
        return describe_failed(pod, find_in_containers());
    }
    find_in_containers()
        .filter(|problem| problem.severity > Severity::Starting)
        .or_else(|| find_scheduling_problem(pod))
        .unwrap_or_else(|| {
            find_in_containers()
                .or_else(|| find_readiness_problem(pod))
                .unwrap_or_else(|| PodProblem::new(Severity::Starting, "Pending", "it has not started yet".to_owned()))
        })
}

/// Returns the problem of a failed pod.
fn describe_failed(pod: Object<'_>, container_problem: Option<PodProblem>) -> PodProblem {
    let is_replaced = !matches!(pod.text(&["spec", "restartPolicy"]), Some("Never" | "OnFailure"));
    let severity = if is_replaced { Severity::Replaced } else { Severity::Crashing };
    let own = pod.text(&["status", "reason"]).map(|reason| {
        let message = pod.text(&["status", "message"]).unwrap_or("it failed").to_owned();
        PodProblem::new(severity, reason, message)
    });
    let problem = own.or(container_problem).unwrap_or_else(|| {
        PodProblem::new(severity, "PodFailed", "a container failed and is not restarted".to_owned())
    });
    PodProblem { severity, ..problem }.into_failing()
}

/// Returns the problem of a pod that has no node.
fn find_scheduling_problem(pod: Object<'_>) -> Option<PodProblem> {
    let condition = pod.condition("PodScheduled").filter(|condition| condition.is_false())?;
    let health = condition.to_health(HealthState::Progressing, "Unschedulable");
    Some(PodProblem::new(Severity::Unschedulable, &health.reason, health.message))
}

/// Returns the problem that the `Ready` condition reports, such as a readiness gate or a lost node.
fn find_readiness_problem(pod: Object<'_>) -> Option<PodProblem> {
    let condition = pod.condition("Ready").filter(|condition| !condition.is_true())?;
    let health = condition.to_health(HealthState::Progressing, "NotReady");
    Some(PodProblem::new(Severity::NotReady, &health.reason, health.message))
}

/// Returns the problem of the worst container of one list; of init containers, which run in order, that of the first.
fn find_container_problem(pod: Object<'_>, specs: &str, statuses: &str, container_type: &str) -> Option<PodProblem> {
    let specs = pod.list(&["spec", specs]);
    let containers = pod.list(&["status", statuses]).iter().filter_map(|status| {
        let name = Object(status).text(&["name"]).unwrap_or_default();
        let spec = specs.iter().find(|spec| Object(spec).text(&["name"]) == Some(name)).unwrap_or(&Value::Null);
        Container { container_type, name, status: Object(status), spec: Object(spec) }.find_problem()
    });
    let mut problems: Vec<PodProblem> = containers.collect();
    if container_type == "container" {
        // The sort is stable: of equals, the first declared container wins.
        problems.sort_by_key(|problem| Reverse((problem.state, problem.severity)));
    }
    problems.into_iter().next()
}

/// Spec and status of one container.
#[derive(Clone, Copy)]
struct Container<'a> {
    container_type: &'a str,
    name: &'a str,
    status: Object<'a>,
    spec: Object<'a>,
}

impl Container<'_> {
    fn find_problem(self) -> Option<PodProblem> {
        if let Some(waiting) = self.status.at(&["state", "waiting"]) {
            return Some(self.describe_waiting(Object(waiting)));
        }
        if let Some(terminated) = self.status.at(&["state", "terminated"]) {
            return self.describe_terminated(Object(terminated));
        }
        let is_running = self.status.at(&["state", "running"]).is_some();
        (is_running && !self.status.flag(&["ready"])).then(|| self.describe_running())
    }

    fn describe_waiting(self, waiting: Object<'_>) -> PodProblem {
        let reason = waiting.text(&["reason"]).unwrap_or("Waiting");
        let message = waiting.text(&["message"]).unwrap_or_default();
        if reason == "CrashLoopBackOff" {
            return self.describe_crash_loop(message);
        }
        let described = self.describe(reason, message);
        if UNPULLABLE_IMAGE_REASONS.contains(&reason) {
            return PodProblem::new(Severity::Image, reason, described).into_failing();
        }
        let severity = match reason {
            reason if IMAGE_REASONS.contains(&reason) => Severity::Image,
            reason if CONFIGURATION_REASONS.contains(&reason) => Severity::Configuration,
            _ => Severity::Starting,
        };
        PodProblem::new(severity, reason, described)
    }

    /// Returns the problem of a container in crash loop backoff.
    fn describe_crash_loop(self, message: &str) -> PodProblem {
        let Some(last) = self.last_termination() else {
            return PodProblem::new(Severity::Crashing, "CrashLoopBackOff", self.describe("CrashLoopBackOff", message))
                .into_failing();
        };
        let reason = if last.text(&["reason"]) == Some("OOMKilled") { "OOMKilled" } else { "CrashLoopBackOff" };
        let described = self.describe("CrashLoopBackOff", &describe_termination(last));
        PodProblem::new(Severity::Crashing, reason, described).into_failing()
    }

    fn describe_terminated(self, terminated: Object<'_>) -> Option<PodProblem> {
        let reason = terminated.text(&["reason"]).filter(|reason| *reason != "Error").unwrap_or("ContainerFailed");
        let succeeded = terminated.count(&["exitCode"]) == 0;
        (!succeeded).then(|| {
            PodProblem::new(Severity::Crashing, reason, self.describe("ended", &describe_termination(terminated)))
        })
    }

    /// Returns the problem of a container that runs and is not ready.
    fn describe_running(self) -> PodProblem {
        let is_sidecar = self.spec.text(&["restartPolicy"]) == Some("Always");
        let has_probe = |probe: &str| self.spec.at(&[probe]).is_some();
        if let Some(last) = self.last_termination().filter(|last| last.count(&["exitCode"]) != 0) {
            let reason = if last.text(&["reason"]) == Some("OOMKilled") { "OOMKilled" } else { "Restarted" };
            return PodProblem::new(
                Severity::Crashing,
                reason,
                self.describe("restarted", &describe_termination(last)),
            );
        }
        if self.container_type != "container" && !is_sidecar {
            return PodProblem::new(Severity::Starting, "Initializing", self.describe("runs", ""));
        }
        let is_started = self.status.at(&["started"]).and_then(Value::as_bool).unwrap_or(true);
        if !is_started && has_probe("startupProbe") {
            return PodProblem::new(
                Severity::NotReady,
                "StartupProbeFailing",
                self.describe("runs", "its startup probe has not succeeded"),
            );
        }
        if has_probe("readinessProbe") {
            return PodProblem::new(
                Severity::NotReady,
                "ReadinessProbeFailing",
                self.describe("runs", "its readiness probe does not succeed"),
            );
        }
        PodProblem::new(Severity::NotReady, "ContainerNotReady", self.describe("runs", "it is not ready"))
    }

    /// Returns the last termination.
    fn last_termination(&self) -> Option<Object<'_>> {
        self.status.at(&["lastState", "terminated"]).map(Object)
    }

    fn describe(self, state: &str, message: &str) -> String {
        let Self { container_type, name, .. } = self;
        let restarts = match self.status.count(&["restartCount"]) {
            0 => String::new(),
            1 => ", 1 restart".to_owned(),
            restarts => format!(", {restarts} restarts"),
        };
        let colon = if message.is_empty() { "" } else { ": " };
        format!("{container_type} {name}: {state}{restarts}{colon}{message}")
    }
}

/// Describes the termination of a container.
fn describe_termination(terminated: Object<'_>) -> String {
    let reason = terminated.text(&["reason"]).unwrap_or("it ended");
    let code = terminated.count(&["exitCode"]);
    match terminated.text(&["message"]).map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => {
            format!("{reason} (exit code {code}): {}", truncate(message, TERMINATION_MESSAGE_CHARACTERS_MAX))
        }
        None => format!("{reason} (exit code {code})"),
    }
}
