//! Temporary directory of the processes of one scenario, and the start of brokers, API servers and agents in it.
//!
//! Everything listens on a free port of the loopback interface. Left out: the registration of agents at the broker.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sindri_cluster::SimProvider;
use tempfile::TempDir;
use thiserror::Error;

use crate::binaries::Binaries;
use crate::orphan_cleanup::OrphanCleanup;
use crate::process::{Launch, Process, ProcessError};
use crate::runtime::InterruptibleRuntime;

/// Polling interval of agents: the shortest that they accept.
pub const POLLING_INTERVAL: Duration = Duration::from_secs(1);
/// Environment variable with an agent's key.
pub const AGENT_KEY: &str = "SINDRI__AGENT__PAK";
/// Prefix of the line with the address of an agent's probes and metrics.
pub const PROBES: &str = "PROBES http://";
/// Address with any free port.
const LISTEN_FREE: &str = "127.0.0.1:0";

/// Failure to create a workspace or to start a process in it.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// A file cannot be created or read.
    #[error("{path}: {source}")]
    File {
        /// Path or description.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A process failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Directory of processes. It must be dropped after them, because it has their files.
pub struct Workspace {
    /// Removes the directory if this program is killed. Dropped before the directory, so that it does nothing otherwise.
    _cleanup: OrphanCleanup,
    directory: TempDir,
    binaries: Binaries,
    runtime: Rc<InterruptibleRuntime>,
}

/// A running broker.
pub struct Broker {
    /// Process.
    pub process: Process,
    /// `http://HOST:PORT`.
    pub url: String,
    /// File with the administrator's key.
    pub key_file: PathBuf,
    /// Administrator's key.
    pub key: String,
}

impl Workspace {
    /// Creates the directory.
    pub fn new(binaries: Binaries, runtime: Rc<InterruptibleRuntime>) -> Result<Self, WorkspaceError> {
        let directory = tempfile::Builder::new().prefix("sindri-").tempdir();
        let fault = |source| WorkspaceError::File { path: "a temporary directory".to_owned(), source };
        let directory = directory.map_err(fault)?;
        let _cleanup = OrphanCleanup::remove_directory(directory.path()).map_err(fault)?;
        Ok(Self { _cleanup, directory, binaries, runtime })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Binaries of the system.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Runtime of the program.
    pub fn runtime(&self) -> &InterruptibleRuntime {
        &self.runtime
    }

    fn launch(&self, name: &str, program: &Path, arguments: Vec<OsString>) -> Launch {
        Launch {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            log: self.path().join(format!("{name}.log")),
        }
    }

    /// Starts a broker with a new database and waits until it listens. After a restart it has the same port.
    pub fn start_broker(&self) -> Result<Broker, WorkspaceError> {
        let key_file = self.path().join("admin.key");
        let mut database = OsString::from("sqlite:");
        database.push(self.path().join("broker.db"));
        let arguments = |listen: &str| -> Vec<OsString> {
            let flags = ["--listen".into(), listen.into(), "--database-url".into(), database.clone()];
            flags.into_iter().chain(["--admin-key-file".into(), key_file.clone().into()]).collect()
        };
        let launch = self.launch("broker", &self.binaries.broker, arguments(LISTEN_FREE));
        let mut process = Process::start(launch)?;
        let url = process.wait_until_ready(&self.runtime)?;
        process.set_arguments(arguments(url.trim_start_matches("http://")));
        let key = std::fs::read_to_string(&key_file)
            .map_err(|source| WorkspaceError::File { path: key_file.display().to_string(), source })?;
        Ok(Broker { process, url, key_file, key: key.trim().to_owned() })
    }

    /// Provider of simulated clusters.
    pub fn sim_provider(&self) -> SimProvider {
        SimProvider::new(&self.binaries.api_server)
    }

    /// Starts the agent of a cluster, with further arguments. It prints the address of its probes, which is another one after a
    /// restart.
    pub fn start_agent(
        &self,
        name: &str,
        key: &str,
        broker: &str,
        kubeconfig: &Path,
        interval: Duration,
        more: &[String],
    ) -> Result<Process, WorkspaceError> {
        let interval = interval.as_secs().to_string();
        let identity = ["--name", name, "--cluster", name, "--identity", name, "--broker", broker];
        let options = ["--polling-interval", &interval, "--listen", LISTEN_FREE];
        let arguments = identity.into_iter().chain(options).chain(more.iter().map(String::as_str)).map(OsString::from);
        let arguments = arguments.chain(["--kubeconfig".into(), kubeconfig.into()]);
        let mut launch = self.launch(name, &self.binaries.agent, arguments.collect());
        launch.environment.push((AGENT_KEY, key.to_owned()));
        Ok(Process::start(launch)?)
    }
}
