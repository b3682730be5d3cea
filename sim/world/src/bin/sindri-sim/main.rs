//! The simulation as a command: runs stories, explores them with seeds, checks determinism, measures speed.
//!
//! Exit code 0 when everything held, 1 for a violation, 2 for a mistake of the user.

mod bench;
mod determinism;
mod explore;
mod output;
mod pool;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sindri_world::engine::Arm;
use sindri_world::run::{self, Order};
use sindri_world::scenario::Library;

/// A run allocates for every request of every host; a quarter of its time went into the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "sindri-sim", version, about = "Runs production broker and agents in a simulated world.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every story as it is written, then explores it with faults and seeds.
    Sim(SimFlags),
    /// Measures virtual time per real time on both arms.
    Bench(BenchFlags),
    /// Prints the hash of one run; used to compare processes.
    Hash(OneRun),
}

/// Which engine, as people type it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    Fast,
    Turmoil,
}

impl From<EngineName> for Arm {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Fast => Arm::Fast,
            EngineName::Turmoil => Arm::Turmoil,
        }
    }
}

/// Flags of `sim`.
#[derive(Args, Clone, Debug)]
struct SimFlags {
    /// Only this story.
    #[arg(long)]
    scenario: Option<String>,
    /// The first seed. Seed 0 is the story as it is written; every other seed adds faults.
    #[arg(long)]
    seed: Option<u64>,
    /// Kill an agent at this event of the agents, counted from 1.
    #[arg(long, value_name = "EVENT")]
    kill_at: Option<u64>,
    /// How many seeds [default: the story and 20 more; with --seed: 1].
    #[arg(long)]
    seeds: Option<u64>,
    /// Go on with further seeds until so many minutes have passed.
    #[arg(long)]
    minutes: Option<u64>,
    /// How many runs at once.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Which engine.
    #[arg(long, value_enum, default_value = "fast")]
    engine: EngineName,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// List the stories and what they prove.
    #[arg(long)]
    list: bool,
    /// List the behaviours and the stories that prove them.
    #[arg(long)]
    coverage: bool,
    /// Run every story on both engines, twice here and twice in fresh processes, and compare the traces.
    #[arg(long)]
    determinism: bool,
    /// Print the trace of each run.
    #[arg(long)]
    trace: bool,
    /// The project's directory.
    #[arg(long, default_value = ".", hide = true)]
    root: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct BenchFlags {
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
struct OneRun {
    #[arg(long)]
    scenario: String,
    #[arg(long)]
    seed: u64,
    #[arg(long, value_enum)]
    engine: EngineName,
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

/// For a violation.
const EXIT_VIOLATION: u8 = 1;
/// For a mistake of the user.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Sim(flags) => sim(&flags),
        Command::Bench(flags) => bench::bench(flags.json.as_deref()),
        Command::Hash(one) => hash(&one),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_VIOLATION),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn read_library(root: &Path) -> Result<Library, String> {
    Library::read(root)
        .map_err(|errors| errors.iter().map(|error| format!("scenarios/{error}")).collect::<Vec<_>>().join("\n"))
}

fn sim(flags: &SimFlags) -> Result<bool, String> {
    let library = read_library(&flags.root)?;
    let chosen = match &flags.scenario {
        None => library.scenarios.clone(),
        Some(name) => {
            let found = library.find(name).cloned();
            vec![found.ok_or_else(|| format!("there is no scenario {name:?}; --list shows them all"))?]
        }
    };
    if flags.list {
        output::list(&chosen);
        return Ok(true);
    }
    if flags.coverage {
        output::coverage(&chosen);
        return Ok(true);
    }
    if flags.determinism {
        return determinism::check(&library, &chosen, &flags.root, flags.jobs);
    }
    explore::explore(&library, &chosen, flags)
}

fn hash(one: &OneRun) -> Result<bool, String> {
    let library = read_library(&one.root)?;
    let scenario = library.find(&one.scenario).ok_or_else(|| format!("there is no scenario {:?}", one.scenario))?;
    let order = Order { scenario, library: &library, arm: one.engine.into(), seed: one.seed, kill_at: None };
    println!("{}", run::run(&order)?.hash);
    Ok(true)
}
