//! `sindri-fidelity`: plays what was recorded of a real API server, and generated sequences, to the simulated one, and
//! lists every difference.
//!
//! The exit codes are those of [`sindri_cluster::program`]; something that differs and should not, or no longer does, is
//! something that failed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use sindri_cluster::program::{ExitReason, exit_code, print_line};
use sindri_cluster::{Home, LocalProvider, Signals, Stop, Version};
use sindri_fidelity::exchange::{Difference, Outcome, compare};
use sindri_fidelity::expected::{Expected, KNOWN, written};
use sindri_fidelity::generated::report as generated_report;
use sindri_fidelity::generated::session::{Found, Session};
use sindri_fidelity::generated::waiver::excuse;
use sindri_fidelity::{page, report};
use sindri_record::files;
use sindri_record::library::scripts;

/// Compares the simulated API server with what a real one said, and says now.
#[derive(Parser)]
#[command(name = "sindri-fidelity", bin_name = "cargo xtask fidelity", version)]
struct Cli {
    /// Only the recorded exchanges with this text in their name; their differences are shown in full.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// Show every difference of a recorded exchange in full, without a filter too.
    #[arg(long)]
    all: bool,
    /// Write the totals as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the recorded steps that differ into the list of known differences.
    #[arg(long, conflicts_with = "filter")]
    update: bool,
    /// How many generated sequences are played to the simulated and to a real server; 0 for only what was recorded.
    #[arg(long, value_name = "NUMBER", default_value_t = SEQUENCES, conflicts_with = "filter")]
    sequences: u64,
    /// The seed of the generated sequences.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "filter")]
    seed: u64,
    /// Only the generated sequence with this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "filter")]
    only: Option<u64>,
    /// How many kinds of differences of generated sequences are made short and shown.
    #[arg(long, value_name = "NUMBER", default_value_t = SHOWN)]
    show: usize,
    /// The version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// The project's directory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

/// Every how many exchanges a line says how far it is.
const PROGRESS_EVERY: usize = 20;
/// How many generated sequences a full run has, and how many requests each of them.
const SEQUENCES: u64 = 2_000;
const REQUESTS: usize = 20;
const SHOWN: usize = 12;
/// Where the page is written, from the project's directory.
const PAGE: &str = "target/fidelity/index.html";
/// As it calls itself.
const PROGRAM: &str = "sindri-fidelity";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return exit_code(PROGRAM, Err(ExitReason::Failed(format!("cannot start: {error}")))),
    };
    let done = match run(&cli, signals.stop()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ExitReason::AlreadyReported),
        Err(ending) => Err(ending),
    };
    exit_code(PROGRAM, done)
}

/// Whether everything is as expected.
fn run(cli: &Cli, stop: &Stop) -> Result<bool, ExitReason> {
    let expected = Expected::read(&cli.root).map_err(|error| ExitReason::Usage(error.to_string()))?;
    let recorded = if cli.only.is_some() { (true, Vec::new()) } else { recorded(cli, &expected)? };
    let plays = cli.filter.is_empty() && !cli.update && (cli.only.is_some() || cli.sequences > 0);
    let generated = if plays { Some(generated(cli, &expected, stop)?) } else { None };
    if let Some(file) = &cli.json {
        write(file, &format!("{:#}\n", totals(&recorded.1, generated.as_ref(), &expected)))?;
    }
    if let Some(found) = generated.as_ref().filter(|_| cli.only.is_none()) {
        write(&cli.root.join(PAGE), &page::page(&recorded.1, &expected, found))?;
        print_line(format!("coverage by verb and kind: {PAGE}"));
    }
    Ok(recorded.0 && generated.is_none_or(|found| found.classes.is_empty() && idle(cli, &expected).is_empty()))
}

/// What was recorded: whether it is as expected, and what came of it.
fn recorded(cli: &Cli, expected: &Expected) -> Result<(bool, Vec<Outcome>), ExitReason> {
    let outcomes = play(cli)?;
    if cli.update {
        write(&cli.root.join(KNOWN), &written(expected, &outcomes))?;
        return Ok((true, outcomes));
    }
    let verdict = expected.judge(&outcomes);
    for outcome in &outcomes {
        for difference in &outcome.differences {
            let is_new = verdict.new.contains(&(outcome.name.clone(), difference.step));
            if is_new || cli.all || !cli.filter.is_empty() {
                report::shown(&outcome.name, difference).into_iter().for_each(print_line);
            }
        }
    }
    print_line(String::new());
    report::table(&outcomes, &verdict).into_iter().for_each(print_line);
    report::complaints(&verdict).into_iter().for_each(print_line);
    Ok((verdict.holds(), outcomes))
}

fn play(cli: &Cli) -> Result<Vec<Outcome>, ExitReason> {
    let mistake = |message: String| ExitReason::Usage(message);
    let mut scripts = scripts(&cli.root).map_err(|error| mistake(error.to_string()))?;
    scripts.retain(|script| script.name.contains(&cli.filter));
    if scripts.is_empty() {
        return Err(mistake(format!("no exchange has {:?} in its name", cli.filter)));
    }
    let directory = files::directory(&cli.root, &cli.version.to_string());
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().map_err(|error| ExitReason::Failed(error.to_string()))?;
    let mut outcomes = Vec::new();
    for (index, script) in scripts.iter().enumerate() {
        if index % PROGRESS_EVERY == 0 {
            eprintln!("playing {} of {} exchanges", index + 1, scripts.len());
        }
        outcomes.push(runtime.block_on(compare(script, &directory)).map_err(|error| mistake(error.to_string()))?);
    }
    Ok(outcomes)
}

/// Generated sequences, to both servers.
fn generated(cli: &Cli, expected: &Expected, stop: &Stop) -> Result<Found, ExitReason> {
    let indexes = cli.only.map_or(0..cli.sequences, |only| only..only.saturating_add(1));
    let local = LocalProvider::new(Home::from_env());
    let session = Session {
        provider: &local,
        version: cli.version,
        seed: cli.seed,
        indexes,
        requests: REQUESTS,
        show: cli.show,
        stop,
        report: progress,
    };
    let is_excused = |difference: &Difference| excuse(&expected.generated, difference);
    let found = session.run(&is_excused).map_err(|error| error.ending(stop))?;
    for (class, shortest) in &found.shrunk {
        generated_report::short(class, shortest).into_iter().for_each(print_line);
    }
    print_line(String::new());
    generated_report::summary(&found, expected).into_iter().for_each(print_line);
    for pattern in idle(cli, expected) {
        print_line(format!("{pattern}: the waiver no longer applies; take its line away"));
    }
    Ok(found)
}

/// Waivers that excused nothing, where enough was played to tell.
fn idle(cli: &Cli, expected: &Expected) -> Vec<String> {
    if cli.only.is_some() || cli.sequences < SEQUENCES {
        return Vec::new();
    }
    expected.generated.iter().filter(|waiver| waiver.used.get() == 0).map(|waiver| waiver.pattern()).collect()
}

/// The totals for programs.
fn totals(outcomes: &[Outcome], found: Option<&Found>, expected: &Expected) -> serde_json::Value {
    let mut totals = report::summary(outcomes, &expected.judge(outcomes));
    if let Some(found) = found {
        let count = found.coverage.total();
        totals["generated"] = json!({
            "sequences": found.sequences, "requests": count.asked, "succeeded": count.succeeded,
            "differences": count.differs, "differing_sequences": found.compared.len(), "waivers": expected.generated.len(),
        });
    }
    totals
}

fn write(file: &Path, text: &str) -> Result<(), ExitReason> {
    let unwritable =
        |error: std::io::Error| ExitReason::Usage(format!("{} cannot be written: {error}", file.display()));
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(unwritable)?;
    }
    std::fs::write(file, text).map_err(unwritable)
}

fn progress(line: String) {
    eprintln!("{line}");
}
