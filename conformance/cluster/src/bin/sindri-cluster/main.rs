//! `sindri-cluster`: starts, lists and ends clusters.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`].

mod build;
mod down;
mod hold;
mod status;
mod try_cluster;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{self, ExitReason};
use sindri_cluster::{
    ClusterError, ContainerProvider, Home, KindProvider, LocalProvider, Options, Provider, ProviderName, Signals,
    SimProvider, Stop, Version,
};

#[derive(Parser)]
#[command(name = "sindri-cluster", bin_name = "cargo xtask cluster", version, about = "Clusters on demand.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a cluster that keeps running, and prints its kubeconfig.
    Up(ClusterFlags),
    /// Ends a cluster that `up` started.
    Down(down::DownFlags),
    /// Lists the clusters that run.
    Status,
    /// Starts a cluster, creates a namespace in it, and ends it.
    Try {
        #[command(flatten)]
        cluster: ClusterFlags,
        #[command(flatten)]
        existing: KubeconfigFlags,
    },
    /// Builds the control plane into the cache.
    Build {
        /// Version of Kubernetes.
        #[arg(long, value_name = "VERSION", default_value_t)]
        version: Version,
    },
    /// Keeps a cluster running; started by `up`.
    #[command(hide = true)]
    Hold(ClusterFlags),
}

/// Flags of a cluster to start.
#[derive(Args, Clone)]
struct ClusterFlags {
    /// Provider: local, container, kind or sim.
    #[arg(long, value_name = "PROVIDER")]
    cluster: ProviderName,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Only an API server: no controllers, no scheduler and no node.
    #[arg(long)]
    pristine: bool,
    /// Port of the API server [default: a free one].
    #[arg(long)]
    port: Option<u16>,
    /// Keep its directory with all logs after its end.
    #[arg(long)]
    keep: bool,
    /// Name [default: the provider and a number].
    #[arg(long)]
    name: Option<String>,
}

/// Flags of an existing cluster.
#[derive(Args, Clone)]
struct KubeconfigFlags {
    /// For --cluster kubeconfig: the file [default: $KUBECONFIG].
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// For --cluster kubeconfig: the context in it.
    #[arg(long)]
    context: Option<String>,
    /// For --cluster kubeconfig: confirms that this cluster may be used.
    #[arg(long)]
    yes_use_this_cluster: bool,
}

/// Name in error messages.
const PROGRAM: &str = "sindri-cluster";

fn main() -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return program::exit_code(PROGRAM, Err(ExitReason::Failed(format!("cannot start: {error}")))),
    };
    let (home, stop) = (Home::from_env(), signals.stop());
    let done = match Cli::parse().command {
        Command::Up(flags) => up::up(&home, &flags, stop),
        Command::Down(flags) => down::down(&home, &flags, stop),
        Command::Status => status::status(&home),
        Command::Try { cluster, existing } => try_cluster::try_cluster(&home, &cluster, &existing, stop),
        Command::Build { version } => build::build(&home, version, stop),
        Command::Hold(flags) => hold::hold(&home, &flags, stop),
    };
    program::exit_code(PROGRAM, done.map_err(|error| ExitReason::from_cluster_error(&error, stop)))
}

impl ClusterFlags {
    fn options(&self, stop: &Stop) -> Options {
        Options {
            version: self.version,
            pristine: self.pristine,
            port: self.port,
            keep: self.keep,
            stop: stop.clone(),
            ..Options::default()
        }
    }

    fn provider(&self, home: &Home) -> Result<Box<dyn Provider>, ClusterError> {
        match self.cluster {
            ProviderName::Local => Ok(Box::new(LocalProvider::new(home.clone()))),
            ProviderName::Container => Ok(Box::new(ContainerProvider::new(home.clone()))),
            ProviderName::Kind => Ok(Box::new(KindProvider::default())),
            ProviderName::Sim => {
                let own = std::env::current_exe().map_err(|error| ClusterError::Usage(error.to_string()))?;
                Ok(Box::new(SimProvider::beside(&own).full()))
            }
            ProviderName::Kubeconfig => Err(ClusterError::Usage(
                "--cluster kubeconfig is an existing cluster: there is nothing to start".to_owned(),
            )),
        }
    }
}
