//! The measured servers, as processes of their own: the broker's binary, and a bare server as the baseline.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use axum::Router;
use axum::extract::Path as Parameter;
use axum::routing::get;
use http::StatusCode;
use sindri_conformance::process::{Launch, Process};
use sindri_conformance::runtime::InterruptibleRuntime;

use crate::process_memory::{peak, resident};

/// Path of an agent's target state.
pub const TARGET_STATE: &str = "/api/v1/agents/{id}/target-state";
/// The headers of the broker's response to an idle poll.
const BARE_HEADERS: [(&str, &str); 2] =
    [("etag", "\"0000000000000000000000000000000000000000000000000000000000000000\""), ("x-sindri-epoch", "1")];
const KEY_FILE: &str = "admin.key";

/// Programs, directories and servers of a benchmark.
pub struct Bench {
    /// This program, which contains the bare server.
    pub own: PathBuf,
    /// Binary of the broker.
    pub broker: PathBuf,
    /// Directory on a real disk.
    pub disk: PathBuf,
    /// Directory in memory, for preparing data.
    pub memory: PathBuf,
    /// PostgreSQL server where databases may be created and dropped.
    pub postgres_url: Option<String>,
    /// Runs futures, and listens for signals.
    pub runtime: Rc<InterruptibleRuntime>,
}

impl Bench {
    /// Returns an error if a signal has arrived.
    pub fn check_interrupt(&self) -> Result<(), String> {
        self.runtime.block_on(std::time::Duration::ZERO, async {}).map(drop).map_err(|error| error.to_string())
    }

    /// Creates a directory for a server.
    pub fn create_directory(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.disk.join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    }

    /// Starts a broker with its files in `directory`, and with its database there unless the flags name one.
    pub fn start_broker(&self, directory: &Path, flags: &[&str]) -> Result<Server, String> {
        let database = format!("sqlite:{}", directory.join("broker.db").display());
        let mut arguments: Vec<OsString> = ["--listen", "127.0.0.1:0", "--admin-key-file"].map(Into::into).into();
        arguments.push(directory.join(KEY_FILE).into());
        if !flags.contains(&"--database-url") {
            arguments.extend(["--database-url", &database].map(OsString::from));
        }
        // All agents of a benchmark have the same address.
        arguments.extend(["--limits-connections-per-peer", "16384"].map(OsString::from));
        arguments.extend(flags.iter().map(OsString::from));
        let mut server = self.start("sindri-broker", &self.broker, arguments, directory)?;
        let key =
            std::fs::read_to_string(directory.join(KEY_FILE)).map_err(|error| format!("the admin key: {error}"))?;
        server.key = key.trim().to_owned();
        Ok(server)
    }

    /// Starts the bare server.
    pub fn start_bare(&self) -> Result<Server, String> {
        self.start("bare server", &self.own, vec!["bare-server".into()], &self.create_directory("bare")?)
    }

    fn start(&self, name: &str, program: &Path, arguments: Vec<OsString>, directory: &Path) -> Result<Server, String> {
        let launch = Launch {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            log: directory.join("log"),
        };
        let mut process = Process::start(launch).map_err(|error| error.to_string())?;
        let announced = process.wait_until_ready(&self.runtime).map_err(|error| error.to_string())?;
        let address = announced.trim_start_matches("http://").parse();
        let address = address.map_err(|_| format!("{name} is ready at {announced:?}, which is no address"))?;
        Ok(Server { process, address, key: String::new() })
    }
}

/// A running server. It ends when this is dropped.
pub struct Server {
    process: Process,
    /// Address of its listener.
    pub address: SocketAddr,
    /// Administrator's key; empty for the bare server.
    pub key: String,
}

impl Server {
    /// Largest resident memory so far, in megabytes.
    pub fn peak(&self) -> Result<f64, String> {
        peak(self.process.id().ok_or("the server has ended")?)
    }

    /// Resident memory in megabytes.
    pub fn resident(&self) -> Result<f64, String> {
        resident(self.process.id().ok_or("the server has ended")?)
    }
}

/// Runs the bare server until it is killed: the broker's HTTP library and runtime with a constant response.
pub fn serve_bare() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("READY http://{}", listener.local_addr()?);
        axum::serve(listener, Router::new().route(TARGET_STATE, get(unchanged))).await
    })
}

async fn unchanged(Parameter(_agent): Parameter<String>) -> (StatusCode, [(&'static str, &'static str); 2]) {
    (StatusCode::NOT_MODIFIED, BARE_HEADERS)
}
