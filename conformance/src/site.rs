//! Where the processes of one story live: a temporary directory, and the broker, API servers and agents in it.
//!
//! Everything listens on a free port of the loopback interface. Left out: who they are to each other at the
//! broker, which whoever builds the site decides.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sindri_cluster::Sim;
use tempfile::TempDir;
use thiserror::Error;

use crate::afterwards::Afterwards;
use crate::binaries::Binaries;
use crate::process::{Launch, Process, ProcessError};
use crate::waiter::Waiter;

/// Between two polls of an agent: the shortest that it takes.
pub const POLLING_INTERVAL: Duration = Duration::from_secs(1);
/// The variable in which an agent finds its key.
pub const AGENT_KEY: &str = "SINDRI__AGENT__PAK";
/// How an agent says where it answers probes.
pub const PROBES: &str = "PROBES http://";
/// Any free port.
const LISTEN_FREE: &str = "127.0.0.1:0";

/// A site that cannot be built.
#[derive(Debug, Error)]
pub enum SiteError {
    /// A file cannot be made or read.
    #[error("{what}: {source}")]
    File {
        /// Which.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A process does not run.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// A place for processes. Drop it after them: it is their files.
pub struct Site {
    /// What removes the directory when this program is killed; it is dropped before the directory goes as usual.
    _afterwards: Afterwards,
    directory: TempDir,
    binaries: Binaries,
    waiter: Rc<Waiter>,
}

/// A running broker.
pub struct Broker {
    /// Its process.
    pub process: Process,
    /// `http://HOST:PORT`.
    pub url: String,
    /// The file with the administrator's key.
    pub key_file: PathBuf,
    /// The key.
    pub key: String,
}

impl Site {
    /// Makes the directory.
    pub fn new(binaries: Binaries, waiter: Rc<Waiter>) -> Result<Self, SiteError> {
        let directory = tempfile::Builder::new().prefix("sindri-").tempdir();
        let fault = |source| SiteError::File { what: "a temporary directory".to_owned(), source };
        let directory = directory.map_err(fault)?;
        let _afterwards = Afterwards::remove(directory.path()).map_err(fault)?;
        Ok(Self { _afterwards, directory, binaries, waiter })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The binaries.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// What waits.
    pub fn waiter(&self) -> &Waiter {
        &self.waiter
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

    /// Starts a broker with a database of its own and waits until it listens. Started again it has the same port.
    pub fn start_broker(&self) -> Result<Broker, SiteError> {
        let key_file = self.path().join("admin.key");
        let mut database = OsString::from("sqlite:");
        database.push(self.path().join("broker.db"));
        let arguments = |listen: &str| -> Vec<OsString> {
            let flags = ["--listen".into(), listen.into(), "--database-url".into(), database.clone()];
            flags.into_iter().chain(["--admin-key-file".into(), key_file.clone().into()]).collect()
        };
        let launch = self.launch("broker", &self.binaries.broker, arguments(LISTEN_FREE));
        let mut process = Process::start(launch)?;
        let url = process.ready(&self.waiter)?;
        process.set_arguments(arguments(url.trim_start_matches("http://")));
        let key = std::fs::read_to_string(&key_file)
            .map_err(|source| SiteError::File { what: key_file.display().to_string(), source })?;
        Ok(Broker { process, url, key_file, key: key.trim().to_owned() })
    }

    /// Where simulated clusters come from.
    pub fn simulated(&self) -> Sim {
        Sim::new(&self.binaries.api_server)
    }

    /// Starts the agent of a cluster; it says where it answers probes. Started again it answers elsewhere.
    pub fn start_agent(
        &self,
        name: &str,
        key: &str,
        broker: &str,
        kubeconfig: &Path,
        interval: Duration,
        namespace: Option<&str>,
    ) -> Result<Process, SiteError> {
        let interval = interval.as_secs().to_string();
        let own = ["--name", name, "--cluster", name, "--identity", name, "--broker", broker];
        let manner = ["--polling-interval", &interval, "--listen", LISTEN_FREE];
        let namespace = namespace.into_iter().flat_map(|namespace| ["--namespace", namespace]);
        let arguments = own.into_iter().chain(manner).chain(namespace).map(OsString::from);
        let arguments = arguments.chain(["--kubeconfig".into(), kubeconfig.into()]);
        let mut launch = self.launch(name, &self.binaries.agent, arguments.collect());
        launch.environment.push((AGENT_KEY, key.to_owned()));
        Ok(Process::start(launch)?)
    }
}
