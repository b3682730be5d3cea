//! Runs random worlds, and reduces each failing one to a short scenario.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sindri_world::oracle::Violation;
use sindri_world::run::{self, RunReport, RunRequest};
use sindri_world::scenario::{Library, Scenario, Step};
use sindri_world::worlds::{generate, minimise};

use crate::flags::SimFlags;
use crate::goals::Goals;
use crate::memory::peak_megabytes;
use crate::pool::run_all;
use crate::real_time::now;
use crate::report::{NamedRun, Report, Table};
use crate::steps::{begins_fault, is_operation};

/// Worlds between two progress lines.
const PROGRESS_EVERY: u64 = 100;
/// Worlds after which every goal should be reached.
const WORLDS_OF_GOALS: u64 = 1_000;
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
    /// Number of steps by their name.
    steps: BTreeMap<String, u64>,
    goals: Goals,
    failed: Vec<FailedWorld>,
    /// True if the worlds needed more memory than permitted.
    is_too_large: bool,
    pub report: Report,
}

/// Runs the worlds and prints the result.
pub fn run_worlds(Plan { first, count, time_max }: Plan, flags: &SimFlags) -> Result<Totals, String> {
    let started = now();
    let is_chosen = |seed: &u64| flags.shard.is_none_or(|shard| shard.contains(*seed));
    let seeds: Vec<u64> = (first..first.saturating_add(count)).filter(is_chosen).collect();
    let has_failed = AtomicBool::new(false);
    let totals = Mutex::new(Totals { first, ..Totals::default() });
    let results = run_all(&seeds, flags.jobs, |seed| {
        let is_over = time_max.is_some_and(|time_max| now() - started >= time_max);
        if is_over || flags.fail_fast && has_failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let world = generate(*seed);
        let report = run_world(&world, flags)?;
        if report.violation.is_some() {
            has_failed.store(true, Ordering::Relaxed);
        }
        let failed = report.violation.clone().map(|violation| reduce(*seed, &world, violation, flags));
        if flags.trace {
            report.trace.iter().for_each(|line| println!("{line}"));
        }
        let mut totals = totals.lock().expect("no thread panics while it adds a world");
        totals.add(&world, &report);
        if flags.report.is_some() {
            let story = failed.as_ref().map_or_else(|| world.to_yaml(), |failed| failed.story.clone());
            totals.report.add_run(NamedRun { name: world.name.clone(), replay: replay(*seed), story, report: &report });
        }
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
    let peak = peak_megabytes();
    totals.is_too_large = flags.memory_max.is_some_and(|most| peak > most);
    if let Some(most) = flags.memory_max.filter(|most| peak > *most) {
        println!(
            "{} worlds needed {peak} MB, more than {most} MB: a run does not give back what it took",
            totals.worlds
        );
    }
    if flags.coverage {
        totals.goals.list().for_each(|(goal, count)| println!("{count:>9}  {goal}"));
    }
    let unreached = totals.goals.unreached();
    if totals.worlds >= WORLDS_OF_GOALS && !unreached.is_empty() {
        println!("no world reached: {}", unreached.join(", "));
    }
    totals.add_tables();
    Ok(totals)
}

fn run_world(world: &Scenario, flags: &SimFlags) -> Result<RunReport, String> {
    let library = Library::empty();
    run::run(&RunRequest { scenario: world, library: &library, engine: flags.engine().into(), seed: 0, kill_at: None })
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
    FailedWorld { seed, violation: found, story: scenario.to_yaml(), replay: replay(seed) }
}

fn replay(seed: u64) -> String {
    format!("cargo xtask sim --worlds 1 --seed {seed} --trace")
}

fn print_failure(FailedWorld { seed, violation, story, replay }: &FailedWorld) {
    println!("\nworld {seed}: {}: {}\nreduced to:\n", violation.oracle, violation.message);
    story.lines().for_each(|line| println!("  {line}"));
    println!("\nreplay: {replay}\n");
}

impl Totals {
    fn add(&mut self, world: &Scenario, report: &RunReport) {
        let count = |is: fn(&Step) -> bool| world.steps.iter().filter(|(_, step)| is(step)).count() as u64;
        self.worlds += 1;
        self.operations += count(is_operation);
        self.faults += count(|step| begins_fault(step).is_some());
        self.goals.add(world, &report.trace);
        self.virtual_time += report.virtual_time;
        for (_, step) in world.steps.iter() {
            *self.steps.entry(step.name()).or_default() += 1;
        }
    }

    /// Adds the tables of all worlds to the report.
    fn add_tables(&mut self) {
        let rows = self.steps.iter().map(|(name, count)| vec![name.clone(), count.to_string()]).collect();
        self.report.add_table(Table { title: "Steps of the worlds", rows });
        let rows = self.goals.list().map(|(goal, count)| vec![goal.to_owned(), count.to_string()]).collect();
        self.report.add_table(Table { title: "Goals", rows });
        let failed = |failed: &FailedWorld| vec![failed.violation.oracle.to_owned(), format!("world {}", failed.seed)];
        let rows = self.failed.iter().map(failed).collect();
        self.report.add_table(Table { title: "Violations", rows });
    }

    /// Describes all worlds in one line.
    pub fn describe(&self) -> String {
        format!(
            "{} worlds from seed {}, {:.1} virtual hours in {:.1} s, {} operations, {} faults, {} violations",
            self.worlds,
            self.first,
            self.virtual_time.as_secs_f64() / 3600.0,
            self.wall_time.as_secs_f64(),
            self.operations,
            self.faults,
            self.failed.len()
        )
    }

    fn print_progress(&self, started: Instant) {
        eprintln!(
            "  {:>6.1} s  {:>7} worlds {:>8.1} virtual hours {:>8} operations {:>7} faults  {} violations  {} MB",
            (now() - started).as_secs_f64(),
            self.worlds,
            self.virtual_time.as_secs_f64() / 3600.0,
            self.operations,
            self.faults,
            self.failed.len(),
            peak_megabytes(),
        );
    }

    /// Prints the violations grouped by their oracle, with the seeds of their worlds.
    fn print_groups(&self) {
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for failed in &self.failed {
            groups.entry(failed.violation.oracle).or_default().push(failed.seed.to_string());
        }
        for (oracle, seeds) in groups {
            println!("{oracle}: worlds {}", seeds.join(", "));
        }
    }

    /// Returns true if nothing was violated.
    pub fn is_green(&self) -> bool {
        self.failed.is_empty() && !self.is_too_large
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
            "violations": violations, "peak_megabytes": peak_megabytes(), "goals_unreached": self.goals.unreached(),
        })
    }
}
