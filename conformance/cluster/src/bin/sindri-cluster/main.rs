//! `sindri-cluster`: starts, lists and ends clusters.
//!
//! The exit codes are those of [`sindri_cluster::program`].

mod build;
mod down;
mod flags;
mod hold;
mod status;
mod try_cluster;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sindri_cluster::program::{self, ExitReason};
use sindri_cluster::{Home, Signals, Version};

use flags::{ClusterFlags, KubeconfigFlags, PROGRAM};

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
