//! Runs random worlds, and reduces each failing one to a short scenario.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sindri_world::oracle::Violation;
use sindri_world::run::{self, RunReport, RunRequest};
use sindri_world::scenario::{Library, Scenario, Step};
use sindri_world::worlds::{generate, minimise};

use crate::flags::SimFlags;
use crate::pool::run_all;
use crate::real_time::now;

/// Worlds between two progress lines.
const PROGRESS_EVERY: u64 = 100;
/// Longest time for the reduction of one failing world.
const MINIMISE_TIME: Duration = Duration::from_secs(60);

/// A world in which a property did not hold.
struct FailedWorld {
    seed: u64,
    violation: Violation,
    /// The reduced scenario, as the text of a scenario file.
    story: String,
    replay: String,
}

/// Worlds that are run: as many as there is time for.
pub struct Plan {
    /// Seed of the first one.
    pub first: u64,
    /// Greatest number.
    pub count: u64,
    /// Time after which no further one begins.
    pub time_max: Option<Duration>,
}

/// Result of all worlds.
#[derive(Default)]
pub struct Totals {
    first: u64,
    wall_time: Duration,
    worlds: u64,
    operations: u64,
    faults: u64,
    virtual_time: Duration,
    failed: Vec<FailedWorld>,
}

/// Runs the worlds and prints the result.
pub fn run_worlds(Plan { first, count, time_max }: Plan, flags: &SimFlags) -> Result<Totals, String> {
    let started = now();
    let is_chosen = |seed: &u64| flags.shard.is_none_or(|shard| shard.contains(*seed));
    let seeds: Vec<u64> = (first..first.saturating_add(count)).filter(is_chosen).collect();
    let totals = Mutex::new(Totals { first, ..Totals::default() });
    let results = run_all(&seeds, flags.jobs, |seed| {
        if time_max.is_some_and(|time_max| now() - started >= time_max) {
            return Ok(());
        }
        let world = generate(*seed);
        let report = run_world(&world, flags)?;
        let failed = report.violation.clone().map(|violation| reduce(*seed, &world, violation, flags));
        if flags.trace {
            report.trace.iter().for_each(|line| println!("{line}"));
        }
        let mut totals = totals.lock().expect("no thread panics while it adds a world");
        totals.add(&world, &report);
        if let Some(failed) = failed {
            print_failure(&failed);
            totals.failed.push(failed);
        }
        if totals.worlds.is_multiple_of(PROGRESS_EVERY) {
            totals.print_progress(started);
        }
        Ok::<_, String>(())
    });
    results.into_iter().collect::<Result<(), _>>()?;
    let mut totals = totals.into_inner().expect("every thread has ended");
    totals.wall_time = now() - started;
    totals.print_progress(started);
    totals.print_groups();
    Ok(totals)
}

fn run_world(world: &Scenario, flags: &SimFlags) -> Result<RunReport, String> {
    let library = Library::empty();
    run::run(&RunRequest { scenario: world, library: &library, engine: flags.engine.into(), seed: 0, kill_at: None })
}

fn reduce(seed: u64, world: &Scenario, violation: Violation, flags: &SimFlags) -> FailedWorld {
    let end = now() + MINIMISE_TIME;
    let fails = |candidate: &Scenario| {
        let report = run_world(candidate, flags);
        report.is_ok_and(|report| report.violation.is_some_and(|found| found.oracle == violation.oracle))
    };
    let mut scenario = minimise(world, fails, || now() < end).scenario;
    let found = run_world(&scenario, flags).ok().and_then(|report| report.violation).unwrap_or(violation);
    scenario.title = format!("{}, found by world {seed}", found.oracle);
    let replay = format!("cargo xtask sim --worlds 1 --seed {seed} --trace");
    FailedWorld { seed, violation: found, story: scenario.to_yaml(), replay }
}

fn print_failure(FailedWorld { seed, violation, story, replay }: &FailedWorld) {
    println!("\nworld {seed}: {}: {}\nreduced to:\n", violation.oracle, violation.message);
    story.lines().for_each(|line| println!("  {line}"));
    println!("\nreplay: {replay}\n");
}

fn is_fault(step: &Step) -> bool {
    matches!(
        step,
        Step::Kill(_) | Step::Partition(_) | Step::Latency(_) | Step::Fail(_) | Step::Stall | Step::RestoreEtcd(_)
    )
}

fn is_operation(step: &Step) -> bool {
    !is_fault(step)
        && !matches!(
            step,
            Step::Advance(_)
                | Step::Restart(_)
                | Step::Repair(_)
                | Step::Heal(_)
                | Step::Resume
                | Step::SnapshotEtcd(_)
        )
}

impl Totals {
    fn add(&mut self, world: &Scenario, report: &RunReport) {
        let count = |is: fn(&Step) -> bool| world.steps.iter().filter(|(_, step)| is(step)).count() as u64;
        self.worlds += 1;
        self.operations += count(is_operation);
        self.faults += count(is_fault);
        self.virtual_time += report.virtual_time;
    }

    fn print_progress(&self, started: Instant) {
        eprintln!(
            "  {:>6.1} s  {:>7} worlds {:>8.1} virtual hours {:>8} operations {:>7} faults  {} violations",
            (now() - started).as_secs_f64(),
            self.worlds,
            self.virtual_time.as_secs_f64() / 3600.0,
            self.operations,
            self.faults,
            self.failed.len(),
        );
    }

    /// Prints the violations grouped by their oracle, with the seeds of their worlds.
    fn print_groups(&self) {
        let mut groups: std::collections::BTreeMap<&str, Vec<String>> = std::collections::BTreeMap::new();
        for failed in &self.failed {
            groups.entry(failed.violation.oracle).or_default().push(failed.seed.to_string());
        }
        for (oracle, seeds) in groups {
            println!("{oracle}: worlds {}", seeds.join(", "));
        }
    }

    /// Returns true if nothing was violated.
    pub fn is_green(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns the fields of the JSON result.
    pub fn to_json(&self) -> Value {
        let violations: Vec<Value> = self
            .failed
            .iter()
            .map(|FailedWorld { seed, violation, story, replay }| {
                json!({
                    "world": seed, "oracle": violation.oracle, "message": violation.message, "story": story,
                    "replay": replay,
                })
            })
            .collect();
        json!({
            "worlds": self.worlds, "first_seed": self.first, "operations": self.operations, "faults": self.faults,
            "virtual_seconds": self.virtual_time.as_secs_f64(), "wall_seconds": self.wall_time.as_secs_f64(),
            "violations": violations,
        })
    }
}
