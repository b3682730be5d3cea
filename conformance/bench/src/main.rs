//! Benchmarks: every figure that the project claims, except those of the simulation (`sindri-sim bench`).
//!
//! Here are the flags; the exit codes are those of [`sindri_cluster::program`]. A figure below its bar is printed as such and is
//! no failure; a figure that could not be measured is one.

mod agent;
mod apiserver;
mod broker;
mod clock;
mod control_plane;
mod figures;
mod parts;
mod people;
mod process_memory;
mod request_rate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use sindri_cluster::program::{ExitReason, exit_code, print_line};
use sindri_cluster::{Home, LocalProvider, ProviderName, Signals, SimProvider};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::providers::{create_provider, parse_provider};
use sindri_conformance::runtime::InterruptibleRuntime;
use tempfile::TempDir;

use broker::{Bench, memory_directory, serve_bare};
use figures::Figures;
use people::PeopleBench;

const PROGRAM: &str = "sindri-bench";

/// The allocator of the broker, the agent and the API server: this program contains the bare server and the bare client that
/// they are compared with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "sindri-bench", version, about = "Measures every figure of one area.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures the broker next to a bare HTTP server and to raw database transactions.
    Broker(BrokerFlags),
    /// Measures the agent next to a bare client of the same cluster.
    Agent(AgentFlags),
    /// Measures the real control plane.
    Cluster(JsonFlag),
    /// Measures the simulated API server next to the real one.
    Apiserver(JsonFlag),
    /// Measures the command line, sizes, and the time of an installation.
    People(PeopleFlags),
    /// Runs the server that the broker is compared with.
    #[command(hide = true)]
    BareServer,
}

#[derive(Args)]
struct JsonFlag {
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct BrokerFlags {
    #[command(flatten)]
    output: JsonFlag,
    /// A PostgreSQL server where databases may be created and dropped, as postgres://USER@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    postgres_url: Option<String>,
    /// Only the parts with this text in their name: idle broker, polls, agents that wait, accepted objects, list of the
    /// fleet, parallel lists, hostile texts, events of one agent, distant database.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
}

#[derive(Args)]
struct AgentFlags {
    #[command(flatten)]
    output: JsonFlag,
    /// Only with this provider of clusters [default: sim, then local].
    #[arg(long)]
    cluster: Option<String>,
    /// Only the parts with this text in their name: idle, changed stack, first apply, reaction, memory.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
}

#[derive(Args)]
struct PeopleFlags {
    #[command(flatten)]
    output: JsonFlag,
    /// A PostgreSQL server where databases may be created and dropped, as postgres://USER@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    postgres_url: Option<String>,
    /// The program helm.
    #[arg(long, value_name = "FILE")]
    helm: Option<PathBuf>,
    /// Only the parts with this text in their name: start of the command line, status, sizes, installation.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Broker(flags) => measure_broker(&flags),
        Command::Agent(flags) => measure_agent(&flags),
        Command::Cluster(output) => measure_control_plane(&output),
        Command::Apiserver(output) => measure_apiserver(&output),
        Command::People(flags) => measure_people(&flags),
        Command::BareServer => serve_bare().map_err(broken),
    };
    exit_code(PROGRAM, done)
}

fn broken(error: impl std::fmt::Display) -> ExitReason {
    ExitReason::Failed(error.to_string())
}

/// Directory of this program, where the other binaries of the same build are.
fn own_directory() -> Result<PathBuf, ExitReason> {
    let own = std::env::current_exe().map_err(broken)?;
    Ok(own.parent().unwrap_or(Path::new(".")).to_owned())
}

fn measure_broker(flags: &BrokerFlags) -> Result<(), ExitReason> {
    if !broker::has_part(&flags.filter) {
        return Err(ExitReason::Usage(format!("no part of the broker's figures has {:?} in its name", flags.filter)));
    }
    let directory = own_directory()?;
    let program = directory.join("sindri-broker");
    if !program.is_file() {
        let build = "build it with `cargo build --release -p sindri-broker`";
        return Err(ExitReason::Usage(format!("sindri-broker is not in {}: {build}", directory.display())));
    }
    let directories = Directories::new()?;
    let bench = directories.create_bench(program, flags.postgres_url.clone())?;
    let mut figures = Figures::new("broker", print_line);
    let measured = broker::measure(&bench, &flags.filter, &mut figures);
    if let Some(code) = bench.runtime.interrupt_code() {
        return Err(ExitReason::Interrupted(code));
    }
    measured.map_err(ExitReason::Failed)?;
    finish(figures, &flags.output)
}

/// Directories for the files of servers.
struct Directories {
    disk: TempDir,
    memory: TempDir,
}

impl Directories {
    fn new() -> Result<Self, ExitReason> {
        Ok(Self { disk: tempfile::tempdir().map_err(broken)?, memory: memory_directory().map_err(broken)? })
    }

    fn create_bench(&self, broker: PathBuf, postgres_url: Option<String>) -> Result<Bench, ExitReason> {
        Ok(Bench {
            own: std::env::current_exe().map_err(broken)?,
            broker,
            disk: self.disk.path().to_owned(),
            memory: self.memory.path().to_owned(),
            postgres_url,
            runtime: Rc::new(InterruptibleRuntime::new().map_err(broken)?),
        })
    }
}

fn measure_people(flags: &PeopleFlags) -> Result<(), ExitReason> {
    if !people::has_part(&flags.filter) {
        return Err(ExitReason::Usage(format!("no part of the figures for people has {:?} in its name", flags.filter)));
    }
    let binaries = Binaries::find(&own_directory()?).map_err(|missing| ExitReason::Usage(missing.to_string()))?;
    let directories = Directories::new()?;
    let servers = directories.create_bench(binaries.broker.clone(), flags.postgres_url.clone())?;
    let bench = PeopleBench { servers, binaries, helm: flags.helm.clone() };
    let mut figures = Figures::new("people", print_line);
    let measured = people::measure(&bench, &flags.filter, &mut figures);
    if let Some(code) = bench.servers.runtime.interrupt_code() {
        return Err(ExitReason::Interrupted(code));
    }
    measured.map_err(ExitReason::Failed)?;
    finish(figures, &flags.output)
}

/// Providers with which the agent is measured by default: the simulated API server, and the real control plane that needs nothing
/// installed but Go.
const AGENT_PROVIDERS: [ProviderName; 2] = [ProviderName::Sim, ProviderName::Local];

fn measure_agent(flags: &AgentFlags) -> Result<(), ExitReason> {
    let names = match &flags.cluster {
        Some(name) => vec![parse_provider(name)?],
        None => AGENT_PROVIDERS.to_vec(),
    };
    if !agent::has_part(&flags.filter) {
        return Err(ExitReason::Usage(format!("no part of the agent's figures has {:?} in its name", flags.filter)));
    }
    let binaries = Binaries::find(&own_directory()?).map_err(|missing| ExitReason::Usage(missing.to_string()))?;
    let runtime = Rc::new(InterruptibleRuntime::new().map_err(broken)?);
    let providers = names.into_iter().map(|name| create_provider(name, &binaries)).collect::<Result<Vec<_>, _>>()?;
    let setup = |provider| agent::Setup { provider, binaries: &binaries, runtime: &runtime, progress };
    let setups: Vec<_> = providers.iter().map(|provider| setup(&**provider)).collect();
    let mut figures = Figures::new("agent", print_line);
    let measured = agent::measure(&setups, &flags.filter, &mut figures);
    if let Some(code) = runtime.interrupt_code() {
        return Err(ExitReason::Interrupted(code));
    }
    measured.map_err(ExitReason::Failed)?;
    finish(figures, &flags.output)
}

/// Prints progress to stderr: stdout has the table of figures.
fn progress(line: &str) {
    eprintln!("{line}");
}

fn measure_control_plane(output: &JsonFlag) -> Result<(), ExitReason> {
    let signals = Signals::listen().map_err(|error| broken(format!("cannot start: {error}")))?;
    let stop = signals.stop();
    let mut figures = Figures::new("cluster", print_line);
    control_plane::measure(&LocalProvider::new(Home::from_env()), stop, &mut figures)
        .map_err(|error| error.to_exit_reason(stop))?;
    if stop.is_set() {
        return Err(ExitReason::Interrupted(stop.exit_code()));
    }
    finish(figures, output)
}

fn measure_apiserver(output: &JsonFlag) -> Result<(), ExitReason> {
    let signals = Signals::listen().map_err(|error| broken(format!("cannot start: {error}")))?;
    let own = std::env::current_exe().map_err(broken)?;
    let (simulated, real) = (SimProvider::beside(&own), LocalProvider::new(Home::from_env()));
    let mut figures = Figures::new("apiserver", print_line);
    apiserver::measure(&simulated, &real, signals.stop(), &mut figures).map_err(ExitReason::Failed)?;
    finish(figures, output)
}

/// Writes the figures to the file, if one was given. A part that could not be measured is a failure.
fn finish(figures: Figures, output: &JsonFlag) -> Result<(), ExitReason> {
    let missing = figures.missing();
    if let Some(file) = &output.json {
        let unwritable = |error| ExitReason::Usage(format!("{} cannot be written: {error}", file.display()));
        std::fs::write(file, format!("{:#}\n", figures.into_json())).map_err(unwritable)?;
    }
    if missing == 0 { Ok(()) } else { Err(ExitReason::Failed(format!("{missing} parts could not be measured"))) }
}
