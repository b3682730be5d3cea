//! The agent's process: reads flags and environment, hands in what the library is not to find by itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::{Cluster, kube_client};
use sindri_agent::{Agent, RetryPolicy, Settings};
use sindri_client::Client;
use sindri_model::{Clock, Entropy};
use tracing_subscriber::EnvFilter;

/// Keeps one cluster at the state that the broker declares for it.
#[derive(Parser)]
#[command(name = "sindri-agent", version)]
struct Flags {
    /// The name of this agent at the broker.
    #[arg(long, env = "SINDRI__AGENT__NAME")]
    name: String,
    /// The name of its cluster at the broker.
    #[arg(long, env = "SINDRI__AGENT__CLUSTER_NAME")]
    cluster: String,
    /// The broker's address, http://HOST:PORT.
    #[arg(long, env = "SINDRI__AGENT__BROKER_URL")]
    broker: http::Uri,
    /// The agent's access key; better given by the environment than on the command line.
    #[arg(long, env = "SINDRI__AGENT__PAK", hide_env_values = true)]
    key: String,
    /// The cluster's kubeconfig; without it the pod's own service account is used.
    #[arg(long, env = "SINDRI__AGENT__KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Seconds between two polls.
    #[arg(long, env = "SINDRI__AGENT__POLLING_INTERVAL", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    polling_interval: u64,
}

/// For mistakes of the user.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(flags)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sindri-agent: {message}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

async fn run(flags: Flags) -> Result<(), String> {
    let config = cluster_config(flags.kubeconfig.as_deref()).await?;
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    let client = kube_client(&config, connector.clone()).map_err(|error| error.to_string())?;
    let agent = Agent {
        broker: Client::new(connector, flags.broker, &flags.key).map_err(|error| error.to_string())?,
        cluster: Cluster::new(client, RetryPolicy::default()),
        clock: Clock::new(system_clock),
        entropy: Entropy::new(system_entropy),
        identity: flags.name.clone(),
        settings: Settings {
            polling_interval: Duration::from_secs(flags.polling_interval),
            ..Settings::new(flags.name, flags.cluster)
        },
    };
    tracing::info!("agent {} of cluster {} starts", agent.settings.name, agent.settings.cluster_name);
    agent.run(terminated()).await.map_err(|error| error.to_string())
}

async fn cluster_config(kubeconfig: Option<&std::path::Path>) -> Result<kube::Config, String> {
    let Some(path) = kubeconfig else {
        return kube::Config::incluster()
            .map_err(|error| format!("no --kubeconfig was given, and this is no pod: {error}"));
    };
    let shown = path.display();
    let parsed = kube::config::Kubeconfig::read_from(path).map_err(|error| format!("{shown}: {error}"))?;
    let options = kube::config::KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(parsed, &options).await.map_err(|error| format!("{shown}: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "main hands the system's clock in")]
fn system_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

#[expect(clippy::disallowed_methods, reason = "main hands the system's entropy in")]
fn system_entropy(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has entropy");
}

async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased; // either one ends the agent
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
