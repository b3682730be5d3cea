//! Statuses of the containers of a pod that do not decide its phase: init containers, sidecars and ephemeral containers.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::object::fields::{array_at, string_at, uid};

/// Returns the part of a container status that is the same in every state.
pub(super) fn base_status(pod: &Value, container: &Value, restarts: i64) -> Value {
    let image = string_at(container, "/image");
    let unique = Sha256::digest(format!("{}/{}/{restarts}", uid(pod), string_at(container, "/name")).as_bytes());
    let digest = Sha256::digest(image.as_bytes());
    json!({
        "name": container["name"], "image": image, "imageID": format!("{image}@sha256:{}", hex::encode(digest)),
        "containerID": format!("containerd://{}", hex::encode(unique)), "restartCount": restarts,
        "ready": false, "started": false, "lastState": {}, "state": {},
    })
}

/// Returns the status of an init container of a pod that arrived at its node: it has succeeded, or it is a sidecar and runs.
pub(super) fn init_status(pod: &Value, container: &Value, now: &str) -> Value {
    let mut status = base_status(pod, container, 0);
    status["ready"] = json!(true);
    if string_at(container, "/restartPolicy") == "Always" {
        status["state"] = json!({"running": {"startedAt": now}});
        status["started"] = json!(true);
    } else {
        let ended = json!({"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now});
        status["state"] = json!({ "terminated": ended });
    }
    status
}

/// Starts the ephemeral containers that have no status yet.
pub(super) fn start_ephemeral_containers(pod: &mut Value, now: &str) {
    let mut statuses = array_at(pod, "/status/ephemeralContainerStatuses").to_vec();
    let is_known = |container: &Value| statuses.iter().any(|status| status["name"] == container["name"]);
    let declared = array_at(pod, "/spec/ephemeralContainers").iter().filter(|container| !is_known(container));
    let started: Vec<Value> = declared
        .map(|container| {
            let mut status = base_status(pod, container, 0);
            status["state"] = json!({"running": {"startedAt": now}});
            status
        })
        .collect();
    if !started.is_empty() {
        statuses.extend(started);
        pod["status"]["ephemeralContainerStatuses"] = json!(statuses);
    }
}

/// Ends the containers of these lists that run, with this exit code and reason.
pub(super) fn end_containers(pod: &mut Value, lists: &[&str], now: &str, (exit_code, reason): (u8, &str)) {
    for list in lists {
        let statuses = pod["status"].get_mut(*list).and_then(Value::as_array_mut);
        for status in statuses.into_iter().flatten().filter(|status| status.pointer("/state/terminated").is_none()) {
            let since = status.pointer("/state/running/startedAt").cloned();
            status["state"] = json!({ "terminated": {
                "exitCode": exit_code, "reason": reason, "startedAt": since, "finishedAt": now,
            } });
            status["ready"] = json!(false);
            status["started"] = json!(false);
        }
    }
}
