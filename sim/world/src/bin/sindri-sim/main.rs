//! The simulation as a command: runs scenarios, explores them with seeds, checks determinism, measures speed.
//!
//! Exit code 0 if every property held, 1 for a violation, 2 for a mistake of the user.

mod bench;
mod determinism;
mod exploration;
mod flags;
mod goals;
mod memory;
mod output;
mod pool;
mod real_time;
mod report;
mod shard;
mod steps;
mod summary;
mod worlds;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use flags::{BenchFlags, HashFlags, SimFlags};
use report::Report;
use serde_json::Value;
use sindri_world::engine::EngineKind;
use sindri_world::run::{self, RunRequest};
use sindri_world::scenario::{Library, Scenario};
use worlds::Plan;

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
    /// Runs every scenario as it is written, then random worlds for a minute; other seeds explore scenarios with faults.
    Sim(SimFlags),
    /// Measures virtual time per real time on both engines.
    Bench(BenchFlags),
    /// Prints the hash of one run; used to compare processes.
    Hash(HashFlags),
}

/// Exit code of a violation.
const EXIT_VIOLATION: u8 = 1;
/// Exit code of a mistake of the user.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Sim(flags) => run_simulation(&flags),
        Command::Bench(flags) => bench::run_bench(flags.json.as_deref()),
        Command::Hash(flags) => print_hash(&flags),
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
    Library::read(root).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Most worlds after the scenarios: more than there is time for.
const WORLDS_MAX: u64 = 100_000;
/// Time for worlds after the scenarios.
const WORLDS_TIME: Duration = Duration::from_secs(60);

fn run_simulation(flags: &SimFlags) -> Result<bool, String> {
    if let Some(directory) = &flags.merge {
        let (result, is_green) = shard::merge(directory)?;
        write_result(flags, &result)?;
        return Ok(is_green);
    }
    if let Some(count) = flags.worlds {
        let time_max = flags.minutes.map(|minutes| Duration::from_secs(minutes * 60));
        let worlds = Plan { first: flags.seed.unwrap_or(1), count, time_max };
        let totals = worlds::run_worlds(worlds, flags)?;
        write_result(flags, &totals.to_json())?;
        write_report(flags, &totals.describe(), &totals.report)?;
        return Ok(totals.is_green());
    }
    let library = read_library(&flags.root)?;
    let chosen = match &flags.scenario {
        None => choose_scenarios(&library, flags),
        Some(name) => {
            let scenario = library.find(name).cloned();
            vec![scenario.ok_or_else(|| format!("there is no scenario {name:?}; --list shows all"))?]
        }
    };
    if flags.list {
        output::print_scenarios(&chosen);
        return Ok(true);
    }
    if flags.coverage {
        output::print_coverage(&chosen);
        return Ok(true);
    }
    if flags.determinism {
        let seeds = flags.seeds.unwrap_or(determinism::SEEDS_DEFAULT);
        let engines = flags.engine.map_or(EngineKind::ALL.to_vec(), |engine| vec![engine.into()]);
        return determinism::check(&library, &chosen, &engines, seeds, flags);
    }
    let mut summary = exploration::explore(&library, &chosen, flags)?;
    let mut description = summary.describe();
    let mut result = summary.to_json();
    let mut is_green = summary.violations.is_empty();
    if flags.is_default_run() {
        println!("random worlds for {} s:", WORLDS_TIME.as_secs());
        let worlds = Plan { first: 1, count: WORLDS_MAX, time_max: Some(WORLDS_TIME) };
        let totals = worlds::run_worlds(worlds, flags)?;
        is_green &= totals.is_green();
        output::add_worlds(&mut result, totals.to_json());
        description = format!("{description}; {}", totals.describe());
        summary.report.extend(totals.report);
    }
    write_result(flags, &result)?;
    write_report(flags, &description, &summary.report)?;
    Ok(is_green)
}

/// Returns the scenarios of the chosen share.
fn choose_scenarios(library: &Library, flags: &SimFlags) -> Vec<Scenario> {
    let is_chosen = |number: u64| flags.shard.is_none_or(|shard| shard.contains(number));
    let chosen = (0..).zip(&library.scenarios).filter(|(number, _)| is_chosen(*number));
    chosen.map(|(_, scenario)| scenario.clone()).collect()
}

fn write_result(flags: &SimFlags, result: &Value) -> Result<(), String> {
    flags.json.as_ref().map_or(Ok(()), |file| output::write_json(file, result))
}

fn write_report(flags: &SimFlags, description: &str, report: &Report) -> Result<(), String> {
    flags.report.as_ref().map_or(Ok(()), |file| report.write(file, "Sindri simulation", description))
}

fn print_hash(flags: &HashFlags) -> Result<bool, String> {
    let library = read_library(&flags.root)?;
    let scenario = library.find(&flags.scenario).ok_or_else(|| format!("there is no scenario {:?}", flags.scenario))?;
    let engine = flags.engine.into();
    let request = RunRequest { scenario, library: &library, engine, seed: flags.seed, kill_at: None };
    println!("{}", run::run(&request)?.hash);
    Ok(true)
}
