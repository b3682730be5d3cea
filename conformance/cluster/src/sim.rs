//! Provider `sim`: the simulated API server on a real port, either over plain HTTP without authentication and without workload
//! controllers, or as a full cluster: over TLS, with an administrator, controllers and a node on which pods run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::access::{Access, Secret};
use crate::directory::GuardedDirectory;
use crate::error::{ClusterError, Failure};
use crate::name::ProviderName;
use crate::owned_process::{OwnedProcess, ProcessEvent};
use crate::provider::{Cluster, Options, Provider};

/// Timeout of a start on an overloaded machine.
const READY_MAX: Duration = Duration::from_secs(30);
/// Displayed instead of a version of Kubernetes.
const VERSION: &str = "simulated";

/// Starts simulated API servers.
#[derive(Clone, Debug)]
pub struct SimProvider {
    program: PathBuf,
    full: bool,
}

impl SimProvider {
    /// Uses this binary of `sindri-apiserver`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), full: false }
    }

    /// Starts full clusters: over TLS, with an administrator, controllers and a node.
    #[must_use]
    pub fn full(self) -> Self {
        Self { full: true, ..self }
    }

    /// Uses the binary next to this program, where cargo puts all binaries of a build.
    pub fn beside(own: &Path) -> Self {
        Self::new(own.with_file_name("sindri-apiserver"))
    }
}

impl Provider for SimProvider {
    fn name(&self) -> ProviderName {
        ProviderName::Sim
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        if !self.program.is_file() {
            return Err(ClusterError::Unavailable {
                provider: ProviderName::Sim,
                missing: format!("{} does not exist", self.program.display()),
                advice: "build it with `cargo build --release -p sindri-apiserver`".to_owned(),
            });
        }
        let directory = GuardedDirectory::new(options)?;
        let kubeconfig = directory.path().join("kubeconfig");
        let port = options.port.unwrap_or(0).to_string();
        let mut arguments: Vec<std::ffi::OsString> =
            ["serve", "--port", &port, "--kubeconfig"].map(Into::into).to_vec();
        arguments.push(kubeconfig.clone().into());
        let full = self.full || options.runs_pods;
        if full {
            arguments.extend(["--cert-dir".into(), directory.path().into()]);
        } else {
            arguments.extend(["--plain-http", "--without-workloads", "--nodes=0"].map(Into::into));
        }
        let started =
            OwnedProcess::start(&mut OwnedProcess::guarded_command(self.program.as_os_str(), &arguments, None));
        let mut program = started.map_err(|error| ClusterError::from_io(&self.program, &error))?;
        let server = wait_for_address(&mut program, options)?;
        let file = |name: &str| {
            let path = directory.path().join(name);
            let read = std::fs::read_to_string(&path).map_err(|error| ClusterError::from_io(&path, &error));
            full.then_some(read).transpose()
        };
        let access = Access {
            server,
            authority_pem: file("ca.crt")?,
            token: file("token")?.map(Secret::new),
            client_certificate: None,
            kubeconfig,
            context: None,
        };
        Ok(Box::new(SimCluster { program, access, _directory: directory }))
    }
}

/// A running server. Fields are dropped in this order: the process ends before its directory is removed.
struct SimCluster {
    program: OwnedProcess,
    access: Access,
    _directory: GuardedDirectory,
}

impl Cluster for SimCluster {
    fn access(&self) -> &Access {
        &self.access
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn check(&mut self) -> Result<(), ClusterError> {
        if self.program.is_running() { Ok(()) } else { Err(ended("it ended unexpectedly".to_owned(), Vec::new())) }
    }

    fn processes(&self) -> Vec<(String, u32)> {
        let guard = self.program.id();
        let started = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap_or_default();
        let started =
            started.split_whitespace().filter_map(|id| Some(("sindri-apiserver".to_owned(), id.parse().ok()?)));
        std::iter::once(("guard".to_owned(), guard)).chain(started).collect()
    }
}

fn wait_for_address(program: &mut OwnedProcess, options: &Options) -> Result<String, ClusterError> {
    let mut output = Vec::new();
    loop {
        match program.next_event(READY_MAX, &options.stop)? {
            ProcessEvent::Line(line) => match line.strip_prefix("READY ") {
                Some(address) => return Ok(address.to_owned()),
                None => output.push(line),
            },
            ProcessEvent::Ended(status) => return Err(ended(format!("it ended unexpectedly: {status}"), output)),
            ProcessEvent::Timeout => return Err(ClusterError::timed_out("the simulated API server", READY_MAX)),
        }
    }
}

fn ended(reason: String, tail: Vec<String>) -> ClusterError {
    let taken = tail.iter().any(|line| line.contains("cannot listen"));
    let advice = if taken { "choose another port, or none to get a free one" } else { "read its output" };
    let process = Some("sindri-apiserver".to_owned());
    ClusterError::Failed(Failure { process, reason, tail, advice: advice.to_owned() })
}
