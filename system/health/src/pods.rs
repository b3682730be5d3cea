//! What is wrong with one pod: the trouble of its init containers first, then of its containers, then its own.

use std::cmp::Reverse;

use serde_json::Value;

use crate::health::{Health, HealthState, cut, is_word};
use crate::object::Object;

/// The longest last words of a container that are passed on; it may have been told to leave its log there.
const LAST_WORDS_CHARACTERS_MAX: usize = 300;
/// Image names that no further attempt can pull.
const NEVER_PULLED: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];
const IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"];
const CONFIGURATION: [&str; 3] = ["CreateContainerConfigError", "CreateContainerError", "RunContainerError"];

/// How telling a trouble is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    /// It has just begun.
    Starting,
    /// It ended badly, and something else was started in its place.
    Replaced,
    /// It runs, and does not answer.
    NotReady,
    Unschedulable,
    Configuration,
    Image,
    Crashing,
}

/// Why a pod is not ready.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub grade: Grade,
    pub state: HealthState,
    pub reason: String,
    pub message: String,
}

impl Trouble {
    fn new(grade: Grade, reason: &str, message: String) -> Self {
        let reason = if is_word(reason) { reason } else { "NotReady" };
        Self { grade, state: HealthState::Progressing, reason: reason.to_owned(), message }
    }

    fn failing(self) -> Self {
        Self { state: HealthState::Failing, ..self }
    }

    pub fn health(self) -> Health {
        Health::new(self.state, &self.reason, self.message)
    }
}

/// Whether it serves.
pub(crate) fn is_ready(pod: Object<'_>) -> bool {
    pod.condition("Ready").is_some_and(|condition| condition.is_true())
}

/// Whether it has ended, well or badly.
pub(crate) fn has_ended(pod: Object<'_>) -> bool {
    matches!(pod.text(&["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// The most telling trouble of a pod that is not ready.
pub(crate) fn trouble(pod: Object<'_>) -> Trouble {
    let of_containers = || container_trouble(pod, "initContainers", "initContainerStatuses", "init container");
    let of_containers =
        || of_containers().or_else(|| container_trouble(pod, "containers", "containerStatuses", "container"));
    if pod.text(&["status", "phase"]) == Some("Failed") {
        return failed(pod, of_containers());
    }
    of_containers().filter(|trouble| trouble.grade > Grade::Starting).or_else(|| unscheduled(pod)).unwrap_or_else(
        || {
            of_containers()
                .or_else(|| not_ready(pod))
                .unwrap_or_else(|| Trouble::new(Grade::Starting, "Pending", "it has not begun yet".to_owned()))
        },
    )
}

/// A pod that is not tried again.
fn failed(pod: Object<'_>, of_containers: Option<Trouble>) -> Trouble {
    let is_replaced = !matches!(pod.text(&["spec", "restartPolicy"]), Some("Never" | "OnFailure"));
    let grade = if is_replaced { Grade::Replaced } else { Grade::Crashing };
    let own = pod.text(&["status", "reason"]).map(|reason| {
        let message = pod.text(&["status", "message"]).unwrap_or("it failed").to_owned();
        Trouble::new(grade, reason, message)
    });
    let trouble = own.or(of_containers).unwrap_or_else(|| {
        Trouble::new(grade, "PodFailed", "a container ended badly and is not started again".to_owned())
    });
    Trouble { grade, ..trouble }.failing()
}

/// A pod for which no node was found.
fn unscheduled(pod: Object<'_>) -> Option<Trouble> {
    let condition = pod.condition("PodScheduled").filter(|condition| condition.is_false())?;
    let health = condition.health(HealthState::Progressing, "Unschedulable");
    Some(Trouble::new(Grade::Unschedulable, &health.reason, health.message))
}

/// What its conditions say where its containers are silent: a readiness gate, or a node that is lost.
fn not_ready(pod: Object<'_>) -> Option<Trouble> {
    let condition = pod.condition("Ready").filter(|condition| !condition.is_true())?;
    let health = condition.health(HealthState::Progressing, "NotReady");
    Some(Trouble::new(Grade::NotReady, &health.reason, health.message))
}

/// The worst container of one list; of init containers the first that is not done, for they run one after the other.
fn container_trouble(pod: Object<'_>, specs: &str, statuses: &str, what: &str) -> Option<Trouble> {
    let specs = pod.list(&["spec", specs]);
    let containers = pod.list(&["status", statuses]).iter().filter_map(|status| {
        let name = Object(status).text(&["name"]).unwrap_or_default();
        let spec = specs.iter().find(|spec| Object(spec).text(&["name"]) == Some(name)).unwrap_or(&Value::Null);
        Container { what, name, status: Object(status), spec: Object(spec) }.trouble()
    });
    let mut troubles: Vec<Trouble> = containers.collect();
    if what == "container" {
        // Stable: of equals the first that was declared.
        troubles.sort_by_key(|trouble| Reverse((trouble.state, trouble.grade)));
    }
    troubles.into_iter().next()
}

/// One container, as declared and as it is.
#[derive(Clone, Copy)]
struct Container<'a> {
    what: &'a str,
    name: &'a str,
    status: Object<'a>,
    spec: Object<'a>,
}

impl Container<'_> {
    fn trouble(self) -> Option<Trouble> {
        if let Some(waiting) = self.status.at(&["state", "waiting"]) {
            return Some(self.waiting(Object(waiting)));
        }
        if let Some(terminated) = self.status.at(&["state", "terminated"]) {
            return self.terminated(Object(terminated));
        }
        let is_running = self.status.at(&["state", "running"]).is_some();
        (is_running && !self.status.flag(&["ready"])).then(|| self.running())
    }

    fn waiting(self, waiting: Object<'_>) -> Trouble {
        let reason = waiting.text(&["reason"]).unwrap_or("Waiting");
        let message = waiting.text(&["message"]).unwrap_or_default();
        if reason == "CrashLoopBackOff" {
            return self.crashing(message);
        }
        let told = self.tell(reason, message);
        if NEVER_PULLED.contains(&reason) {
            return Trouble::new(Grade::Image, reason, told).failing();
        }
        let grade = match reason {
            reason if IMAGE.contains(&reason) => Grade::Image,
            reason if CONFIGURATION.contains(&reason) => Grade::Configuration,
            _ => Grade::Starting,
        };
        Trouble::new(grade, reason, told)
    }

    /// It ended again and again, and is given time before the next attempt.
    fn crashing(self, message: &str) -> Trouble {
        let Some(last) = self.last() else {
            return Trouble::new(Grade::Crashing, "CrashLoopBackOff", self.tell("CrashLoopBackOff", message)).failing();
        };
        let reason = if last.text(&["reason"]) == Some("OOMKilled") { "OOMKilled" } else { "CrashLoopBackOff" };
        let told = self.tell("CrashLoopBackOff", &ended(last));
        Trouble::new(Grade::Crashing, reason, told).failing()
    }

    fn terminated(self, terminated: Object<'_>) -> Option<Trouble> {
        let reason = terminated.text(&["reason"]).filter(|reason| *reason != "Error").unwrap_or("ContainerFailed");
        let is_well = terminated.count(&["exitCode"]) == 0;
        (!is_well).then(|| Trouble::new(Grade::Crashing, reason, self.tell("ended", &ended(terminated))))
    }

    /// It runs and is not ready.
    fn running(self) -> Trouble {
        let is_sidecar = self.spec.text(&["restartPolicy"]) == Some("Always");
        let has = |probe: &str| self.spec.at(&[probe]).is_some();
        if let Some(last) = self.last().filter(|last| last.count(&["exitCode"]) != 0) {
            let reason = if last.text(&["reason"]) == Some("OOMKilled") { "OOMKilled" } else { "Restarted" };
            return Trouble::new(Grade::Crashing, reason, self.tell("runs again", &ended(last)));
        }
        if self.what != "container" && !is_sidecar {
            return Trouble::new(Grade::Starting, "Initializing", self.tell("runs", ""));
        }
        let is_started = self.status.at(&["started"]).and_then(Value::as_bool).unwrap_or(true);
        if !is_started && has("startupProbe") {
            return Trouble::new(
                Grade::NotReady,
                "StartupProbeFailing",
                self.tell("runs", "its startup probe has not succeeded"),
            );
        }
        if has("readinessProbe") {
            return Trouble::new(
                Grade::NotReady,
                "ReadinessProbeFailing",
                self.tell("runs", "its readiness probe does not succeed"),
            );
        }
        Trouble::new(Grade::NotReady, "ContainerNotReady", self.tell("runs", "it is not ready"))
    }

    /// How it ended the last time.
    fn last(&self) -> Option<Object<'_>> {
        self.status.at(&["lastState", "terminated"]).map(Object)
    }

    fn tell(self, state: &str, message: &str) -> String {
        let Self { what, name, .. } = self;
        let restarts = match self.status.count(&["restartCount"]) {
            0 => String::new(),
            1 => ", 1 restart".to_owned(),
            restarts => format!(", {restarts} restarts"),
        };
        let colon = if message.is_empty() { "" } else { ": " };
        format!("{what} {name}: {state}{restarts}{colon}{message}")
    }
}

/// How a container ended, in words.
fn ended(terminated: Object<'_>) -> String {
    let reason = terminated.text(&["reason"]).unwrap_or("it ended");
    let code = terminated.count(&["exitCode"]);
    match terminated.text(&["message"]).map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason} (exit code {code}): {}", cut(message, LAST_WORDS_CHARACTERS_MAX)),
        None => format!("{reason} (exit code {code})"),
    }
}
