//! The servers that are measured, as processes of their own: the broker as it is shipped, and a bare one to compare.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::Path as Parameter;
use axum::routing::get;
use http::StatusCode;

use crate::process::{Launch, Process};
use crate::waiter::Waiter;

/// Where agents ask for their target state.
pub const TARGET_STATE: &str = "/api/v1/agents/{id}/target-state";
/// The same two headers that the broker answers with.
const BARE_HEADERS: [(&str, &str); 2] =
    [("etag", "\"0000000000000000000000000000000000000000000000000000000000000000\""), ("x-sindri-epoch", "1")];
const KEY_FILE: &str = "admin.key";

/// What is measured, and where.
pub struct Bench {
    /// This program, which has the bare server too.
    pub own: PathBuf,
    /// The broker.
    pub broker: PathBuf,
    /// A directory on a real disk.
    pub disk: PathBuf,
    /// A directory where writing costs little, for data that is only made.
    pub memory: PathBuf,
    /// A PostgreSQL server whose databases may be made and dropped.
    pub postgres_url: Option<String>,
    /// Waits, and hears signals.
    pub waiter: Waiter,
}

impl Bench {
    /// Sees that nobody asked the program to end.
    pub fn go_on(&self) -> Result<(), String> {
        self.waiter.wait(std::time::Duration::ZERO, async {}).map(drop).map_err(|cut| cut.to_string())
    }

    /// A fresh directory for a server.
    pub fn place(&self, name: &str) -> Result<PathBuf, String> {
        let place = self.disk.join(name);
        std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        Ok(place)
    }

    /// The broker with its files in `place`, and its database there too if none is named.
    pub fn start_broker(&self, place: &Path, flags: &[&str]) -> Result<Server, String> {
        let database = format!("sqlite:{}", place.join("broker.db").display());
        let mut arguments: Vec<OsString> = ["--listen", "127.0.0.1:0", "--admin-key-file"].map(Into::into).into();
        arguments.push(place.join(KEY_FILE).into());
        if !flags.contains(&"--database-url") {
            arguments.extend(["--database-url", &database].map(OsString::from));
        }
        arguments.extend(flags.iter().map(OsString::from));
        let mut server = self.start("sindri-broker", &self.broker, arguments, place)?;
        let key = std::fs::read_to_string(place.join(KEY_FILE)).map_err(|error| format!("the admin key: {error}"))?;
        server.key = key.trim().to_owned();
        Ok(server)
    }

    /// A server that does nothing but answer.
    pub fn start_bare(&self) -> Result<Server, String> {
        self.start("bare server", &self.own, vec!["bare-server".into()], &self.place("bare")?)
    }

    fn start(&self, name: &str, program: &Path, arguments: Vec<OsString>, place: &Path) -> Result<Server, String> {
        let launch = Launch {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            log: place.join("log"),
        };
        let mut process = Process::start(launch).map_err(|error| error.to_string())?;
        let said = process.ready(&self.waiter).map_err(|error| error.to_string())?;
        let address = said.trim_start_matches("http://").parse();
        let address = address.map_err(|_| format!("{name} is ready at {said:?}, which is no address"))?;
        Ok(Server { process, address, key: String::new() })
    }
}

/// A server that runs. It ends when this is dropped.
pub struct Server {
    process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// The administrator's key, of a broker.
    pub key: String,
}

impl Server {
    /// Memory that it has in use, in megabytes.
    pub fn resident(&self) -> Result<f64, String> {
        resident(self.process.id().ok_or("the server has ended")?)
    }
}

/// Resident memory of a process, in megabytes.
pub fn resident(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|number| number.parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| format!("{path} has no VmRSS"))
}

/// Runs the bare server until it is killed: the same libraries and the same runtime as the broker's, and nothing to do.
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
