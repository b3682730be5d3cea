//! The conformance suite as a command, and a demonstration that needs nothing else installed.
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`]. A case that failed counts as a failure of the program.
//! It has one thread.

mod command;
mod demo;
mod hand;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{Ending, end};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::waiter::Waiter;

#[derive(Parser)]
#[command(name = "sindri-conformance", version, about = "Runs broker, agents and clusters for real.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays every story that is marked `real: true`.
    Run(RunFlags),
    /// Shows a broker, an agent and a simulated cluster at work.
    Demo(DemoFlags),
}

#[derive(Args)]
struct RunFlags {
    /// Where clusters come from: sim, local, container, kind or kubeconfig [default: the best that can be started].
    #[arg(long)]
    cluster: Option<String>,
    /// Only the stories with this text in their name or title.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// List the stories and what they prove.
    #[arg(long)]
    list: bool,
    /// Write the result as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The project's directory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

#[derive(Args)]
struct DemoFlags {
    /// Keep everything running for so long afterwards [default: until Ctrl-C at a terminal, else not at all].
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
    /// The project's directory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run::run(&flags),
        Command::Demo(flags) => demo::demo(&flags),
    };
    end("sindri-conformance", done)
}

/// The binaries next to this one, and what waits.
fn prepare() -> Result<(Binaries, Rc<Waiter>), Ending> {
    let own = std::env::current_exe().map_err(|error| Ending::Broken(error.to_string()))?;
    let directory = own.parent().unwrap_or(Path::new("."));
    let binaries = Binaries::find(directory).map_err(|missing| Ending::Mistake(missing.to_string()))?;
    let waiter = Waiter::new().map_err(|error| Ending::Broken(format!("cannot start: {error}")))?;
    Ok((binaries, Rc::new(waiter)))
}
