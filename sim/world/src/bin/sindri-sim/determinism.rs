//! Checks that the same seed gives the same trace, twice in this process and twice in fresh ones, on both engines, and
//! that another seed gives another trace.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use sindri_world::engine::EngineKind;
use sindri_world::run::{self, RunRequest};
use sindri_world::scenario::{Library, Scenario};

use crate::pool::run_all;

/// Seeds if none are chosen: the scenario as it is written, and an exploration of it.
pub const SEEDS_DEFAULT: u64 = 2;

struct Case<'a> {
    scenario: &'a Scenario,
    engine: EngineKind,
    seed: u64,
}

/// Runs the chosen scenarios and prints each difference; returns true if there is none.
pub fn check(library: &Library, chosen: &[Scenario], root: &Path, jobs: u32, seeds: u64) -> Result<bool, String> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for scenario in chosen {
        for engine in EngineKind::ALL {
            cases.extend((0..seeds).map(|seed| Case { scenario, engine, seed }));
        }
    }
    let seeds = cases.len() / (chosen.len() * EngineKind::ALL.len()).max(1);
    let hashes = run_all(&cases, jobs, |case| {
        let hashes = compute_four_hashes(library, case, root)?;
        let is_same = hashes.iter().all(|hash| *hash == hashes[0]);
        let (name, engine, seed) = (&case.scenario.name, case.engine.name(), case.seed);
        let verdict = if is_same { "four times" } else { "DIFFERS" };
        eprintln!("  {name:<40} {engine:<8} seed {seed}  {}  {verdict}", hashes[0]);
        Ok::<_, String>(hashes)
    });
    let hashes: Vec<Vec<String>> = hashes.into_iter().collect::<Result<_, _>>()?;
    let mut is_reproducible = true;
    for (Case { scenario, engine, seed }, hashes) in cases.iter().zip(&hashes) {
        if hashes.iter().any(|hash| *hash != hashes[0]) {
            is_reproducible = false;
            println!("{} on {} with seed {seed}: the traces differ: {hashes:?}", scenario.name, engine.name());
        }
    }
    for (hashes, cases) in hashes.chunks(seeds.max(1)).zip(cases.chunks(seeds.max(1))) {
        let different: BTreeSet<&String> = hashes.iter().map(|four| &four[0]).collect();
        if different.len() < seeds {
            is_reproducible = false;
            println!("{} on {}: two seeds have the same trace", cases[0].scenario.name, cases[0].engine.name());
        }
    }
    println!(
        "{} scenarios on {} engines with {} seeds, four runs each: {}",
        chosen.len(),
        EngineKind::ALL.len(),
        seeds,
        if is_reproducible { "every trace is reproducible" } else { "NOT reproducible" }
    );
    Ok(is_reproducible)
}

fn compute_four_hashes(library: &Library, case: &Case<'_>, root: &Path) -> Result<Vec<String>, String> {
    let request = RunRequest { scenario: case.scenario, library, engine: case.engine, seed: case.seed, kill_at: None };
    let here = || run::run(&request).map(|report| report.hash);
    let elsewhere = || hash_in_fresh_process(case, root);
    Ok(vec![here()?, here()?, elsewhere()?, elsewhere()?])
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
