//! `sindri-fidelity`: runs recorded exchanges and generated sequences with the simulated API server, and lists all differences from
//! the real one.
//!
//! The exit codes are those of [`sindri_cluster::program`]. Unexpected differences, and expected ones that no longer occur, are
//! failures.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use sindri_cluster::program::{ExitReason, exit_code, print_line};
use sindri_cluster::{Home, LocalProvider, Signals, Stop, Version};
use sindri_fidelity::exchange::{Difference, ExchangeResult, compare};
use sindri_fidelity::expected::{Expected, KNOWN, format_known};
use sindri_fidelity::generated::session::{RunResult, Session};
use sindri_fidelity::generated::waiver::apply_waivers;
use sindri_fidelity::generated_report;
use sindri_fidelity::{page, report};
use sindri_record::files;
use sindri_record::library::read_scripts;

/// Compares the simulated API server with recorded and live responses of a real one.
#[derive(Parser)]
#[command(name = "sindri-fidelity", bin_name = "cargo xtask fidelity")]
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
    /// Number of generated sequences that are sent to the simulated and to a real server; 0: only recorded exchanges.
    #[arg(long, value_name = "NUMBER", default_value_t = SEQUENCES, conflicts_with = "filter")]
    sequences: u64,
    /// Seed of the generated sequences.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "filter")]
    seed: u64,
    /// Only the generated sequence with this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "filter")]
    only: Option<u64>,
    /// Number of classes of differences of generated sequences that are reduced and shown.
    #[arg(long, value_name = "NUMBER", default_value_t = SHOWN)]
    show: usize,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: Version,
    /// Directory of the project.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

/// Number of exchanges between two lines of progress.
const PROGRESS_EVERY: usize = 20;
/// Number of generated sequences of a full run, and of requests in each.
const SEQUENCES: u64 = 2_000;
const REQUESTS: usize = 20;
const SHOWN: usize = 12;
/// Path of the HTML page, below the project's directory.
const PAGE: &str = "target/fidelity/index.html";
/// Name in error messages.
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
        Err(reason) => Err(reason),
    };
    exit_code(PROGRAM, done)
}

/// Runs all comparisons. Returns true if everything is as expected.
fn run(cli: &Cli, stop: &Stop) -> Result<bool, ExitReason> {
    let expected = Expected::read(&cli.root).map_err(|error| ExitReason::Usage(error.to_string()))?;
    let recorded = if cli.only.is_some() { (true, Vec::new()) } else { compare_recorded(cli, &expected)? };
    let has_generated = cli.filter.is_empty() && !cli.update && (cli.only.is_some() || cli.sequences > 0);
    let generated = if has_generated { Some(compare_generated(cli, &expected, stop)?) } else { None };
    if let Some(file) = &cli.json {
        write(file, &format!("{:#}\n", totals(&recorded.1, generated.as_ref(), &expected)))?;
    }
    if let Some(found) = generated.as_ref().filter(|_| cli.only.is_none()) {
        write(&cli.root.join(PAGE), &page::render(&recorded.1, &expected, found))?;
        print_line(format!("coverage by verb and resource: {PAGE}"));
    }
    Ok(recorded.0
        && generated.is_none_or(|found| found.classes.is_empty() && unused_waivers(cli, &expected).is_empty()))
}

/// Compares the recorded exchanges. Returns true if everything is as expected, and the results.
fn compare_recorded(cli: &Cli, expected: &Expected) -> Result<(bool, Vec<ExchangeResult>), ExitReason> {
    let outcomes = run_exchanges(cli)?;
    if cli.update {
        write(&cli.root.join(KNOWN), &format_known(expected, &outcomes))?;
        return Ok((true, outcomes));
    }
    let verdict = expected.judge(&outcomes);
    for outcome in &outcomes {
        for difference in &outcome.differences {
            let is_new = verdict.new.contains(&(outcome.name.clone(), difference.step));
            if is_new || cli.all || !cli.filter.is_empty() {
                report::format_difference(&outcome.name, difference).into_iter().for_each(print_line);
            }
        }
    }
    print_line(String::new());
    report::format_table(&outcomes, &verdict).into_iter().for_each(print_line);
    report::format_unexpected(&verdict).into_iter().for_each(print_line);
    Ok((verdict.is_as_expected(), outcomes))
}

fn run_exchanges(cli: &Cli) -> Result<Vec<ExchangeResult>, ExitReason> {
    let usage = |message: String| ExitReason::Usage(message);
    let mut scripts = read_scripts(&cli.root).map_err(|error| usage(error.to_string()))?;
    scripts.retain(|script| script.name.contains(&cli.filter));
    if scripts.is_empty() {
        return Err(usage(format!("no exchange has {:?} in its name", cli.filter)));
    }
    let directory = files::directory(&cli.root, &cli.version.to_string());
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().map_err(|error| ExitReason::Failed(error.to_string()))?;
    let mut outcomes = Vec::new();
    for (index, script) in scripts.iter().enumerate() {
        if index % PROGRESS_EVERY == 0 {
            eprintln!("exchange {} of {}", index + 1, scripts.len());
        }
        outcomes.push(runtime.block_on(compare(script, &directory)).map_err(|error| usage(error.to_string()))?);
    }
    Ok(outcomes)
}

/// Compares generated sequences with both servers.
fn compare_generated(cli: &Cli, expected: &Expected, stop: &Stop) -> Result<RunResult, ExitReason> {
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
    let is_waived = |difference: &Difference| apply_waivers(&expected.generated, difference);
    let found = session.run(&is_waived).map_err(|error| error.to_exit_reason(stop))?;
    for (class, shortest) in &found.shrunk {
        generated_report::format_sequence(class, shortest).into_iter().for_each(print_line);
    }
    print_line(String::new());
    generated_report::format_summary(&found, expected).into_iter().for_each(print_line);
    for pattern in unused_waivers(cli, expected) {
        print_line(format!("{pattern}: the waiver no longer applies; remove its line"));
    }
    Ok(found)
}

/// Returns the waivers that were not used, after a full run.
fn unused_waivers(cli: &Cli, expected: &Expected) -> Vec<String> {
    if cli.only.is_some() || cli.sequences < SEQUENCES {
        return Vec::new();
    }
    expected.generated.iter().filter(|waiver| waiver.used.get() == 0).map(|waiver| waiver.pattern()).collect()
}

/// Returns the totals as JSON.
fn totals(outcomes: &[ExchangeResult], found: Option<&RunResult>, expected: &Expected) -> serde_json::Value {
    let mut totals = report::summary(outcomes, &expected.judge(outcomes));
    if let Some(found) = found {
        let count = found.coverage.total();
        totals["generated"] = json!({
            "sequences": found.sequences, "requests": count.requests, "succeeded": count.succeeded,
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
