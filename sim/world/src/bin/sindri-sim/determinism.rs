//! Runs scenarios on one engine or both, in this process and in a fresh one: nothing is violated, the same seed gives the same trace,
//! and another seed another one.
//!
//! This process has run other scenarios before, so that state which a run leaves behind shows too.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use sindri_world::engine::EngineKind;
use sindri_world::run::{self, RunRequest};
use sindri_world::scenario::{Library, Scenario};

use crate::flags::SimFlags;
use crate::pool::run_all;

/// Seeds if none are chosen: the scenario as it is written, and an exploration of it.
pub const SEEDS_DEFAULT: u64 = 2;

struct Case<'a> {
    scenario: &'a Scenario,
    engine: EngineKind,
    seed: u64,
}

/// Both runs of a case.
struct Runs {
    /// Hash of the trace in this process.
    here: String,
    /// Hash of the trace in a fresh process.
    elsewhere: String,
    violation: Option<String>,
}

/// Runs the chosen scenarios and prints each failure; returns true if there is none.
pub fn check(
    library: &Library,
    chosen: &[Scenario],
    engines: &[EngineKind],
    seeds: u64,
    flags: &SimFlags,
) -> Result<bool, String> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for scenario in chosen {
        for engine in engines {
            cases.extend((0..seeds).map(|seed| Case { scenario, engine: *engine, seed }));
        }
    }
    let runs = run_all(&cases, flags.jobs, |case| {
        let runs = run_twice(library, case, &flags.root)?;
        let (name, engine, seed) = (&case.scenario.name, case.engine.name(), case.seed);
        let verdict = if runs.here == runs.elsewhere { "twice" } else { "DIFFERS" };
        eprintln!("  {name:<40} {engine:<8} seed {seed}  {}  {verdict}", runs.here);
        Ok::<_, String>(runs)
    });
    let runs: Vec<Runs> = runs.into_iter().collect::<Result<_, _>>()?;
    let mut failures = Vec::new();
    for (Case { scenario, engine, seed }, Runs { here, elsewhere, violation }) in cases.iter().zip(&runs) {
        let case = format!("{} on {} with seed {seed}", scenario.name, engine.name());
        if here != elsewhere {
            failures.push(format!("{case}: the traces differ: {here} here, {elsewhere} in a fresh process"));
        }
        failures.extend(violation.iter().map(|violation| format!("{case}: {violation}")));
    }
    let seeds = usize::try_from(seeds).unwrap_or(usize::MAX).max(1);
    for (runs, cases) in runs.chunks(seeds).zip(cases.chunks(seeds)) {
        let different: BTreeSet<&String> = runs.iter().map(|runs| &runs.here).collect();
        if different.len() < cases.len() {
            failures.push(format!(
                "{} on {}: two seeds have the same trace",
                cases[0].scenario.name,
                cases[0].engine.name()
            ));
        }
    }
    failures.iter().for_each(|failure| println!("{failure}"));
    println!(
        "{} scenarios on {} with {seeds} seeds, in two processes: {}",
        chosen.len(),
        engines.iter().map(|engine| engine.name()).collect::<Vec<_>>().join(" and "),
        if failures.is_empty() {
            "every trace is reproducible".to_owned()
        } else {
            format!("{} failures", failures.len())
        }
    );
    Ok(failures.is_empty())
}

fn run_twice(library: &Library, case: &Case<'_>, root: &Path) -> Result<Runs, String> {
    let request = RunRequest { scenario: case.scenario, library, engine: case.engine, seed: case.seed, kill_at: None };
    let report = run::run(&request)?;
    let violation = report.violation.map(|violation| format!("{}: {}", violation.oracle, violation.message));
    Ok(Runs { here: report.hash, elsewhere: hash_in_fresh_process(case, root)?, violation })
}

fn hash_in_fresh_process(case: &Case<'_>, root: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["hash", "--scenario", &case.scenario.name, "--engine", case.engine.name()])
        .args(["--seed", &case.seed.to_string(), "--root"])
        .arg(root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
