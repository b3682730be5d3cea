//! `sindri-bench-apiserver`: the figures of the simulated API server.
//!
//! The exit codes are 0 when everything could be measured, 1 when something could not, 2 for a mistake of the user.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sindri_cluster::program::{Ending, end, say};
use sindri_cluster::{Home, Local, Signals, Sim};
use sindri_fidelity::figures::{AREA, measure};
use sindri_figures::Sheet;

/// Measures the simulated API server beside the real one.
#[derive(Parser)]
#[command(name = "sindri-bench-apiserver", version)]
struct Cli {
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    end("sindri-bench-apiserver", bench(&Cli::parse()))
}

fn bench(cli: &Cli) -> Result<(), Ending> {
    let measured = run().map_err(Ending::Broken)?;
    let Some(file) = &cli.json else { return Ok(()) };
    let unwritable = |error| Ending::Mistake(format!("{} cannot be written: {error}", file.display()));
    std::fs::write(file, measured).map_err(unwritable)
}

fn run() -> Result<String, String> {
    let signals = Signals::listen().map_err(|error| format!("cannot start: {error}"))?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut sheet = Sheet::new(AREA, say);
    let (simulated, real) = (Sim::beside(&own), Local::new(Home::of_user()));
    measure(&simulated, &real, signals.stop(), &mut sheet)?;
    Ok(format!("{:#}\n", sheet.to_json()))
}
