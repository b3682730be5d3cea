//! The kubelets: they take pods to Running and Ready, or to the errors that somebody asked for, and end them.
//!
//! Each look moves a pod one step on and says when the next one is due. Nothing is looked up in times, so that a step can
//! be brought forward.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::owned_objects::has_ended;
use super::pod_fate::PodFate;
use super::writes::{controlled_by, number};
use crate::object::fields::{at, finalizers, is_deleting, list, metadata, name, stamp, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship, Lags};
use crate::state::schedule::{Task, Workload};
use crate::storage::journal::Verb;

const KUBELET: &str = "kubelet";
/// How long until an image is tried again, and a container is started again for the first time.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_secs(300);

/// What is known about a container when its next state is decided.
struct Situation<'a> {
    pod: &'a Value,
    container: &'a Value,
    known: Option<&'a Value>,
    fate: PodFate,
    /// Whether it ends by itself, as those of jobs do.
    ends: bool,
    at: String,
}

impl ApiServer {
    /// Takes a pod one step on.
    pub(super) fn run_pod(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(pod) = self.stored(key).cloned() else { return };
        let node = text(&pod, "/spec/nodeName");
        if self.get("", "nodes", None, node).is_none() || text(&pod, "/spec/nodeName").is_empty() {
            return;
        }
        if is_deleting(&pod) {
            return self.end_pod(now, key, &pod);
        }
        if has_ended(&pod) {
            return;
        }
        let mut told = Value::clone(&pod);
        let (statuses, again) = self.next_statuses(now, &pod);
        self.tell_of_containers(now, &pod, &statuses);
        if text(&pod, "/status/podIP").is_empty() {
            self.settle_pod(now, &mut told);
        }
        told["status"]["containerStatuses"] = json!(statuses);
        conclude(&mut told, &stamp(now));
        self.replace_status(now, (KUBELET, KUBELET), key, &told);
        if let Some(again) = again {
            self.schedule_after(now, again, Task::Reconcile(Workload::Kubelet, key.clone()));
        }
    }

    fn next_statuses(&self, now: Timestamp, pod: &Value) -> (Vec<Value>, Option<SignedDuration>) {
        let ends = controlled_by(pod).is_some_and(|owner| owner["kind"] == "Job");
        let known = list(pod, "/status/containerStatuses");
        let mut again: Option<SignedDuration> = None;
        let mut statuses = Vec::new();
        for container in list(pod, "/spec/containers") {
            let known = known.iter().find(|known| known["name"] == container["name"]);
            let fate = self.fate_of(pod, container);
            let situation = Situation { pod, container, known, fate, ends, at: stamp(now) };
            let (status, due) = situation.next(&self.lags);
            again = again.into_iter().chain(due).min();
            statuses.push(status);
        }
        (statuses, again)
    }

    /// An address, and everything that is so once a pod has arrived at its node.
    fn settle_pod(&mut self, now: Timestamp, pod: &mut Value) {
        self.workloads.addresses = self.workloads.addresses.wrapping_add(1);
        let [_, high, middle, low] = self.workloads.addresses.to_be_bytes();
        let address = format!("10.{}.{middle}.{low}", 244_u8.saturating_add(high % 11));
        let node = self.get("", "nodes", None, text(pod, "/spec/nodeName"));
        let host = node.map(|node| text(node, "/status/addresses/0/address").to_owned()).unwrap_or_default();
        let initial: Vec<Value> = list(pod, "/spec/initContainers")
            .iter()
            .map(|container| {
                let ended =
                    json!({"exitCode": 0, "reason": "Completed", "startedAt": stamp(now), "finishedAt": stamp(now)});
                let mut status = frame(pod, container, 0);
                status["state"] = json!({ "terminated": ended });
                status["ready"] = json!(true);
                status
            })
            .collect();
        let status = &mut pod["status"];
        status["hostIP"] = json!(host);
        status["hostIPs"] = json!([{ "ip": host }]);
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{ "ip": address }]);
        status["startTime"] = json!(stamp(now));
        if !initial.is_empty() {
            status["initContainerStatuses"] = json!(initial);
        }
    }

    fn tell_of_containers(&mut self, now: Timestamp, pod: &Value, statuses: &[Value]) {
        let known = list(pod, "/status/containerStatuses");
        for status in statuses {
            let own = text(status, "/name");
            let before = known.iter().find(|known| known["name"] == status["name"]);
            if before.is_some_and(|before| before["state"] == status["state"]) {
                continue;
            }
            let waiting = text(status, "/state/waiting/reason");
            let message = text(status, "/state/waiting/message");
            if status.pointer("/state/running").is_some()
                && before.is_none_or(|known| known.pointer("/state/running").is_none())
            {
                self.tell(now, KUBELET, pod, ("Normal", "Started"), &format!("Container started: {own}"));
            } else if waiting == "ErrImagePull" {
                self.tell(now, KUBELET, pod, ("Warning", "Failed"), message);
            } else if !waiting.is_empty() {
                self.tell(now, KUBELET, pod, ("Warning", "BackOff"), message);
            }
        }
    }

    /// Ends what runs in a pod, and removes it unless somebody wants to see its end first.
    fn end_pod(&mut self, now: Timestamp, key: &StoredKey, pod: &Value) {
        let who = Authorship::controller(KUBELET, Verb::Delete);
        if finalizers(pod).is_empty() {
            self.expunge(now, &who, key);
            return;
        }
        let mut ended = pod.clone();
        metadata(&mut ended).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        let statuses = ended.pointer_mut("/status/containerStatuses").and_then(Value::as_array_mut);
        for status in statuses.into_iter().flatten() {
            if status.pointer("/state/terminated").is_none() {
                let since = status.pointer("/state/running/startedAt").cloned();
                status["state"] = json!({ "terminated": {
                    "exitCode": 137, "reason": "Error", "startedAt": since, "finishedAt": stamp(now),
                } });
                status["ready"] = json!(false);
                status["started"] = json!(false);
            }
        }
        conclude(&mut ended, &stamp(now));
        self.replace_status(now, (KUBELET, KUBELET), key, &ended);
    }
}

/// What is the same in every state of a container.
fn frame(pod: &Value, container: &Value, restarts: i64) -> Value {
    let image = text(container, "/image");
    let unique = Sha256::digest(format!("{}/{}/{restarts}", uid(pod), text(container, "/name")).as_bytes());
    let digest = Sha256::digest(image.as_bytes());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({
        "name": container["name"], "image": image, "imageID": format!("{image}@sha256:{}", hex(&digest)),
        "containerID": format!("containerd://{}", hex(&unique)), "restartCount": restarts,
        "ready": false, "started": false, "lastState": {}, "state": {},
    })
}

impl Situation<'_> {
    /// The next state of the container, and when it is to be looked at again.
    fn next(&self, lags: &Lags) -> (Value, Option<SignedDuration>) {
        let Some(known) = self.known else { return self.begin(lags) };
        let waiting = text(known, "/state/waiting/reason");
        if known.pointer("/state/terminated").is_some() {
            (known.clone(), None)
        } else if known.pointer("/state/running").is_some() {
            self.go_on(known, lags)
        } else if waiting == "CrashLoopBackOff" {
            let mut status = self.running(number(known, "/restartCount") + 1);
            status["lastState"] = known["lastState"].clone();
            let due = self.due(&status, lags);
            (status, due)
        } else if waiting == "ImagePullBackOff" && self.fate == PodFate::ImagePullError {
            (known.clone(), None)
        } else if waiting == "ErrImagePull" && self.fate == PodFate::ImagePullError {
            let message = format!("Back-off pulling image {:?}", text(self.container, "/image"));
            (self.waiting(0, "ImagePullBackOff", &message), None)
        } else {
            self.begin(lags)
        }
    }

    fn begin(&self, lags: &Lags) -> (Value, Option<SignedDuration>) {
        if self.fate == PodFate::ImagePullError {
            let image = text(self.container, "/image");
            let message = format!("failed to pull and unpack image {image:?}: not found");
            return (self.waiting(0, "ErrImagePull", &message), Some(BACK_OFF));
        }
        let status = self.running(0);
        let due = self.due(&status, lags);
        (status, due)
    }

    fn running(&self, restarts: i64) -> Value {
        let mut status = frame(self.pod, self.container, restarts);
        status["state"] = json!({"running": {"startedAt": self.at}});
        status["started"] = json!(true);
        let probed = self.container.get("readinessProbe").is_some();
        status["ready"] = json!(!probed && self.fate != PodFate::NeverReady);
        status
    }

    fn waiting(&self, restarts: i64, reason: &str, message: &str) -> Value {
        let mut status = frame(self.pod, self.container, restarts);
        status["state"] = json!({"waiting": {"reason": reason, "message": message}});
        if restarts == 0 {
            status["imageID"] = json!("");
            if let Some(fields) = status.as_object_mut() {
                fields.remove("containerID");
            }
        }
        status
    }

    /// When a container that runs is to be looked at again.
    fn due(&self, status: &Value, lags: &Lags) -> Option<SignedDuration> {
        match self.fate {
            PodFate::CrashLoop => Some(lags.container_ends),
            PodFate::NeverReady | PodFate::ImagePullError => None,
            PodFate::Runs if status["ready"] == false => Some(lags.pod_ready),
            PodFate::Runs => self.ends.then_some(lags.container_ends),
        }
    }

    fn go_on(&self, known: &Value, lags: &Lags) -> (Value, Option<SignedDuration>) {
        let mut status = known.clone();
        match self.fate {
            PodFate::CrashLoop => return self.fail(known),
            PodFate::NeverReady => status["ready"] = json!(false),
            PodFate::ImagePullError => {}
            PodFate::Runs if known["ready"] == false => {
                status["ready"] = json!(true);
                let due = self.due(&status, lags);
                return (status, due);
            }
            PodFate::Runs if self.ends => {
                status["state"] = json!({ "terminated": self.end_of(known, 0, "Completed") });
                status["ready"] = json!(false);
                status["started"] = json!(false);
            }
            PodFate::Runs => {}
        }
        (status, None)
    }

    fn end_of(&self, known: &Value, code: i64, reason: &str) -> Value {
        json!({
            "exitCode": code, "reason": reason, "startedAt": known.pointer("/state/running/startedAt"),
            "finishedAt": self.at, "containerID": known["containerID"],
        })
    }

    /// The container ends with an error, and is started again unless the pod says never.
    fn fail(&self, known: &Value) -> (Value, Option<SignedDuration>) {
        let ended = self.end_of(known, 1, "Error");
        let mut status = known.clone();
        status["ready"] = json!(false);
        status["started"] = json!(false);
        if text(self.pod, "/spec/restartPolicy") == "Never" {
            status["state"] = json!({ "terminated": ended });
            return (status, None);
        }
        let restarts = u32::try_from(number(known, "/restartCount")).unwrap_or_default();
        let factor = 2_i32.checked_pow(restarts.min(10)).unwrap_or(i32::MAX);
        let pause = BACK_OFF.checked_mul(factor).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX);
        let (pod, namespace) = (name(self.pod), text(self.pod, "/metadata/namespace"));
        let message = format!(
            "back-off {}s restarting failed container={} pod={pod}_{namespace}({})",
            pause.as_secs(),
            text(self.container, "/name"),
            uid(self.pod)
        );
        status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
        status["lastState"] = json!({ "terminated": ended });
        (status, Some(pause))
    }
}

/// The phase and the conditions that follow from the containers.
fn conclude(pod: &mut Value, now: &str) {
    let statuses = list(pod, "/status/containerStatuses").to_vec();
    let ended = |status: &Value| status.pointer("/state/terminated").cloned();
    let over = !statuses.is_empty() && statuses.iter().all(|status| ended(status).is_some());
    let well = statuses.iter().filter_map(ended).all(|end| end["exitCode"] == 0);
    let started = |status: &Value| {
        status.pointer("/state/running").is_some()
            || at(status, "/lastState/terminated").is_some()
            || ended(status).is_some()
    };
    let phase = match (over, well) {
        (true, true) => "Succeeded",
        (true, false) => "Failed",
        (false, _) if statuses.iter().all(started) => "Running",
        (false, _) => "Pending",
    };
    pod["status"]["phase"] = json!(phase);
    let unready: Vec<&str> =
        statuses.iter().filter(|status| status["ready"] == false).map(|status| text(status, "/name")).collect();
    let why = match phase {
        _ if unready.is_empty() => None,
        "Succeeded" => Some(("PodCompleted", String::new())),
        "Failed" => Some(("PodFailed", String::new())),
        _ => Some(("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))),
    };
    let done = (phase == "Succeeded").then(|| ("PodCompleted", String::new()));
    set_condition(pod, now, "PodReadyToStartContainers", !over, None);
    set_condition(pod, now, "Initialized", true, done.as_ref());
    set_condition(pod, now, "Ready", unready.is_empty(), why.as_ref());
    set_condition(pod, now, "ContainersReady", unready.is_empty(), why.as_ref());
}

fn set_condition(pod: &mut Value, now: &str, kind: &str, holds: bool, why: Option<&(&str, String)>) {
    let status = if holds { "True" } else { "False" };
    let mut conditions = list(pod, "/status/conditions").to_vec();
    let known = conditions.iter().position(|condition| condition["type"] == kind);
    let same = known.filter(|index| conditions[*index]["status"] == status);
    let since = same.map_or_else(|| json!(now), |index| conditions[index]["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
        "observedGeneration": pod["metadata"]["generation"],
    });
    if let Some((reason, message)) = why {
        condition["reason"] = json!(reason);
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
    }
    match known {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    let place = |condition: &Value| CONDITIONS.iter().position(|kind| condition["type"] == *kind);
    conditions.sort_by_key(|condition| place(condition).unwrap_or(CONDITIONS.len()));
    pod["status"]["conditions"] = json!(conditions);
}

/// The conditions of a pod, in the order in which a kubelet writes them.
const CONDITIONS: [&str; 5] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
