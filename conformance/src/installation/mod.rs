//! The charts of `deploy/` on a cluster: helm installs them, and their pods run as processes of this machine.
//!
//! `helm --wait` waits for processes that are really ready. They have the environment, the volumes and the tokens of their pods
//! and nothing else: no kubeconfig, and of the files of this machine only system libraries and programs. Addresses are replaced,
//! because pods have networks of their own.

mod api;
mod helm;
mod machine;
mod pod;
mod pod_files;

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use sindri_client::{Client, ClientError};
use sindri_cluster::Cluster;
use sindri_model::wire::{AgentStatus, CreateAgentRequest, NewGenerator, UpdateAgentRequest};
use sindri_model::{AgentId, GeneratorId};
use tokio::time::Instant;

use crate::workspace::Workspace;
use helm::Helm;
use machine::{Machine, NODE_LABEL};

pub use api::{Api, NAMESPACE, entries, path, text};

/// Name of the chart of the broker, and of its release.
pub const BROKER: &str = "sindri-broker";
/// Name of the chart of the agent, and of its release.
pub const AGENT: &str = "sindri-agent";
/// Name of the agent and of its cluster: the default values of the chart.
const AGENT_NAME: &str = "local";
/// URL of the broker in the default values of the chart of the agent.
const BROKER_URL: &str = "http://sindri-broker:3000";
/// Timeout of a run of helm, and of each other wait.
const HELM_MAX: Duration = Duration::from_secs(180);
const WAIT_MAX: Duration = Duration::from_secs(120);
const CALL_MAX: Duration = Duration::from_secs(30);
/// Time between two looks at the pods.
const INTERVAL: Duration = Duration::from_millis(100);

/// A cluster with the charts. Fields are dropped in this order: processes end before the cluster, files are removed last.
pub struct Installation {
    machine: Machine,
    helm: Helm,
    cluster: Box<dyn Cluster>,
    workspace: Workspace,
}

/// The agent as the broker knows it, and the keys.
pub struct Registration {
    /// Key of the administrator, from the Secret of the broker.
    pub administrator_key: String,
    /// Key of the agent.
    pub agent_key: String,
    /// Id of the agent.
    pub agent: AgentId,
    /// Generator of stacks.
    pub generator: GeneratorId,
}

impl Installation {
    /// Uses an empty cluster and the program `helm`.
    pub fn new(workspace: Workspace, cluster: Box<dyn Cluster>, helm: &Path) -> Result<Self, String> {
        let create = |name: &str| -> Result<PathBuf, String> {
            let directory = workspace.path().join(name);
            std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            Ok(directory)
        };
        let programs = workspace.binaries().broker.parent().unwrap_or(Path::new("/"));
        let machine = Machine::new(create("machine")?, programs, cluster.access().clone());
        let helm = Helm::new(helm, create("helm")?, &cluster.access().kubeconfig);
        Ok(Self { machine, helm, cluster, workspace })
    }

    /// Client of the API server.
    pub fn api(&self) -> Api<'_> {
        Api { runtime: self.workspace.runtime(), access: self.cluster.access() }
    }

    /// Installs a chart with these flags, and waits until its pods are ready.
    pub fn install(&mut self, chart: &str, flags: &[&str]) -> Result<String, String> {
        self.change(&["install", "--create-namespace"], chart, flags)
    }

    /// Upgrades the release of a chart, and waits until its pods are ready.
    pub fn upgrade(&mut self, chart: &str, flags: &[&str]) -> Result<String, String> {
        self.change(&["upgrade"], chart, flags)
    }

    fn change(&mut self, verb: &[&str], chart: &str, flags: &[&str]) -> Result<String, String> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/charts").join(chart);
        let directory = directory.to_string_lossy().into_owned();
        let selector = format!("nodeSelector={}", json!({NODE_LABEL.0: NODE_LABEL.1}));
        let fixed = ["--wait", "--set-json", &selector, chart, &directory];
        self.run_helm(&[verb, &fixed, flags].concat())
    }

    /// Runs helm to its end and returns its output. Meanwhile pods run.
    pub fn run_helm(&mut self, arguments: &[&str]) -> Result<String, String> {
        let mut run = self.helm.start(arguments)?;
        let what = format!("helm {}", arguments.join(" "));
        let result = self.run_until(HELM_MAX, &what, |_| run.result());
        result.map_err(|reason| format!("{reason}\n{}", self.machine.tails()))
    }

    /// Runs pods until a check returns a value.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        check: impl FnMut(&Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        self.run_until(WAIT_MAX, what, check)
    }

    fn run_until<T>(
        &mut self,
        within: Duration,
        what: &str,
        mut check: impl FnMut(&Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let began = Instant::now();
        loop {
            self.machine.run_pods(self.workspace.runtime())?;
            self.cluster.check().map_err(|error| error.to_string())?;
            if let Some(result) = check(self)? {
                return Ok(result);
            }
            if began.elapsed() > within {
                let tails = self.machine.tails();
                return Err(format!("waited {within:?} for {what}\n{tails}"));
            }
            self.workspace.runtime().sleep(INTERVAL).map_err(|error| error.to_string())?;
        }
    }

    /// Calls the broker with a key, over its Service.
    pub fn call_broker<T>(
        &self,
        key: &str,
        call: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
    ) -> Result<T, String> {
        let url = self.machine.resolve(self.api(), BROKER_URL)?.ok_or("the broker is not ready")?;
        let url = url.parse().map_err(|_| format!("{url} is no URL"))?;
        // A client of its own: a connection must not outlive the `block_on` that drives it.
        let client = Client::new(HttpConnector::new(), url, key).map_err(|error| error.to_string())?;
        let called = self.workspace.runtime().block_on(CALL_MAX, call(&client)).map_err(|error| error.to_string())?;
        called.map_err(|error| error.to_string())
    }

    /// Reads a key of a Secret.
    pub fn read_secret(&self, name: &str, key: &str) -> Result<String, String> {
        let secret = self.api().get(&path(&format!("secrets/{name}")))?;
        let secret = secret.ok_or_else(|| format!("there is no Secret {name}"))?;
        let decoded = STANDARD.decode(text(&secret["data"][key])).map_err(|error| format!("Secret {name}: {error}"))?;
        String::from_utf8(decoded).map_err(|_| format!("Secret {name}: {key} is not text"))
    }

    /// Creates the agent of the chart's default values at the broker, activates it, and creates the Secret with its key.
    pub fn register_agent(&self) -> Result<Registration, String> {
        let administrator_key = self.read_secret("sindri-broker-keys", "admin-key")?.trim().to_owned();
        let (created, generator) = self.call_broker(&administrator_key, async |client: &Client| {
            let generator = NewGenerator { name: AGENT_NAME.to_owned(), description: None, key_expires_at: None };
            let generator = client.create_generator(&generator).await?.generator.id;
            let (name, cluster_name) = (AGENT_NAME.to_owned(), AGENT_NAME.to_owned());
            let generator_ids = Some(vec![generator]);
            let request = CreateAgentRequest { name, cluster_name, generator_ids, key_expires_at: None };
            let created = client.create_agent(&request).await?;
            let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
            client.update_agent(created.agent.id, &active).await?;
            Ok((created, generator))
        })?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sindri-agent-key"},
            "data": {"pak": STANDARD.encode(&created.initial_pak)},
        });
        self.api().create(&path("secrets"), &secret)?;
        Ok(Registration { administrator_key, agent_key: created.initial_pak, agent: created.agent.id, generator })
    }

    /// Lists the objects of a resource in the namespace of the charts, such as `/apis/apps/v1` and `deployments`.
    pub fn list(&self, group: &str, resource: &str) -> Result<Vec<Value>, String> {
        let listed = self.api().get(&format!("{group}/namespaces/{NAMESPACE}/{resource}"))?.unwrap_or_default();
        Ok(entries(&listed["items"]).cloned().collect())
    }

    /// Number of pods whose processes run.
    pub fn running_pods(&self) -> usize {
        self.machine.running()
    }

    /// Returns everything that helm and the processes have printed.
    pub fn read_output(&self) -> Vec<String> {
        [self.helm.read_outputs(), self.machine.read_logs()].concat()
    }
}
