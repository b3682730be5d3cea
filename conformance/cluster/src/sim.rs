//! `sim`: the simulated API server on a real port: either plain, without controllers that make pods, where nobody is asked
//! who he is, or as a cluster is, over TLS, for one administrator, with a node on which pods run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::access::{Access, Secret};
use crate::directory::GuardedDirectory;
use crate::error::{ClusterError, Failure};
use crate::leashed::{Heard, Leashed};
use crate::name::ProviderName;
use crate::provider::{Cluster, Options, Provider};

/// How long it may take until it listens, on a machine that is busy.
const READY_MAX: Duration = Duration::from_secs(30);
/// The version of Kubernetes that it says it is.
const VERSION: &str = "simulated";

/// Starts simulated API servers.
#[derive(Clone, Debug)]
pub struct Sim {
    program: PathBuf,
    whole: bool,
}

impl Sim {
    /// With this program, which is `sindri-apiserver`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), whole: false }
    }

    /// The same as a whole cluster: over TLS, with an administrator, controllers and a node.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// With the program that is next to the one that runs, where one build puts them all.
    pub fn beside(own: &Path) -> Self {
        Self::new(own.with_file_name("sindri-apiserver"))
    }
}

impl Provider for Sim {
    fn name(&self) -> ProviderName {
        ProviderName::Sim
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        if !self.program.is_file() {
            return Err(ClusterError::Unavailable {
                provider: ProviderName::Sim,
                missing: format!("{} is not there", self.program.display()),
                advice: "build it with `cargo build --release -p sindri-apiserver`".to_owned(),
            });
        }
        let directory = GuardedDirectory::new(options)?;
        let kubeconfig = directory.path().join("kubeconfig");
        let port = options.port.unwrap_or(0).to_string();
        let mut arguments: Vec<std::ffi::OsString> =
            ["serve", "--port", &port, "--kubeconfig"].map(Into::into).to_vec();
        arguments.push(kubeconfig.clone().into());
        if self.whole {
            arguments.extend(["--cert-dir".into(), directory.path().into()]);
        } else {
            arguments.extend(["--plain-http", "--without-workloads", "--nodes=0"].map(Into::into));
        }
        let started = Leashed::start(&mut Leashed::guarded(self.program.as_os_str(), &arguments, None));
        let mut program = started.map_err(|error| ClusterError::file(&self.program, &error))?;
        let server = await_address(&mut program, options)?;
        let file = |name: &str| {
            let path = directory.path().join(name);
            let read = std::fs::read_to_string(&path).map_err(|error| ClusterError::file(&path, &error));
            self.whole.then_some(read).transpose()
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

/// Fields are dropped in this order: the process ends before its directory goes.
struct SimCluster {
    program: Leashed,
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
        if self.program.runs() { Ok(()) } else { Err(ended("it ended by itself".to_owned(), Vec::new())) }
    }

    fn processes(&self) -> Vec<(String, u32)> {
        let guard = self.program.id();
        let started = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap_or_default();
        let started =
            started.split_whitespace().filter_map(|id| Some(("sindri-apiserver".to_owned(), id.parse().ok()?)));
        std::iter::once(("guard".to_owned(), guard)).chain(started).collect()
    }
}

fn await_address(program: &mut Leashed, options: &Options) -> Result<String, ClusterError> {
    let mut said = Vec::new();
    loop {
        match program.hear(READY_MAX, &options.stop)? {
            Heard::Line(line) => match line.strip_prefix("READY ") {
                Some(address) => return Ok(address.to_owned()),
                None => said.push(line),
            },
            Heard::Ended(status) => return Err(ended(format!("it ended by itself: {status}"), said)),
            Heard::Nothing => return Err(ClusterError::late("the simulated API server", READY_MAX)),
        }
    }
}

fn ended(reason: String, tail: Vec<String>) -> ClusterError {
    let taken = tail.iter().any(|line| line.contains("cannot listen"));
    let advice = if taken { "choose another port, or none to get a free one" } else { "see what it says" };
    let process = Some("sindri-apiserver".to_owned());
    ClusterError::Failed(Failure { process, reason, tail, advice: advice.to_owned() })
}
