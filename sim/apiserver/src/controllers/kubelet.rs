//! The kubelets: they take pods to Running and Ready, or to the error that a rule requests, and end them.
//!
//! Each reconciliation moves a pod one step further and schedules the next step. The step follows from the pod's status, not
//! from the time, so that a step can be taken early.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::container_status::{base_status, end_containers, init_status, start_ephemeral_containers};
use super::owned_objects::has_ended;
use super::writes::{record_event, replace_status};
use crate::controllers::writes::number;
use crate::object::fields::{
    array_at, finalizers, format_timestamp, is_deleting, metadata, name, string_at, uid, value_at,
};
use crate::object::key::StoredKey;
use crate::state::delays::ControllerDelays;
use crate::state::pod_outcome::PodOutcome;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::writes::commit::remove;

const KUBELET: &str = "kubelet";
/// Delay before the retry of an image pull, and before the first restart of a container.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_secs(300);

/// Statuses of the containers that end with the pod: sidecars and ephemeral containers.
const OTHER_STATUSES: [&str; 2] = ["initContainerStatuses", "ephemeralContainerStatuses"];

/// A container whose next state is decided.
struct ContainerStep<'a> {
    pod: &'a Value,
    container: &'a Value,
    /// Current status, if there is one.
    known: Option<&'a Value>,
    outcome: PodOutcome,
    /// True if it exits by itself, as containers do that are not always restarted.
    exits: bool,
    timestamp: String,
}

/// Moves a pod one step further.
pub(crate) fn run_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(pod) = state.store.find_key(key).cloned() else { return };
    let node = string_at(&pod, "/spec/nodeName");
    if state.store.find("", "nodes", None, node).is_none() || string_at(&pod, "/spec/nodeName").is_empty() {
        return;
    }
    if is_deleting(&pod) {
        return end_pod(state, now, key, &pod);
    }
    if has_ended(&pod) {
        return;
    }
    let mut updated_object = Value::clone(&pod);
    let (statuses, delay) = next_statuses(state, now, &pod);
    record_container_events(state, now, &pod, &statuses);
    if string_at(&pod, "/status/podIP").is_empty() {
        set_pod_addresses(state, now, &mut updated_object);
    }
    updated_object["status"]["containerStatuses"] = json!(statuses);
    start_ephemeral_containers(&mut updated_object, &format_timestamp(now));
    set_phase_and_conditions(&mut updated_object, &format_timestamp(now));
    if has_ended(&updated_object) {
        end_containers(&mut updated_object, &OTHER_STATUSES, &format_timestamp(now), (0, "Completed"));
    }
    replace_status(state, now, (KUBELET, KUBELET), key, &updated_object);
    if let Some(delay) = delay {
        state.schedule_after(now, delay, Task::Reconcile(Workload::Kubelet, key.clone()));
    }
}

fn next_statuses(state: &ServerState, now: Timestamp, pod: &Value) -> (Vec<Value>, Option<SignedDuration>) {
    let exits = string_at(pod, "/spec/restartPolicy") != "Always";
    let known = array_at(pod, "/status/containerStatuses");
    let mut delay: Option<SignedDuration> = None;
    let mut statuses = Vec::new();
    for container in array_at(pod, "/spec/containers") {
        let known = known.iter().find(|known| known["name"] == container["name"]);
        let outcome = state.workloads.outcome_of(pod, container);
        let step = ContainerStep { pod, container, known, outcome, exits, timestamp: format_timestamp(now) };
        let (status, due) = step.next(&state.delays);
        delay = delay.into_iter().chain(due).min();
        statuses.push(status);
    }
    (statuses, delay)
}

/// Sets the addresses, the start time and the statuses of the init containers of a pod that arrived at its node.
fn set_pod_addresses(state: &mut ServerState, now: Timestamp, pod: &mut Value) {
    state.workloads.addresses = state.workloads.addresses.wrapping_add(1);
    let [_, high, middle, low] = state.workloads.addresses.to_be_bytes();
    let address = format!("10.{}.{middle}.{low}", 244_u8.saturating_add(high % 11));
    let node = state.store.find("", "nodes", None, string_at(pod, "/spec/nodeName"));
    let host = node.map(|node| string_at(node, "/status/addresses/0/address").to_owned()).unwrap_or_default();
    let timestamp = format_timestamp(now);
    let initial = array_at(pod, "/spec/initContainers").iter().map(|container| init_status(pod, container, &timestamp));
    let initial: Vec<Value> = initial.collect();
    let status = &mut pod["status"];
    status["hostIP"] = json!(host);
    status["hostIPs"] = json!([{ "ip": host }]);
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{ "ip": address }]);
    status["startTime"] = json!(format_timestamp(now));
    if !initial.is_empty() {
        status["initContainerStatuses"] = json!(initial);
    }
}

fn record_container_events(state: &mut ServerState, now: Timestamp, pod: &Value, statuses: &[Value]) {
    let known = array_at(pod, "/status/containerStatuses");
    for status in statuses {
        let container_name = string_at(status, "/name");
        let before = known.iter().find(|known| known["name"] == status["name"]);
        if before.is_some_and(|before| before["state"] == status["state"]) {
            continue;
        }
        let waiting = string_at(status, "/state/waiting/reason");
        let message = string_at(status, "/state/waiting/message");
        if status.pointer("/state/running").is_some()
            && before.is_none_or(|known| known.pointer("/state/running").is_none())
        {
            record_event(
                state,
                now,
                KUBELET,
                pod,
                ("Normal", "Started"),
                &format!("Container started: {container_name}"),
            );
        } else if waiting == "ErrImagePull" {
            record_event(state, now, KUBELET, pod, ("Warning", "Failed"), message);
        } else if !waiting.is_empty() {
            record_event(state, now, KUBELET, pod, ("Warning", "BackOff"), message);
        }
    }
}

/// Ends the containers of a pod, which is no longer ready then, and removes the pod unless it has finalizers.
fn end_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey, pod: &Value) {
    let is_removed = finalizers(pod).is_empty();
    let mut ended = pod.clone();
    if !is_removed {
        metadata(&mut ended).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    }
    let killed = (137, "Error");
    end_containers(&mut ended, &["containerStatuses"], &format_timestamp(now), killed);
    end_containers(&mut ended, &OTHER_STATUSES, &format_timestamp(now), killed);
    if !is_removed || !array_at(&ended, "/status/containerStatuses").is_empty() {
        set_phase_and_conditions(&mut ended, &format_timestamp(now));
    }
    replace_status(state, now, (KUBELET, KUBELET), key, &ended);
    if is_removed {
        remove(state, now, &Attribution::controller(KUBELET, Verb::Delete), key);
    }
}

/// Updates a running pod after the conditions of its readiness gates or its ephemeral containers changed.
pub(crate) fn update_readiness(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(pod) = state.store.find_key(key).cloned() else { return };
    if is_deleting(&pod) || array_at(&pod, "/status/containerStatuses").is_empty() {
        return;
    }
    let mut updated_object = Value::clone(&pod);
    if !has_ended(&pod) {
        start_ephemeral_containers(&mut updated_object, &format_timestamp(now));
    }
    set_phase_and_conditions(&mut updated_object, &format_timestamp(now));
    replace_status(state, now, (KUBELET, KUBELET), key, &updated_object);
}

impl ContainerStep<'_> {
    /// Returns the next status of the container, and the delay until the step after it.
    fn next(&self, lags: &ControllerDelays) -> (Value, Option<SignedDuration>) {
        let Some(known) = self.known else { return self.start(lags) };
        let waiting = string_at(known, "/state/waiting/reason");
        if known.pointer("/state/terminated").is_some() {
            (known.clone(), None)
        } else if known.pointer("/state/running").is_some() {
            self.continue_running(known, lags)
        } else if waiting == "CrashLoopBackOff" {
            let mut status = self.running_status(number(known, "/restartCount") + 1);
            status["lastState"] = known["lastState"].clone();
            let due = self.next_delay(&status, lags);
            (status, due)
        } else if waiting == "ImagePullBackOff" && self.outcome == PodOutcome::ImagePullError {
            (known.clone(), None)
        } else if waiting == "ErrImagePull" && self.outcome == PodOutcome::ImagePullError {
            let message = format!("Back-off pulling image {:?}", string_at(self.container, "/image"));
            (self.waiting_status(0, "ImagePullBackOff", &message), None)
        } else {
            self.start(lags)
        }
    }

    fn start(&self, lags: &ControllerDelays) -> (Value, Option<SignedDuration>) {
        if self.outcome == PodOutcome::ImagePullError {
            let image = string_at(self.container, "/image");
            let message = format!("failed to pull and unpack image {image:?}: not found");
            return (self.waiting_status(0, "ErrImagePull", &message), Some(BACK_OFF));
        }
        let status = self.running_status(0);
        let due = self.next_delay(&status, lags);
        (status, due)
    }

    fn running_status(&self, restarts: i64) -> Value {
        let mut status = base_status(self.pod, self.container, restarts);
        status["state"] = json!({"running": {"startedAt": self.timestamp}});
        status["started"] = json!(true);
        let has_probe = self.container.get("readinessProbe").is_some();
        status["ready"] = json!(!has_probe && self.outcome != PodOutcome::NeverReady);
        status
    }

    fn waiting_status(&self, restarts: i64, reason: &str, message: &str) -> Value {
        let mut status = base_status(self.pod, self.container, restarts);
        status["state"] = json!({"waiting": {"reason": reason, "message": message}});
        if restarts == 0 {
            status["imageID"] = json!("");
            if let Some(fields) = status.as_object_mut() {
                fields.remove("containerID");
            }
        }
        status
    }

    /// Returns the delay until the next step of a running container.
    fn next_delay(&self, status: &Value, lags: &ControllerDelays) -> Option<SignedDuration> {
        match self.outcome {
            PodOutcome::CrashLoop => Some(lags.container_ends),
            PodOutcome::NeverReady | PodOutcome::ImagePullError => None,
            PodOutcome::Runs | PodOutcome::KeepsRunning if status["ready"] == false => Some(lags.pod_ready),
            PodOutcome::KeepsRunning => None,
            PodOutcome::Runs => self.exits.then_some(lags.container_ends),
        }
    }

    fn continue_running(&self, known: &Value, lags: &ControllerDelays) -> (Value, Option<SignedDuration>) {
        let mut status = known.clone();
        match self.outcome {
            PodOutcome::CrashLoop => return self.fail(known),
            PodOutcome::NeverReady => status["ready"] = json!(false),
            PodOutcome::ImagePullError => {}
            PodOutcome::Runs | PodOutcome::KeepsRunning if known["ready"] == false => {
                status["ready"] = json!(true);
                let due = self.next_delay(&status, lags);
                return (status, due);
            }
            PodOutcome::Runs if self.exits => {
                status["state"] = json!({ "terminated": self.terminated_state(known, 0, "Completed") });
                status["ready"] = json!(false);
                status["started"] = json!(false);
            }
            PodOutcome::Runs | PodOutcome::KeepsRunning => {}
        }
        (status, None)
    }

    fn terminated_state(&self, known: &Value, code: i64, reason: &str) -> Value {
        json!({
            "exitCode": code, "reason": reason, "startedAt": known.pointer("/state/running/startedAt"),
            "finishedAt": self.timestamp, "containerID": known["containerID"],
        })
    }

    /// Ends the container with an error; it restarts after a backoff unless the restart policy is `Never`.
    fn fail(&self, known: &Value) -> (Value, Option<SignedDuration>) {
        let ended = self.terminated_state(known, 1, "Error");
        let mut status = known.clone();
        status["ready"] = json!(false);
        status["started"] = json!(false);
        if string_at(self.pod, "/spec/restartPolicy") == "Never" {
            status["state"] = json!({ "terminated": ended });
            return (status, None);
        }
        let restarts = u32::try_from(number(known, "/restartCount")).unwrap_or_default();
        let factor = 2_i32.checked_pow(restarts.min(10)).unwrap_or(i32::MAX);
        let backoff = BACK_OFF.checked_mul(factor).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX);
        let (pod, namespace) = (name(self.pod), string_at(self.pod, "/metadata/namespace"));
        let message = format!(
            "back-off {}s restarting failed container={} pod={pod}_{namespace}({})",
            backoff.as_secs(),
            string_at(self.container, "/name"),
            uid(self.pod)
        );
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
        status["lastState"] = json!({ "terminated": ended });
        (status, Some(backoff))
    }
}

/// Sets the phase and the conditions of a pod from its container statuses.
fn set_phase_and_conditions(pod: &mut Value, now: &str) {
    let statuses = array_at(pod, "/status/containerStatuses").to_vec();
    let ended = |status: &Value| status.pointer("/state/terminated").cloned();
    let has_ended = !statuses.is_empty() && statuses.iter().all(|status| ended(status).is_some());
    let has_succeeded = statuses.iter().filter_map(ended).all(|end| end["exitCode"] == 0);
    let started = |status: &Value| {
        status.pointer("/state/running").is_some()
            || value_at(status, "/lastState/terminated").is_some()
            || ended(status).is_some()
    };
    let phase = match (has_ended, has_succeeded) {
        (true, true) => "Succeeded",
        (true, false) => "Failed",
        (false, _) if statuses.iter().all(started) => "Running",
        (false, _) => "Pending",
    };
    pod["status"]["phase"] = json!(phase);
    let unready: Vec<&str> =
        statuses.iter().filter(|status| status["ready"] == false).map(|status| string_at(status, "/name")).collect();
    let unready_reason = match phase {
        _ if unready.is_empty() => None,
        "Succeeded" => Some(("PodCompleted", String::new())),
        "Failed" => Some(("PodFailed", String::new())),
        _ => Some(("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))),
    };
    let completed = (phase == "Succeeded").then(|| ("PodCompleted", String::new()));
    set_condition(pod, now, "PodReadyToStartContainers", !has_ended, None);
    set_condition(pod, now, "Initialized", true, completed.as_ref());
    let closed = closed_gates(pod);
    let gate_reason = (!closed.is_empty()).then(|| ("ReadinessGatesNotReady", closed.join(", ")));
    let ready_reason = unready_reason.clone().or(gate_reason);
    set_condition(pod, now, "Ready", ready_reason.is_none(), ready_reason.as_ref());
    set_condition(pod, now, "ContainersReady", unready.is_empty(), unready_reason.as_ref());
}

/// Returns why the readiness gates of a pod are not open.
fn closed_gates(pod: &Value) -> Vec<String> {
    let conditions = array_at(pod, "/status/conditions");
    let gates = array_at(pod, "/spec/readinessGates").iter().map(|gate| string_at(gate, "/conditionType"));
    let reason = |gate: &str| match conditions.iter().find(|condition| condition["type"] == gate) {
        None => Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
        Some(condition) if condition["status"] == "True" => None,
        Some(condition) => {
            let status = string_at(condition, "/status");
            Some(format!("the status of pod readiness gate {gate:?} is not \"True\", but {status}"))
        }
    };
    gates.filter_map(reason).collect()
}

fn set_condition(pod: &mut Value, now: &str, condition_type: &str, holds: bool, reason: Option<&(&str, String)>) {
    let status = if holds { "True" } else { "False" };
    let mut conditions = array_at(pod, "/status/conditions").to_vec();
    let known = conditions.iter().position(|condition| condition["type"] == condition_type);
    let same = known.filter(|index| conditions[*index]["status"] == status);
    let since = same.map_or_else(|| json!(now), |index| conditions[index]["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": condition_type, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
        "observedGeneration": pod["metadata"]["generation"],
    });
    if let Some((reason, message)) = reason {
        condition["reason"] = json!(reason);
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
    }
    match known {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    let position = |condition: &Value| CONDITIONS.iter().position(|listed| condition["type"] == *listed);
    conditions.sort_by_key(|condition| position(condition).unwrap_or(CONDITIONS.len()));
    pod["status"]["conditions"] = json!(conditions);
}

/// Conditions of a pod, in the order in which a kubelet writes them.
const CONDITIONS: [&str; 5] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
