//! The agent's process: settings, clock, entropy, sockets and signals. Everything else is in the library.

mod process;

use std::convert::Infallible;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::{Cluster, ConnectError, UNACKNOWLEDGED_MAX, sender};
use sindri_agent::{Agent, AgentError, Probes, RetryPolicy, list_orphans, preview_passes};
use sindri_model::{Clock, Entropy};
use sindri_process::{Config, ConfigError, Signals, Startup, TraceExport, TraceExportError, logs};
use sindri_traces::with_request_id;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use process::access_key::KeyFile;
use process::settings;
use process::setup::{self, SetupError};

/// Exit code for errors in the settings and at the start.
const EXIT_USAGE: u8 = 2;

/// A pass makes many small, short-lived allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Reason why the agent cannot start or continue.
#[derive(Debug, Error)]
enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Traces(#[from] TraceExportError),
    #[error(transparent)]
    Cluster(#[from] ConnectError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

/// Command of the process.
enum Command {
    Run,
    Plan,
    Orphans,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sindri-agent: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn start() -> Result<(), StartError> {
    let (config, command) = match Startup::read(&settings::PROGRAM, std::env::args_os(), std::env::vars_os())? {
        Startup::Print(text) => {
            print!("{text}");
            return Ok(());
        }
        Startup::Run { config, command } => (config, command),
    };
    let command = match command.as_ref().map(|(name, _)| name.as_str()) {
        Some(settings::PLAN) => Command::Plan,
        Some(settings::ORPHANS) => Command::Orphans,
        // The program has no other command.
        Some(_) | None => Command::Run,
    };
    // Log lines of a pass have the id of the request that submitted the revision.
    let request_id = || with_request_id(|id| id.map(str::to_owned));
    let start_export = |endpoint| TraceExport::start(endpoint, settings::PROGRAM.name, settings::PROGRAM.version);
    let traces = config.get(&settings::OTLP_ENDPOINT).map(start_export).transpose()?;
    logs::init(config.text(&settings::LOG_FORM), config.text(&settings::LOG_LEVEL), request_id, traces.as_ref());
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let result = match command {
        Command::Run => runtime.block_on(run(&config)),
        Command::Plan => runtime.block_on(print_plan(&config)),
        Command::Orphans => runtime.block_on(print_orphans(&config)),
    };
    traces.into_iter().for_each(TraceExport::end);
    result
}

async fn print_plan(config: &Config) -> Result<(), StartError> {
    print!("{}", preview_passes(&build_agent(config).await?).await?);
    Ok(())
}

async fn print_orphans(config: &Config) -> Result<(), StartError> {
    let lines = list_orphans(&build_agent(config).await?).await?;
    lines.iter().for_each(|line| println!("{line}"));
    eprintln!("{} objects have ownership annotations of stacks that are not in the target state", lines.len());
    Ok(())
}

async fn run(config: &Config) -> Result<(), StartError> {
    // First, so that a signal during the start is not lost.
    let signals = Signals::listen()?;
    let agent = build_agent(config).await?;
    let listener = listen(config).await?;
    let probes = Probes {
        metrics: agent.metrics.clone(),
        readiness: agent.readiness.clone(),
        polling_interval: agent.settings.polling_interval,
        agent: agent.settings.name.clone(),
    };
    let key_file = KeyFile::new(config, agent.broker.clone(), agent.settings.polling_interval);
    tracing::info!("agent {} of cluster {} starts", agent.settings.name, agent.settings.cluster_name);
    tokio::select! {
        biased; // the agent ends the process; the probes never end
        ended = agent.run(signals.end()) => Ok(ended?),
        never = serve_probes(&probes, listener) => match never {},
        never = key_file.watch() => match never {},
    }
}

async fn build_agent(config: &Config) -> Result<Agent, StartError> {
    let settings = setup::read_settings(config)?;
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    // Without it the last part of a message longer than a packet may be delayed by up to 40 ms.
    connector.set_nodelay(true);
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    let broker = setup::build_broker_client(config, connector.clone())?;
    let sender = sender(&setup::read_cluster_config(config).await?, connector)?;
    let metrics = Arc::default();
    let entropy = Entropy::new(system_entropy);
    Ok(Agent {
        broker,
        cluster: Cluster::new(sender, RetryPolicy::default())
            .with_metrics(Arc::clone(&metrics))
            .with_namespace_scope(settings.namespace.clone())
            .with_reserved_namespaces(settings.reserved_namespaces.clone()),
        clock: Clock::new(system_clock),
        identity: identity(config, &entropy),
        entropy,
        settings,
        metrics,
        readiness: Arc::default(),
    })
}

/// Opens the listener of the probes, if one is set, and prints its address: the port may have been chosen by the system.
async fn listen(config: &Config) -> Result<Option<TcpListener>, StartError> {
    let address = config.text(&settings::LISTEN);
    if address.is_empty() {
        return Ok(None);
    }
    let to_error = |source| StartError::Listen { address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(to_error)?;
    println!("PROBES http://{}", listener.local_addr().map_err(to_error)?);
    io::stdout().flush()?;
    Ok(Some(listener))
}

async fn serve_probes(probes: &Probes, listener: Option<TcpListener>) -> Infallible {
    match listener {
        Some(listener) => probes.serve(listener).await,
        None => std::future::pending().await,
    }
}

/// File with the host name of the kernel; in a pod it is the name of the pod, unless that uses the network of its node.
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// Returns the name of this process for leader election. No other process has the same one: it would take the Lease of this one
/// for its own. The names of machines and pods, and process ids, are repeated.
fn identity(config: &Config, entropy: &Entropy) -> String {
    config.get(&settings::IDENTITY).map_or_else(|| create_identity(entropy), str::to_owned)
}

fn create_identity(entropy: &Entropy) -> String {
    let host = std::fs::read_to_string(HOST_NAME_FILE).unwrap_or_default();
    let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
    format!("{host}-{}-{:016x}", std::process::id(), u64::from_be_bytes(entropy.bytes()))
}

#[expect(clippy::disallowed_methods, reason = "the process owns the clock and passes it in")]
fn system_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy and passes it in")]
fn system_entropy(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has entropy");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_with_the_same_id_on_machines_of_the_same_name_have_different_identities() {
        let entropy = Entropy::new(system_entropy);
        let [one, other] = [create_identity(&entropy), create_identity(&entropy)];
        assert_ne!(one, other);
        let same = format!("-{}-", std::process::id());
        assert!(one.contains(&same) && other.contains(&same), "{one} {other}");
    }
}
