//! The agent as a process: settings, entropy, sockets, signals. Everything else is in the library.

mod process;

use std::convert::Infallible;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::{Cluster, ConnectError, sender};
use sindri_agent::{Agent, AgentError, Probes, RetryPolicy};
use sindri_model::{Clock, Entropy};
use sindri_process::{Begun, Config, ConfigError, Signals, begin, logs};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use process::settings;
use process::setup::{self, HandedError};

/// For mistakes of the user.
const EXIT_USAGE: u8 = 2;

/// A pass is many small allocations, most of them short-lived.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The agent cannot start, or must not go on.
#[derive(Debug, Error)]
enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Handed(#[from] HandedError),
    #[error(transparent)]
    Cluster(#[from] ConnectError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

/// What the process is asked to do.
enum Task {
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
    let (config, command) = match begin(&settings::PROGRAM, std::env::args_os(), std::env::vars_os())? {
        Begun::Said(text) => {
            print!("{text}");
            return Ok(());
        }
        Begun::Run { config, command } => (config, command),
    };
    let task = match command.as_ref().map(|(name, _)| name.as_str()) {
        Some(settings::PLAN) => Task::Plan,
        Some(settings::ORPHANS) => Task::Orphans,
        // There is no other command.
        Some(_) | None => Task::Run,
    };
    // The agent serves no requests whose name its lines could carry.
    logs::begin(config.text(&settings::LOG_FORM), config.text(&settings::LOG_LEVEL), || None);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match task {
        Task::Run => runtime.block_on(run(&config)),
        Task::Plan => runtime.block_on(plan(&config)),
        Task::Orphans => runtime.block_on(orphans(&config)),
    }
}

async fn plan(config: &Config) -> Result<(), StartError> {
    print!("{}", agent(config).await?.preview().await?);
    Ok(())
}

async fn orphans(config: &Config) -> Result<(), StartError> {
    let lines = agent(config).await?.orphans().await?;
    lines.iter().for_each(|line| println!("{line}"));
    eprintln!("{} objects carry the agent's marks and belong to no stack of it", lines.len());
    Ok(())
}

async fn run(config: &Config) -> Result<(), StartError> {
    // First: a signal that comes while it starts is heard too.
    let signals = Signals::listen()?;
    let agent = agent(config).await?;
    let listener = listen(config).await?;
    let probes = Probes {
        metrics: agent.metrics.clone(),
        readiness: agent.readiness.clone(),
        polling_interval: agent.settings.polling_interval,
    };
    tracing::info!("agent {} of cluster {} starts", agent.settings.name, agent.settings.cluster_name);
    tokio::select! {
        biased; // The agent ends the process; answering probes never does.
        ended = agent.run(signals.end()) => Ok(ended?),
        never = answer(&probes, listener) => match never {},
    }
}

async fn agent(config: &Config) -> Result<Agent, StartError> {
    let settings = setup::settings(config)?;
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    // The end of what is longer than a packet would otherwise wait until the peer confirms the beginning, up to 40 ms.
    connector.set_nodelay(true);
    let broker = setup::broker(config, connector.clone())?;
    let sender = sender(&setup::cluster(config).await?, connector)?;
    let metrics = Arc::default();
    Ok(Agent {
        broker,
        cluster: Cluster::new(sender, RetryPolicy::default())
            .counted(Arc::clone(&metrics))
            .within(settings.namespace.clone()),
        clock: Clock::new(system_clock),
        entropy: Entropy::new(system_entropy),
        identity: identity(config),
        settings,
        metrics,
        readiness: Arc::default(),
    })
}

/// Where probes come in, if anywhere; whoever started this process is told the address, which may have had no port.
async fn listen(config: &Config) -> Result<Option<TcpListener>, StartError> {
    let address = config.text(&settings::LISTEN);
    if address.is_empty() {
        return Ok(None);
    }
    let fault = |source| StartError::Listen { address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(fault)?;
    println!("PROBES http://{}", listener.local_addr().map_err(fault)?);
    io::stdout().flush()?;
    Ok(Some(listener))
}

async fn answer(probes: &Probes, listener: Option<TcpListener>) -> Infallible {
    match listener {
        Some(listener) => probes.serve(listener).await,
        None => std::future::pending().await,
    }
}

/// A pod keeps its name when it is started again. Any other process is one of its own.
fn identity(config: &Config) -> String {
    let variable = |name: &str| std::env::vars().find(|(known, _)| known == name).map(|(_, value)| value);
    let host = variable("HOSTNAME").unwrap_or_else(|| "localhost".to_owned());
    match config.get(&settings::IDENTITY) {
        Some(identity) => identity.to_owned(),
        None if variable("KUBERNETES_SERVICE_HOST").is_some() => host,
        None => format!("{host}-{}", std::process::id()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the process owns the clock and hands it in")]
fn system_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy and hands it in")]
fn system_entropy(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has entropy");
}
