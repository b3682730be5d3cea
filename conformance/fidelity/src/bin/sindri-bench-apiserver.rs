//! `sindri-bench-apiserver`: the figures of the simulated API server.
//!
//! The exit codes are 0 when everything could be measured, 1 when something could not, 2 for a mistake of the user.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
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

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let measured = match run() {
        Ok(measured) => measured,
        Err(message) => return fail(EXIT_FAILED, &message),
    };
    if let Some(file) = &cli.json
        && let Err(error) = std::fs::write(file, measured)
    {
        return fail(EXIT_USAGE, &format!("{} cannot be written: {error}", file.display()));
    }
    ExitCode::SUCCESS
}

fn run() -> Result<String, String> {
    let signals = Signals::listen().map_err(|error| format!("cannot start: {error}"))?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut sheet = Sheet::new(AREA, say);
    let (simulated, real) = (Sim::beside(&own), Local::new(Home::of_user()));
    measure(&simulated, &real, signals.stop(), &mut sheet)?;
    Ok(format!("{:#}\n", sheet.to_json()))
}

/// Prints a line. Whoever stopped reading, as `head` does, does not stop the work.
fn say(line: String) {
    let _unread = writeln!(std::io::stdout(), "{line}");
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("sindri-bench-apiserver: {message}");
    ExitCode::from(code)
}
