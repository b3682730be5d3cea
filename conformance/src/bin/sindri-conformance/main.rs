//! The conformance suite, and a demonstration that needs nothing else installed.
//!
//! The exit codes are those of [`sindri_cluster::program`]. Each scenario runs on one thread.

mod cluster_user;
mod demo;
mod flags;
mod run;
mod setup;
mod shell;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sindri_cluster::program::exit_code;

use flags::{DemoFlags, RunFlags};

#[derive(Parser)]
#[command(name = "sindri-conformance", version, about = "Runs scenarios with real brokers, agents and clusters.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every scenario that is marked `real: true`.
    Run(RunFlags),
    /// Shows a broker, an agent and a simulated cluster at work.
    Demo(DemoFlags),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run::run(&flags),
        Command::Demo(flags) => demo::demo(&flags),
    };
    exit_code("sindri-conformance", done)
}
