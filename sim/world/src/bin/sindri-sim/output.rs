//! What people and programs read of a simulation: progress, a table, failures, JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_world::oracle::Violation;
use sindri_world::scenario::Scenario;

use crate::explore::behaviours;

/// Lines of the trace that are shown with a failure.
const TRACE_TAIL: usize = 25;

/// A run in which something did not hold.
pub struct Violated {
    pub scenario: String,
    pub seed: u64,
    pub violation: Violation,
    pub replay: String,
}

/// All runs together.
pub struct Summary {
    /// Runs and virtual time by story.
    pub scenarios: BTreeMap<String, (u64, Duration)>,
    pub violations: Vec<Violated>,
    pub seeds: u64,
    pub wall: Duration,
    behaviours: BTreeMap<String, Vec<String>>,
}

impl Summary {
    pub fn new(chosen: &[Scenario]) -> Self {
        Self {
            scenarios: BTreeMap::new(),
            violations: Vec::new(),
            seeds: 0,
            wall: Duration::ZERO,
            behaviours: behaviours(chosen),
        }
    }

    pub fn add(&mut self, scenario: &str, virtual_time: Duration) {
        let (runs, total) = self.scenarios.entry(scenario.to_owned()).or_default();
        *runs += 1;
        *total += virtual_time;
    }

    fn runs(&self) -> u64 {
        self.scenarios.values().map(|(runs, _)| runs).sum()
    }

    fn virtual_time(&self) -> Duration {
        self.scenarios.values().map(|(_, time)| *time).sum()
    }

    fn violations_of(&self, scenario: &str) -> usize {
        self.violations.iter().filter(|violated| violated.scenario == scenario).count()
    }

    pub fn to_json(&self) -> Value {
        let violations: Vec<Value> = self
            .violations
            .iter()
            .map(|violated| {
                json!({
                    "scenario": violated.scenario, "seed": violated.seed, "oracle": violated.violation.oracle,
                    "message": violated.violation.message, "replay": violated.replay,
                })
            })
            .collect();
        json!({
            "scenarios": self.scenarios.len(), "runs": self.runs(), "seeds": self.seeds,
            "virtual_seconds": self.virtual_time().as_secs_f64(), "wall_seconds": self.wall.as_secs_f64(),
            "violations": violations, "goals_unreached": [], "behaviours": self.behaviours,
        })
    }
}

pub fn list(chosen: &[Scenario]) {
    let width = chosen.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    for scenario in chosen {
        println!("{:<width$}  {:<20}  {}", scenario.name, scenario.proves.join(" "), scenario.title);
    }
}

pub fn coverage(chosen: &[Scenario]) {
    for (id, scenarios) in behaviours(chosen) {
        println!("{id:<10} {}", scenarios.join(", "));
    }
}

/// One line as soon as a story is through.
pub fn progress(scenario: &Scenario, summary: &Summary) {
    let (runs, time) = summary.scenarios.get(&scenario.name).copied().unwrap_or_default();
    let broken = summary.violations_of(&scenario.name);
    let verdict = if broken == 0 { "held".to_owned() } else { format!("{broken} VIOLATIONS") };
    eprintln!(
        "  {:>6.1} s  {:<40} {runs:>4} runs {:>8.1} virtual hours  {verdict}",
        summary.wall.as_secs_f64(),
        scenario.name,
        time.as_secs_f64() / 3600.0
    );
}

pub fn violated(violated: &Violated, trace: &[String]) {
    println!(
        "\n{} with seed {}: {}: {}",
        violated.scenario, violated.seed, violated.violation.oracle, violated.violation.message
    );
    println!("the last lines of its trace:");
    trace[trace.len().saturating_sub(TRACE_TAIL)..].iter().for_each(|line| println!("  {line}"));
    println!("replay: {}\n", violated.replay);
}

pub fn table(summary: &Summary) {
    let width = summary.scenarios.keys().map(String::len).max().unwrap_or(0);
    println!("\n{:<width$}  {:>5}  {:>13}  violations", "scenario", "runs", "virtual hours");
    for (name, (runs, time)) in &summary.scenarios {
        let hours = time.as_secs_f64() / 3600.0;
        println!("{name:<width$}  {runs:>5}  {hours:>13.1}  {:>10}", summary.violations_of(name));
    }
    println!(
        "{} scenarios, {} runs, {:.1} virtual hours in {:.1} s, {} violations",
        summary.scenarios.len(),
        summary.runs(),
        summary.virtual_time().as_secs_f64() / 3600.0,
        summary.wall.as_secs_f64(),
        summary.violations.len()
    );
}

pub fn write_json(file: &Path, document: &Value) -> Result<(), String> {
    std::fs::write(file, format!("{document:#}\n")).map_err(|error| format!("{}: {error}", file.display()))
}
