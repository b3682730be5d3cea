//! `sindri-fidelity`: plays what was recorded of a real API server to the simulated one, and lists every difference.
//!
//! The exit codes are 0 when everything is as expected, 1 when something differs that should not or no longer differs,
//! 2 for a mistake of the user.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sindri_fidelity::exchange::{Outcome, compare};
use sindri_fidelity::expected::{Expected, KNOWN, written};
use sindri_fidelity::report;
use sindri_record::files;
use sindri_record::library::scripts;

/// Compares the simulated API server with what a real one said.
#[derive(Parser)]
#[command(name = "sindri-fidelity", bin_name = "cargo xtask fidelity", version)]
struct Cli {
    /// Only the exchanges with this text in their name; their differences are shown in full.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    filter: String,
    /// Show every difference in full, without a filter too.
    #[arg(long)]
    all: bool,
    /// Write the totals as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the steps that differ into the list of known differences.
    #[arg(long, conflicts_with = "filter")]
    update: bool,
    /// The version of Kubernetes whose record is played.
    #[arg(long, value_name = "VERSION", default_value = "1.35")]
    version: String,
    /// The project's directory.
    #[arg(long, default_value = ".", value_name = "DIR")]
    root: PathBuf,
}

/// Every how many exchanges a line says how far it is.
const PROGRESS_EVERY: usize = 20;
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_FAILED),
        Err(message) => {
            eprintln!("sindri-fidelity: {message}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// Whether everything is as expected.
fn run(cli: &Cli) -> Result<bool, String> {
    let expected = Expected::read(&cli.root).map_err(|error| error.to_string())?;
    let outcomes = play(cli)?;
    if cli.update {
        let path = cli.root.join(KNOWN);
        std::fs::write(&path, written(&expected, &outcomes)).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(true);
    }
    let verdict = expected.judge(&outcomes);
    for outcome in &outcomes {
        for difference in &outcome.differences {
            let is_new = verdict.new.contains(&(outcome.name.clone(), difference.step));
            if is_new || cli.all || !cli.filter.is_empty() {
                report::shown(&outcome.name, difference).into_iter().for_each(say);
            }
        }
    }
    say(String::new());
    report::table(&outcomes, &verdict).into_iter().for_each(say);
    report::complaints(&verdict).into_iter().for_each(say);
    if let Some(file) = &cli.json {
        let text = format!("{:#}\n", report::summary(&outcomes, &verdict));
        std::fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    Ok(verdict.holds())
}

fn play(cli: &Cli) -> Result<Vec<Outcome>, String> {
    let mut scripts = scripts(&cli.root).map_err(|error| error.to_string())?;
    scripts.retain(|script| script.name.contains(&cli.filter));
    if scripts.is_empty() {
        return Err(format!("no exchange has {:?} in its name", cli.filter));
    }
    let directory = files::directory(&cli.root, &cli.version);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let mut outcomes = Vec::new();
    for (index, script) in scripts.iter().enumerate() {
        if index % PROGRESS_EVERY == 0 {
            eprintln!("playing {} of {} exchanges", index + 1, scripts.len());
        }
        outcomes.push(runtime.block_on(compare(script, &directory)).map_err(|error| error.to_string())?);
    }
    Ok(outcomes)
}

/// Prints a line. Whoever stopped reading, as `head` does, does not stop the work.
fn say(line: String) {
    let _unread = writeln!(std::io::stdout(), "{line}");
}
