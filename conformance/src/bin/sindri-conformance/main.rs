//! The conformance suite, and a demonstration that needs nothing else installed.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`]. Each scenario runs on one thread.

mod cluster_user;
mod demo;
mod run;
mod shell;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{ExitReason, exit_code};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::runtime::InterruptibleRuntime;

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

#[derive(Args)]
struct RunFlags {
    /// Provider of clusters: sim, local, container or kind [default: sim].
    #[arg(long)]
    cluster: Option<String>,
    /// Only the scenarios with this text in their name or title.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// Number of scenarios at the same time, each with processes and clusters of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    jobs: u32,
    /// List the scenarios and the behaviours that they prove.
    #[arg(long)]
    list: bool,
    /// Write the result as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

#[derive(Args)]
struct DemoFlags {
    /// Keep everything running for so many seconds at the end [default: until Ctrl-C at a terminal, else not at all].
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run::run(&flags),
        Command::Demo(flags) => demo::demo(&flags),
    };
    exit_code("sindri-conformance", done)
}

/// Finds the binaries next to this one.
fn find_binaries() -> Result<Binaries, ExitReason> {
    let own = std::env::current_exe().map_err(|error| ExitReason::Failed(error.to_string()))?;
    let directory = own.parent().unwrap_or(Path::new("."));
    Binaries::find(directory).map_err(|missing| ExitReason::Usage(missing.to_string()))
}

/// Creates the runtime of the current thread.
fn create_runtime() -> Result<Rc<InterruptibleRuntime>, ExitReason> {
    let runtime = InterruptibleRuntime::new().map_err(|error| ExitReason::Failed(format!("cannot start: {error}")))?;
    Ok(Rc::new(runtime))
}
