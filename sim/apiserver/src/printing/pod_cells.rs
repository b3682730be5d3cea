//! Table cells of pods, as `kubectl get pods` prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{array_at, is_deleting, string_at, value_at};
use crate::printing::format::age;

/// Summary of the container statuses of a pod.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: u64,
    /// Time of the last restart.
    last_restart: String,
}

impl Summary {
    fn add_restarts(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_u64().unwrap_or_default();
        let ended = string_at(status, "/lastState/terminated/finishedAt");
        if ended > self.last_restart.as_str() {
            ended.clone_into(&mut self.last_restart);
        }
    }
}

/// Returns the cells between name and age.
pub(crate) fn status_cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let sidecars = array_at(pod, "/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();
    let all = array_at(pod, "/spec/containers").len() + sidecars;
    let summary = summarize(pod);
    let restarts = match summary.last_restart.as_str() {
        since if summary.restarts > 0 && !since.is_empty() => {
            format!("{} ({} ago)", summary.restarts, age(now, since))
        }
        _ => summary.restarts.to_string(),
    };
    vec![json!(format!("{}/{all}", summary.ready)), json!(summary.reason), json!(restarts)]
}

/// Returns the cells after the age, which only wide output shows.
pub(crate) fn location_cells(pod: &Value) -> Vec<Value> {
    let or_none =
        |pointer: &str| json!(Some(string_at(pod, pointer)).filter(|text| !text.is_empty()).unwrap_or("<none>"));
    let gates = array_at(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|gate| has_condition(pod, string_at(gate, "/conditionType"))).count();
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) };
    vec![or_none("/status/podIPs/0/ip"), or_none("/spec/nodeName"), or_none("/status/nominatedNodeName"), json!(gates)]
}

/// Returns the conditions of the row of a pod that has ended.
pub(crate) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match string_at(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    array_at(pod, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True")
}

/// True for an init container that runs as long as the pod.
fn is_sidecar(container: &Value) -> bool {
    string_at(container, "/restartPolicy") == "Always"
}

fn summarize(pod: &Value) -> Summary {
    let phase = string_at(pod, "/status/phase");
    let mut summary = Summary::default();
    let status_reason = string_at(pod, "/status/reason");
    summary.reason = if status_reason.is_empty() { phase } else { status_reason }.to_owned();
    let is_gated = |one: &Value| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated";
    if array_at(pod, "/status/conditions").iter().any(is_gated) {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let is_initializing = summarize_init_containers(pod, &mut summary);
    if !is_initializing || has_condition(pod, "Initialized") {
        summarize_containers(pod, &mut summary);
    }
    if is_deleting(pod) && status_reason == "NodeLost" {
        "Unknown".clone_into(&mut summary.reason);
    } else if is_deleting(pod) && !matches!(phase, "Succeeded" | "Failed") {
        "Terminating".clone_into(&mut summary.reason);
    }
    summary
}

/// Returns true if an init container has not finished yet. Only the restarts of sidecars count later.
fn summarize_init_containers(pod: &Value, summary: &mut Summary) -> bool {
    let declared = array_at(pod, "/spec/initContainers");
    let mut sidecars = Summary::default();
    for (index, status) in array_at(pod, "/status/initContainerStatuses").iter().enumerate() {
        summary.add_restarts(status);
        let is_sidecar = declared.iter().any(|container| container["name"] == status["name"] && is_sidecar(container));
        if is_sidecar {
            sidecars.add_restarts(status);
        }
        let ended = value_at(status, "/state/terminated");
        if ended.is_some_and(|ended| ended["exitCode"] == 0) {
            continue;
        }
        if is_sidecar && status["started"] == true {
            summary.ready += usize::from(status["ready"] == true);
            continue;
        }
        let waiting = string_at(status, "/state/waiting/reason");
        summary.reason = match ended {
            Some(ended) => format!("Init:{}", end_reason(ended)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{index}/{}", declared.len()),
        };
        return true;
    }
    (summary.restarts, summary.last_restart) = (sidecars.restarts, sidecars.last_restart);
    false
}

fn end_reason(ended: &Value) -> String {
    let signal = ended["signal"].as_i64().unwrap_or_default();
    match string_at(ended, "/reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", ended["exitCode"].as_i64().unwrap_or_default()),
        reason => reason.to_owned(),
    }
}

fn summarize_containers(pod: &Value, summary: &mut Summary) {
    let (mut is_running, mut error) = (false, String::new());
    for status in array_at(pod, "/status/containerStatuses").iter().rev() {
        summary.add_restarts(status);
        let waiting = string_at(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(ended) = value_at(status, "/state/terminated") {
            summary.reason = end_reason(ended);
            if ended["exitCode"] != 0 {
                error.clone_from(&summary.reason);
            }
        } else if status["ready"] == true && value_at(status, "/state/running").is_some() {
            is_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason != "Completed" {
        return;
    }
    if is_running && has_condition(pod, "Ready") {
        "Running".clone_into(&mut summary.reason);
    } else if !error.is_empty() {
        summary.reason = error;
    } else if is_running {
        "NotReady".clone_into(&mut summary.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_pod_is_that_of_its_containers() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().expect("valid");
        let ended = |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        let running = json!({"running": {}});
        for (status, expected) in [
            (json!({"phase": "Pending"}), ["0/1", "Pending", "0"]),
            (
                json!({"phase": "Running", "containerStatuses": [{"ready": true, "state": running}]}),
                ["1/1", "Running", "0"],
            ),
            (
                json!({"phase": "Succeeded", "containerStatuses": [{"state": ended(0, "Completed")}]}),
                ["0/1", "Completed", "0"],
            ),
            (json!({"phase": "Failed", "containerStatuses": [{"state": ended(1, "")}]}), ["0/1", "ExitCode:1", "0"]),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": running}]}),
                ["0/1", "Init:0/1", "0"],
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{
                    "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"finishedAt": "2026-01-01T00:09:00Z"}},
                }]}),
                ["0/1", "CrashLoopBackOff", "2 (60s ago)"],
            ),
        ] {
            let pod = json!({
                "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "a"}]}, "status": status,
            });
            assert_eq!(status_cells(&pod, now), expected.map(|cell| json!(cell)), "{pod}");
        }
    }
}
