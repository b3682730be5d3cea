//! Output for people and programs: lists, progress, violations, a table, JSON.

use std::path::Path;

use serde_json::{Value, json};
use sindri_world::scenario::Scenario;

use crate::summary::{RunViolation, Summary, group_by_behaviour};

/// Lines of the trace that are printed with a violation.
const TRACE_TAIL: usize = 25;

pub fn print_scenarios(chosen: &[Scenario]) {
    let width = chosen.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    for scenario in chosen {
        println!("{:<width$}  {:<20}  {}", scenario.name, scenario.proves.join(" "), scenario.title);
    }
}

pub fn print_coverage(chosen: &[Scenario]) {
    for (id, scenarios) in group_by_behaviour(chosen) {
        println!("{id:<10} {}", scenarios.join(", "));
    }
}

/// Prints one line as soon as all runs of a scenario are finished.
pub fn print_progress(scenario: &Scenario, summary: &Summary) {
    let (runs, time) = summary.scenarios.get(&scenario.name).copied().unwrap_or_default();
    let violations = summary.count_violations(&scenario.name);
    let verdict = if violations == 0 { "ok".to_owned() } else { format!("{violations} VIOLATIONS") };
    eprintln!(
        "  {:>6.1} s  {:<40} {runs:>4} runs {:>8.1} virtual hours  {verdict}",
        summary.wall_time.as_secs_f64(),
        scenario.name,
        time.as_secs_f64() / 3600.0
    );
}

pub fn print_violation(RunViolation { scenario, seed, violation, replay }: &RunViolation, trace: &[String]) {
    println!("\n{scenario} with seed {seed}: {}: {}", violation.oracle, violation.message);
    if !trace.is_empty() {
        println!("the last lines of its trace:");
    }
    trace[trace.len().saturating_sub(TRACE_TAIL)..].iter().for_each(|line| println!("  {line}"));
    println!("replay: {replay}\n");
}

pub fn print_table(summary: &Summary) {
    let width = summary.scenarios.keys().map(String::len).max().unwrap_or(0);
    println!("\n{:<width$}  {:>5}  {:>13}  violations", "scenario", "runs", "virtual hours");
    for (name, (runs, time)) in &summary.scenarios {
        let hours = time.as_secs_f64() / 3600.0;
        println!("{name:<width$}  {runs:>5}  {hours:>13.1}  {:>10}", summary.count_violations(name));
    }
    println!("{}", summary.describe());
}

/// Adds the result of random worlds to that of scenarios: their violations to its violations, times to its times, and the other
/// fields beside its own.
pub fn add_worlds(result: &mut Value, worlds: Value) {
    let Value::Object(worlds) = worlds else { return };
    for (name, value) in worlds {
        match (&mut result[&name], value) {
            (Value::Array(violations), Value::Array(added)) => violations.extend(added),
            (Value::Number(number), Value::Number(added)) => {
                result[&name] = json!(number.as_f64().unwrap_or_default() + added.as_f64().unwrap_or_default());
            }
            (place, value) => *place = value,
        }
    }
}

pub fn write_json(file: &Path, document: &Value) -> Result<(), String> {
    std::fs::write(file, format!("{document:#}\n")).map_err(|error| format!("{}: {error}", file.display()))
}
