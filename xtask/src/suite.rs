//! `cargo xtask test`: named parts, each with its duration, and a line of counts at the end.
//!
//! A part that fails does not stop the others, except where they could not work without it. The parts themselves are in
//! `parts.rs`.

use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::durations;
use crate::parts::{self, PARTS, Part};
use crate::tools;

/// Options of the test command.
pub struct Selection {
    /// Runs the parts of the nightly command too.
    pub all: bool,
    /// Runs this part only.
    pub part: Option<String>,
}

/// A part that ended.
struct Finished {
    name: &'static str,
    duration: Duration,
    counts: Counts,
}

/// Runs the selected parts; the exit code is 0 only if nothing failed.
pub fn test(selection: &Selection) -> Result<u8, String> {
    match &selection.part {
        Some(name) => test_one(parts::find(name)?, selection.all),
        None => test_all(selection.all),
    }
}

/// Prints every part with the duration of its last run.
pub fn list() {
    for part in PARTS {
        let duration =
            durations::last(part.name).map_or_else(|| "-".to_owned(), |last| format!("{:.0} s", last.as_secs_f64()));
        let nightly = if part.is_nightly { " (--all)" } else { "" };
        println!("{:<24} {duration:>8}  {}{nightly}", part.name, part.about);
    }
}

fn test_one(part: &'static Part, all: bool) -> Result<u8, String> {
    require_tools()?;
    parts::build_for(part)?;
    let finished = run(part, all);
    conclude(&[finished])
}

fn test_all(all: bool) -> Result<u8, String> {
    require_tools()?;
    let start = now();
    let selected: Vec<&'static Part> = PARTS.iter().filter(|part| all || !part.is_nightly).collect();
    let mut finished = Vec::new();
    for part in selected {
        let ended = run(part, all);
        let is_hopeless = part.name == parts::BUILD && ended.counts.failed > 0;
        finished.push(ended);
        if is_hopeless {
            break;
        }
    }
    println!("\n{:<24} {:>8}  passed  failed", "part", "seconds");
    for Finished { name, duration, counts } in &finished {
        println!("{name:<24} {:>8.1}  {:>6}  {:>6}", duration.as_secs_f64(), counts.passed, counts.failed);
    }
    println!("{:<24} {:>8.1}\n", "all", (now() - start).as_secs_f64());
    conclude(&finished)
}

/// Prints the last line: the counts, and the parts that did not run.
fn conclude(finished: &[Finished]) -> Result<u8, String> {
    let total = finished.iter().fold(Counts::default(), |total, part| total.and(&part.counts));
    println!("{total}");
    Ok(u8::from(total.failed > 0))
}

fn require_tools() -> Result<(), String> {
    tools::require_compiler()?;
    tools::require_kubectl()
}

fn run(part: &'static Part, all: bool) -> Finished {
    println!("\n=== {}", part.name);
    let start = now();
    let counts = (part.run)(all).unwrap_or_else(|error| {
        println!("{error}");
        Counts::from_success(false)
    });
    let duration = now() - start;
    durations::record(part.name, duration);
    Finished { name: part.name, duration, counts }
}

#[expect(clippy::disallowed_methods, reason = "measures how long each part takes")]
fn now() -> Instant {
    Instant::now()
}
