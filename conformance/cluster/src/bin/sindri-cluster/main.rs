//! `sindri-cluster`: starts, lists and ends clusters for people.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`].

mod build;
mod down;
mod hold;
mod status;
mod try_out;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{self, Ending};
use sindri_cluster::{
    ClusterError, Container, Home, Kind, Local, Options, Provider, ProviderName, Signals, Sim, Stop, Version,
};

#[derive(Parser)]
#[command(name = "sindri-cluster", bin_name = "cargo xtask cluster", version, about = "Clusters on demand.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a cluster that stays, and prints how it is reached.
    Up(Wanted),
    /// Ends a cluster that `up` started.
    Down(down::Which),
    /// Lists what runs.
    Status,
    /// Starts a cluster, sees that it works, and ends it.
    Try {
        #[command(flatten)]
        wanted: Wanted,
        #[command(flatten)]
        foreign: Foreign,
    },
    /// Builds the control plane, so that nothing has to be built later.
    Build {
        /// The version of Kubernetes.
        #[arg(long, value_name = "VERSION", default_value_t)]
        version: Version,
    },
    /// Keeps a cluster running: what `up` leaves behind.
    #[command(hide = true)]
    Hold(Wanted),
}

/// What is wanted of a cluster.
#[derive(Args, Clone)]
struct Wanted {
    /// What kind: local, container, kind or sim.
    #[arg(long, value_name = "KIND")]
    cluster: ProviderName,
    /// The version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Only an API server: no controllers, no scheduler and no node.
    #[arg(long)]
    pristine: bool,
    /// The port of the API server [default: a free one].
    #[arg(long)]
    port: Option<u16>,
    /// Leave its directory behind, with every log.
    #[arg(long)]
    keep: bool,
    /// What to call it [default: its kind and a number].
    #[arg(long)]
    name: Option<String>,
}

/// Which cluster of someone else, and that it may be used.
#[derive(Args, Clone)]
struct Foreign {
    /// For --cluster kubeconfig: the file [default: $KUBECONFIG].
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// For --cluster kubeconfig: the context in it.
    #[arg(long)]
    context: Option<String>,
    /// For --cluster kubeconfig: yes, this cluster may be used.
    #[arg(long)]
    yes_use_this_cluster: bool,
}

/// As it calls itself.
const PROGRAM: &str = "sindri-cluster";

fn main() -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return program::end(PROGRAM, Err(Ending::Broken(format!("cannot start: {error}")))),
    };
    let (home, stop) = (Home::of_user(), signals.stop());
    let done = match Cli::parse().command {
        Command::Up(wanted) => up::up(&home, &wanted, stop),
        Command::Down(which) => down::down(&home, &which, stop),
        Command::Status => status::status(&home),
        Command::Try { wanted, foreign } => try_out::try_out(&home, &wanted, &foreign, stop),
        Command::Build { version } => build::build(&home, version, stop),
        Command::Hold(wanted) => hold::hold(&home, &wanted, stop),
    };
    program::end(PROGRAM, done.map_err(|error| Ending::of(&error, stop)))
}

impl Wanted {
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
            ProviderName::Local => Ok(Box::new(Local::new(home.clone()))),
            ProviderName::Container => Ok(Box::new(Container::new(home.clone()))),
            ProviderName::Kind => Ok(Box::new(Kind::default())),
            ProviderName::Sim => {
                let own = std::env::current_exe().map_err(|error| ClusterError::Mistake(error.to_string()))?;
                Ok(Box::new(Sim::beside(&own).whole()))
            }
            ProviderName::Kubeconfig => Err(ClusterError::Mistake(
                "--cluster kubeconfig is a cluster that runs already: there is nothing to start".to_owned(),
            )),
        }
    }
}
