//! `cargo xtask test`: named parts, each with its duration, and a line of counts at the end.
//!
//! A part that fails does not stop the others, except where they could not work without it. Parts that mostly wait for
//! a real control plane run in a second process beside those that compute. The parts themselves are in `parts.rs`.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::durations;
use crate::parts::{self, PARTS, Part, Schedule};
use crate::process::target;
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
        let nightly = if part.schedule == Schedule::Nightly { " (--all)" } else { "" };
        println!("{:<24} {duration:>8}  {}{nightly}", part.name, part.about);
    }
}

fn test_one(part: &'static Part, all: bool) -> Result<u8, String> {
    require_tools()?;
    if parts::needs_build(part) {
        parts::build_everything()?;
    }
    let finished = run(part, all);
    conclude(&[finished])
}

fn test_all(all: bool) -> Result<u8, String> {
    require_tools()?;
    let start = now();
    let selected: Vec<&'static Part> = PARTS.iter().filter(|part| all || part.schedule != Schedule::Nightly).collect();
    let mut finished = Vec::new();
    let mut beside: Vec<Beside> = Vec::new();
    for part in selected {
        if part.schedule == Schedule::Beside {
            beside.push(Beside::start(part, all)?);
            continue;
        }
        let ended = run(part, all);
        let is_hopeless = part.name == parts::BUILD && ended.counts.failed > 0;
        finished.push(ended);
        if is_hopeless {
            break;
        }
    }
    for running in beside {
        finished.push(running.wait()?);
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

/// A part that runs in a process of its own, with its output in a file until it ends.
struct Beside {
    part: &'static Part,
    process: Child,
    output: PathBuf,
}

impl Beside {
    fn start(part: &'static Part, all: bool) -> Result<Self, String> {
        let output = target().join(format!("xtask-{}.log", part.name.replace(' ', "-")));
        let fail = |error: std::io::Error| format!("{}: {error}", output.display());
        let log = File::create(&output).map_err(fail)?;
        let program = std::env::current_exe().map_err(fail)?;
        let mut command = Command::new(program);
        command.args(["test", "--part", part.name]).args(all.then_some("--all"));
        command.stdout(log.try_clone().map_err(fail)?).stderr(log);
        let process = command.spawn().map_err(fail)?;
        println!("\n=== {} runs beside the next parts, with its output in {}", part.name, output.display());
        Ok(Self { part, process, output })
    }

    /// Waits for the end and prints the output.
    fn wait(mut self) -> Result<Finished, String> {
        let fail = |error: std::io::Error| format!("{}: {error}", self.part.name);
        println!("\n=== {} (waiting for its end)", self.part.name);
        let status = self.process.wait().map_err(fail)?;
        let output = std::fs::read_to_string(&self.output).map_err(fail)?;
        print!("{output}");
        let mut counts = output.lines().last().and_then(Counts::parse).unwrap_or_default();
        if !status.success() && counts.failed == 0 {
            counts.failed = 1;
        }
        let duration = durations::last(self.part.name).unwrap_or_default();
        Ok(Finished { name: self.part.name, duration, counts })
    }
}

#[expect(clippy::disallowed_methods, reason = "measures how long each part takes")]
fn now() -> Instant {
    Instant::now()
}
