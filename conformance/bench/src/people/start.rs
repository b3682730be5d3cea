//! Start of the command line: processes that print a line and send no request.

use super::bench::PeopleBench;
use crate::clock::now;
use crate::figures::{Bar, Figures, median};

const STARTS: usize = 30;
const BAR: Bar = Bar::AtMost(15.0);

/// Measures processes one after the other.
pub fn measure(bench: &PeopleBench, figures: &mut Figures) -> Result<(), String> {
    // The first one reads the program from the disk.
    start(bench)?;
    let mut starts = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        bench.servers.check_interrupt()?;
        starts.push(start(bench)?);
    }
    figures.add("sindri version --client, median of 30 processes", median(starts), "ms", BAR);
    Ok(())
}

/// Runs one process. Returns the milliseconds from its start to its end.
fn start(bench: &PeopleBench) -> Result<f64, String> {
    let mut command = bench.command_line(&["version", "--client"]);
    let start = now();
    let status = command.status().map_err(|error| format!("sindri: {error}"))?;
    let took = start.elapsed();
    if status.success() { Ok(took.as_secs_f64() * 1000.0) } else { Err(format!("sindri version: {status}")) }
}
