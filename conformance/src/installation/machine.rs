//! A machine that runs the pods of the charts as processes, as far as the charts need a kubelet, a network and volumes.
//!
//! A pod is started when the objects of its volumes exist, and is ready when its probe succeeds. A pod of a Job succeeds with its
//! process. Left out: images, users, network namespaces, limits of resources, restarts, and the other probes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sindri_cluster::Access;

use super::api::{Api, entries, path, text};
use super::pod::{Addresses, build_launch, has_listener};
use super::pod_files::{PodFiles, Sources};
use crate::metrics::fetch_page;
use crate::process::{Process, ProcessError};
use crate::runtime::InterruptibleRuntime;
use crate::workspace::PROBES;

/// Label of the node that the pods select. No node has it, so that no other kubelet runs them.
pub const NODE_LABEL: (&str, &str) = ("sindri.dev/machine", "processes");
/// Address with any free port.
const LISTEN_FREE: &str = "127.0.0.1:0";
const HTTP: &str = "http://";
const PROBE_MAX: Duration = Duration::from_secs(2);

/// The running pods. Dropping it ends their processes.
pub struct Machine {
    directory: PathBuf,
    programs: PathBuf,
    access: Access,
    running: BTreeMap<String, RunningPod>,
    /// Addresses by the names of pods: the pod of a StatefulSet has its name again, and its clients know its address.
    addresses: BTreeMap<String, String>,
    logs: Vec<PathBuf>,
}

struct RunningPod {
    description: Value,
    process: Process,
    /// Address of its listener; the process of a pod without one ends by itself.
    address: Option<String>,
    is_ready: bool,
}

impl Machine {
    /// Uses a directory that exists, and the programs of another one.
    pub fn new(directory: PathBuf, programs: &Path, access: Access) -> Self {
        let (running, addresses) = (BTreeMap::new(), BTreeMap::new());
        Self { directory, programs: programs.to_owned(), access, running, addresses, logs: Vec::new() }
    }

    /// Starts new pods, ends those that are deleted, and reports which are ready.
    pub fn run_pods(&mut self, runtime: &InterruptibleRuntime) -> Result<(), String> {
        let access = self.access.clone();
        let api = Api { runtime, access: &access };
        let listed = api.get(&path("pods"))?.unwrap_or_default();
        let (label, value) = NODE_LABEL;
        let is_own = |pod: &&Value| pod["spec"]["nodeSelector"][label] == value;
        let is_wanted = |pod: &&Value| is_own(pod) && pod["metadata"]["deletionTimestamp"].is_null();
        let pods = entries(&listed["items"]).filter(is_wanted);
        let pods: BTreeMap<String, &Value> = pods.map(|pod| (text(&pod["metadata"]["uid"]).to_owned(), pod)).collect();
        self.running.retain(|id, _| pods.contains_key(id));
        for (id, pod) in pods {
            let running = match self.running.remove(&id) {
                Some(running) => check(api, running)?,
                None if pod["status"]["phase"] == "Pending" => self.start(api, pod)?,
                None => None,
            };
            if let Some(running) = running {
                self.running.insert(id, running);
            }
        }
        Ok(())
    }

    /// Starts a pod; `None` while something that it needs is missing.
    fn start(&mut self, api: Api<'_>, pod: &Value) -> Result<Option<RunningPod>, String> {
        let name = text(&pod["metadata"]["name"]);
        let sources = Sources { directory: &self.directory, programs: &self.programs };
        let Some(files) = PodFiles::create(api, &sources, pod)? else { return Ok(None) };
        let log = self.directory.join(format!("{name}-{}.log", self.logs.len()));
        let resolve = |url: &str| self.resolve(api, url);
        let listen = self.addresses.get(name).map_or(LISTEN_FREE, String::as_str);
        let addresses = Addresses { listen, resolve: &resolve };
        let Some(launch) = build_launch(pod, &files, api.access, &addresses, log.clone())? else { return Ok(None) };
        let mut process = Process::start(launch).map_err(|error| error.to_string())?;
        self.logs.push(log);
        let mut address = None;
        if has_listener(pod) {
            // The agent names the address of its probes; the broker has one listener.
            let prefix = if text(&pod["spec"]["containers"][0]["name"]) == "agent" { PROBES } else { "READY http://" };
            let found = process.wait_for_line(api.runtime, prefix).map_err(|error| error.to_string())?;
            self.addresses.insert(name.to_owned(), found.clone());
            address = Some(found);
        }
        Ok(Some(RunningPod { description: pod.clone(), process, address, is_ready: false }))
    }

    /// Returns the URL of a pod behind the URL of a Service, `http://NAME:PORT`; `None` if no pod of it is ready.
    pub fn resolve(&self, api: Api<'_>, url: &str) -> Result<Option<String>, String> {
        let Some((name, port)) = url.strip_prefix(HTTP).and_then(|rest| rest.split_once(':')) else { return Ok(None) };
        let Some(service) = api.get(&path(&format!("services/{name}")))? else { return Ok(None) };
        if !entries(&service["spec"]["ports"]).any(|known| known["port"].as_u64() == port.parse().ok()) {
            return Err(format!("the Service {name} has no port {port}"));
        }
        let selector = service["spec"]["selector"].as_object().cloned().unwrap_or_default();
        let is_selected = |pod: &&RunningPod| {
            let labels = &pod.description["metadata"]["labels"];
            pod.is_ready && selector.iter().all(|(label, value)| labels[label] == *value)
        };
        let address = self.running.values().find(is_selected).and_then(|pod| pod.address.as_ref());
        Ok(address.map(|address| format!("{HTTP}{address}")))
    }

    /// Number of pods whose processes run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the output of all processes so far.
    pub fn read_logs(&self) -> Vec<String> {
        self.logs.iter().map(|log| std::fs::read_to_string(log).unwrap_or_default()).collect()
    }

    /// Returns the last lines of the running processes.
    pub fn tails(&self) -> String {
        self.running.values().map(|pod| pod.process.tail()).collect()
    }
}

/// Checks a pod, and reports that it is ready or that its process has succeeded; `None` if it has ended.
fn check(api: Api<'_>, mut pod: RunningPod) -> Result<Option<RunningPod>, String> {
    match pod.process.check() {
        Ok(()) => {}
        Err(ProcessError::Ended { status, .. }) if status.success() && pod.address.is_none() => {
            return report(api, &pod.description, "Succeeded").map(|()| None);
        }
        Err(error) => return Err(error.to_string()),
    }
    if let Some(address) = pod.address.as_ref().filter(|_| !pod.is_ready) {
        let path = text(&pod.description["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"]);
        if let Ok(Ok(_page)) = api.runtime.block_on(PROBE_MAX, fetch_page(address, path)) {
            report(api, &pod.description, "Running")?;
            pod.is_ready = true;
        }
    }
    Ok(Some(pod))
}

/// Writes the status of a pod.
fn report(api: Api<'_>, pod: &Value, phase: &str) -> Result<(), String> {
    let container = &pod["spec"]["containers"][0];
    let is_ready = phase == "Running";
    let state =
        if is_ready { json!({"running": {}}) } else { json!({"terminated": {"exitCode": 0, "reason": "Completed"}}) };
    let container = json!({
        "name": container["name"], "image": container["image"], "imageID": "", "ready": is_ready, "started": is_ready,
        "restartCount": 0, "state": state,
    });
    let value = if is_ready { "True" } else { "False" };
    let conditions = ["ContainersReady", "Ready"].map(|condition| json!({"type": condition, "status": value}));
    let status = json!({"phase": phase, "conditions": conditions, "containerStatuses": [container]});
    let name = text(&pod["metadata"]["name"]);
    api.merge(&path(&format!("pods/{name}/status")), &json!({ "status": status }))
}
