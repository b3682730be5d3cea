//! `cargo xtask test`: named parts, each with its duration, and a line of counts at the end.
//!
//! A part that fails does not stop the others, except where they could not work without it. Parts that wait run beside
//! those that compute, in a process of their own whose lines begin with the name of the part. The parts themselves are in
//! `parts.rs`.

use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::durations;
use crate::parts::{self, Order, PARTS, Part};
use crate::process::Run;
use crate::tools;

/// Options of the test command.
pub struct Selection {
    /// Runs the parts of the nightly command too.
    pub all: bool,
    /// Runs this part only.
    pub part: Option<String>,
    /// True if everything that the part needs is built.
    pub is_built: bool,
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
        Some(name) => test_one(parts::find(name)?, selection),
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

fn test_one(part: &'static Part, selection: &Selection) -> Result<u8, String> {
    require_tools()?;
    if !selection.is_built {
        parts::build_for(part)?;
    }
    let finished = run(part, selection.all);
    conclude(&[finished])
}

fn test_all(all: bool) -> Result<u8, String> {
    require_tools()?;
    let start = now();
    let mut finished = Vec::new();
    for part in select(Order::First, all) {
        finished.push(run(part, all));
    }
    let is_built = finished.iter().all(|part| part.name != parts::BUILD || part.counts.failed == 0);
    if is_built {
        finished.extend(run_side_by_side(all)?);
    }
    println!("\n{:<24} {:>8}  passed  failed", "part", "seconds");
    for Finished { name, duration, counts } in &finished {
        println!("{name:<24} {:>8.1}  {:>6}  {:>6}", duration.as_secs_f64(), counts.passed, counts.failed);
    }
    println!("{:<24} {:>8.1}\n", "all", (now() - start).as_secs_f64());
    conclude(&finished)
}

fn select(order: Order, all: bool) -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(move |part| part.order == order && (all || !part.is_nightly))
}

/// Runs the parts that compute one after the other, and beside them those that wait, one after the other too.
fn run_side_by_side(all: bool) -> Result<Vec<Finished>, String> {
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(move || select(Order::Waits, all).map(|part| run_apart(part, all)).collect::<Vec<_>>());
        let mut finished: Vec<Finished> = select(Order::Computes, all).map(|part| run(part, all)).collect();
        finished.extend(waiting.join().map_err(|_| "a thread of the test command panicked")?);
        Ok(finished)
    })
}

/// Runs a part in a process of its own. Its lines are printed with its name.
fn run_apart(part: &'static Part, all: bool) -> Finished {
    println!("\n=== {} (beside the others)", part.name);
    let start = now();
    let flags: &[&str] = if all { &["--all"] } else { &[] };
    let output = std::env::current_exe().map_err(|error| error.to_string()).and_then(|program| {
        Run::program(program).args(["test", "--built", "--part", part.name]).args(flags).labelled(part.name)
    });
    let counts = match output {
        Ok((code, output)) => Counts::from_output(code, &output),
        Err(error) => {
            println!("{} | {error}", part.name);
            Counts::from_success(false)
        }
    };
    println!("=== {} ended", part.name);
    Finished { name: part.name, duration: now() - start, counts }
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
